"""Takes consumer offsets that were committed at a slave in its master's place, as far as both logs are the same.

An offset is taken if it is ahead of this master's own, and the message before it is the same in both logs. Else it is taken up
to the first message that is not proven to be the same: what the slave's consumers got there is delivered again, and no
group skips what this master appended since.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

import attrs
from twisted.internet import interfaces, task

from twisted_mq.broker.clients.consumer_offset_manager import ConsumerOffsetManager
from twisted_mq.broker.ha.common_log import NOWHERE, CommonLog, QueuePlaces, place_before
from twisted_mq.broker.places_in_log import first_behind
from twisted_mq.protocol.names.system_topics import TRANSACTION_GROUP
from twisted_mq.storage.interfaces import IMessageStore
from twisted_mq.storage.tables.config_tables import TOPIC_GROUP_SEPARATOR

ROWS_OF_SLICE = 500
"""The offsets that are looked at in one turn of the reactor."""


class OffsetParts(Protocol):
    """The master that takes offsets."""

    clock: interfaces.IReactorTime
    store: IMessageStore
    offsets: ConsumerOffsetManager


@attrs.frozen
class Ahead:
    """An offset that is ahead of this master's; `last` is the place of the message before it, NOWHERE if it was deleted."""

    group: str
    topic: str
    queue_id: int
    offset: int
    last: int


@attrs.frozen
class TakenOffsets:
    """The offsets of one slave. What this master appended from `began_at` on is new to every group.

    `without_halves` leaves out how far half messages were sent away: this log may lack what was decided about them.
    """

    broker: OffsetParts
    common: CommonLog
    began_at: int
    without_halves: bool

    async def take(self, theirs: Mapping[str, Mapping[int, int]]) -> int:
        """Take the offsets of a slave's table. Return how many. Raises RemotingError; then none is taken."""
        ahead = []
        for number, (key, queue_id, offset) in enumerate(_rows(theirs), 1):
            one = self._ahead(key, queue_id, offset)
            if one is not None:
                ahead.append(one)
            if number % ROWS_OF_SLICE == 0:
                await task.deferLater(self.broker.clock, 0, lambda: None)
        same = await self._same(ahead)
        taken = 0
        for number, one in enumerate(ahead, 1):
            taken += self._take(one, same)
            if number % ROWS_OF_SLICE == 0:
                await task.deferLater(self.broker.clock, 0, lambda: None)
        return taken

    async def _same(self, ahead: list[Ahead]) -> int:
        """Return the last place at which both logs are found to have the same message, NOWHERE without one.

        If not all offsets count messages of both logs, the queue of the offset that reaches furthest shows how far both go.
        """
        same = await self.common.last(sorted({one.last for one in ahead if one.last != NOWHERE}))
        furthest = max(ahead, key=lambda one: one.last, default=None)
        if furthest is None or furthest.last <= same:
            return same
        store, topic, queue_id = self.broker.store, furthest.topic, furthest.queue_id
        first = first_behind(store, topic, queue_id, same + 1)
        found = await self.common.last(QueuePlaces(store, topic, queue_id, first, furthest.offset))
        return max(same, found)

    def _ahead(self, key: str, queue_id: int, offset: int) -> Ahead | None:
        store = self.broker.store
        topic, _, group = key.partition(TOPIC_GROUP_SEPARATOR)
        mine = self.broker.offsets.query(group, topic, queue_id)
        if (mine is not None and offset <= mine) or (self.without_halves and group == TRANSACTION_GROUP):
            return None
        end = first_behind(store, topic, queue_id, self.began_at)
        offset = min(offset, end)
        if not end or (mine is not None and offset <= mine):
            return None
        if offset <= store.min_offset_in_queue(topic, queue_id):
            return Ahead(group, topic, queue_id, offset, NOWHERE)
        last = place_before(store, topic, queue_id, offset)
        return None if last == NOWHERE else Ahead(group, topic, queue_id, offset, last)

    def _take(self, one: Ahead, same: int) -> bool:
        """Commit an offset, if it is still ahead; both logs are the same up to the message at `same`."""
        offsets, offset = self.broker.offsets, one.offset
        if one.last > same:
            offset = min(offset, first_behind(self.broker.store, one.topic, one.queue_id, same + 1))
        mine = offsets.query(one.group, one.topic, one.queue_id)
        if mine is not None and offset <= mine:
            return False
        offsets.commit(one.group, one.topic, one.queue_id, offset)
        return True


def _rows(theirs: Mapping[str, Mapping[int, int]]) -> Iterator[tuple[str, int, int]]:
    for key, queues in theirs.items():
        for queue_id, offset in queues.items():
            yield key, queue_id, offset
