"""Queues that a broker assigns to a group's members (clientRebalance=false): some are pulled, others are popped."""

from __future__ import annotations

import attrs

from twisted_mq.client.core.mq_client import MQClient
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.routing.errors import NoRoute

STRATEGY = "AVG"
"""The strategy by which a broker divides queues that are pulled; it divides popped ones by its own."""


@attrs.frozen
class Assignment:
    """The queues of one topic that are assigned to this consumer."""

    pulled: frozenset[MessageQueue]
    popped: frozenset[MessageQueue] = frozenset()
    """Queues to pop. The queue id is -1 if all queues of a broker are popped."""


@attrs.frozen
class BrokerAssignment:
    """Asks brokers for the assignments of one group."""

    client: MQClient
    group: str

    async def of(self, topic: str) -> Assignment | None:
        """Return the assignment; None if the broker has none. Raises NoRoute, RemotingError or BrokerError."""
        await self.client.routes.find(topic)
        addresses = self.client.routes.addresses_of(topic)
        if not addresses:
            raise NoRoute(f"topic {topic} has a route without a broker's address")
        address = self.client.rng.choice(addresses)
        told = await self.client.calls.query_assignment(address, topic, self.group, self.client.client_id, STRATEGY)
        if told is None:
            return None
        queues = [(one.message_queue, one.mode) for one in told if one.message_queue is not None]
        return Assignment(
            pulled=frozenset(queue for queue, mode in queues if mode != "POP"),
            popped=frozenset(queue for queue, mode in queues if mode == "POP"),
        )
