"""Queues as a broker divides them among a group (clientRebalance=false): some are pulled, others are popped."""

from __future__ import annotations

import attrs

from twisted_mq.client.core.mq_client import MQClient
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.routing.errors import NoRoute

STRATEGY = "AVG"
"""What a broker divides by that pulls are set for; pops are divided by itself."""


@attrs.frozen
class Assignment:
    """The queues of one topic that are ours."""

    pulled: frozenset[MessageQueue]
    popped: frozenset[MessageQueue] = frozenset()
    """Of queue id -1 where all queues of a broker are popped."""


@attrs.frozen
class BrokerAssignment:
    """Asks for one group."""

    client: MQClient
    group: str

    async def of(self, topic: str) -> Assignment | None:
        """None where the broker says nothing: what we have stays. Raises NoRoute, RemotingError or BrokerError."""
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
