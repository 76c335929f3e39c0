"""Locks of the queues that a group's member holds alone, to keep their order (Apache: RebalanceImpl.lock, lockAll, unlock).

A broker locks a queue for one client of a group, and releases it 60 s after the last renewal. The client counts on a
lock for 30 s, and renews all of them every 20 s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from twisted_mq.client.consuming.process_queue import ProcessQueue
from twisted_mq.client.core.errors import EXPECTED_ERRORS, level_of
from twisted_mq.client.core.mq_client import MQClient
from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import MessageQueue

RENEW_SECONDS = 20.0
"""rocketmq.client.rebalance.lockInterval"""


class QueueLocks:
    """The locks of one consumer. `held` returns the queues that are consumed now."""

    log = Logger()

    def __init__(self, client: MQClient, group: str, held: Callable[[], Mapping[MessageQueue, ProcessQueue]]) -> None:
        self._client = client
        self._group = group
        self._held = held

    async def lock(self, queue: MessageQueue) -> bool:
        """Lock the queue; mark its process queue. Return whether it is locked for this client now."""
        got = queue in await self._ask([queue])
        self._note(queue, got=got)
        return got

    async def renew(self) -> None:
        """Renew all locks; mark queues that another client has locked meanwhile as not locked here."""
        for queues in self._by_broker(self._held()):
            got = await self._ask(queues)
            for queue in queues:
                self._note(queue, got=queue in got)

    async def unlock(self, queues: Iterable[MessageQueue]) -> None:
        """Unlock the queues for the next members. Locks at brokers that are not reached end by themselves."""
        for theirs in self._by_broker(queues):
            try:
                address = await self._client.routes.master_of(theirs[0])
                await self._client.calls.unlock_queues(address, self._group, self._client.client_id, theirs)
            except EXPECTED_ERRORS as error:
                self.log.info(
                    "queues not unlocked: group={group} broker={broker} {error}",
                    group=self._group, broker=theirs[0].broker_name, error=error,
                )  # fmt: skip

    async def _ask(self, queues: list[MessageQueue]) -> set[MessageQueue]:
        try:
            address = await self._client.routes.master_of(queues[0])
            return await self._client.calls.lock_queues(address, self._group, self._client.client_id, queues)
        except EXPECTED_ERRORS as error:
            self.log.emit(
                level_of(error), "queues not locked: group={group} broker={broker} {error}",
                group=self._group, broker=queues[0].broker_name, error=error,
            )  # fmt: skip
            return set()

    def _note(self, queue: MessageQueue, *, got: bool) -> None:
        held = self._held().get(queue)
        if held is not None:
            held.locked_at = self._client.reactor.seconds() if got else None

    def _by_broker(self, queues: Iterable[MessageQueue]) -> list[list[MessageQueue]]:
        """Return the queues of each broker."""
        found: dict[str, list[MessageQueue]] = {}
        for queue in sorted(queues):
            found.setdefault(self._client.routes.placed(queue).broker_name, []).append(queue)
        return list(found.values())
