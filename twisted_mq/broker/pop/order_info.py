"""Keeps the messages that an ordered consumer group holds of a queue (Apache: ConsumerOrderInfoManager.OrderInfo), and
the file of all groups.

{"table":{"TopicA@GroupA":{0:{"a":"attempt","cm":0,"i":60000,"l":1795217217000,"o":[8,1],"oc":{8:1},"popTime":...}}}}

Queue offsets are written as the first one and the differences of the others to it. Times are ms.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from attrs import field

from twisted_mq.protocol.bodies.codec import decode_body
from twisted_mq.protocol.bodies.types import Int32, Int64, wire
from twisted_mq.storage.tables.config_tables import ConfigTable

NOT_POPPED, NOTHING_TO_COMMIT = -1, -2


@attrs.define
class OrderInfo:
    """The messages of one queue that were popped last. The next are popped only after these are acknowledged or visible.

    `committed` has bit i set once message i is acknowledged; `visible_ms` has the messages whose time was changed;
    `times_consumed` those that were popped before.
    """

    pop_time: Int64 = 0
    invisible_time: Int64 | None = field(default=None, metadata=wire("i"))
    offsets: list[Int64] = field(factory=list, metadata=wire("o"))
    visible_ms: dict[Int64, Int64] | None = field(default=None, metadata=wire("ot"))
    times_consumed: dict[Int64, Int32] | None = field(default=None, metadata=wire("oc"))
    consumed_ms: Int64 = field(default=0, metadata=wire("l"))
    committed: Int64 = field(default=0, metadata=wire("cm"))
    attempt_id: str | None = field(default=None, metadata=wire("a"))

    @classmethod
    def of_pop(
        cls, attempt_id: str | None, now_ms: int, pop_time: int, invisible_time: int, queue_offsets: Sequence[int]
    ) -> OrderInfo:
        """Return the state of a queue whose messages were just popped."""
        first = queue_offsets[0]
        offsets = [first, *(offset - first for offset in queue_offsets[1:])]
        return cls(pop_time, invisible_time, offsets, consumed_ms=now_ms, attempt_id=attempt_id)

    @property
    def queue_offsets(self) -> list[int]:
        """Return the messages' queue offsets."""
        first, *others = self.offsets or [0]
        return [first, *(first + difference for difference in others)] if self.offsets else []

    def count_times(self, before: OrderInfo) -> None:
        """Add the counts of the previous pop; the same attempt counts once."""
        counts = before.times_consumed or {}
        if before.attempt_id is not None and before.attempt_id == self.attempt_id:
            self.times_consumed = counts
            return
        again = set(before.queue_offsets)
        self.times_consumed = {offset: counts.get(offset, 0) + 1 for offset in self.queue_offsets if offset in again}

    def visible_again_ms(self, now_ms: int, invisible_time: int = 0) -> int | None:
        """Return when the first message that is still invisible can be popped again; None if all are visible.

        `invisible_time` applies if the pop did not give its own.
        """
        due_ms = self.pop_time + (self.invisible_time or invisible_time)
        changed = self.visible_ms or {}
        for index, offset in enumerate(self.queue_offsets):
            visible = changed.get(offset, due_ms)
            if not self.committed >> index & 1 and now_ms < visible:
                return visible
        return None

    def commit(self, queue_offset: int, pop_time: int) -> int:
        """Acknowledge a message. Returns the offset at which the group goes on, NOT_POPPED or NOTHING_TO_COMMIT."""
        offsets = self.queue_offsets
        if not offsets:
            return NOT_POPPED
        if pop_time != self.pop_time:
            return NOTHING_TO_COMMIT
        if queue_offset not in offsets:
            return NOT_POPPED
        self.committed |= 1 << offsets.index(queue_offset)
        waiting = (offset for index, offset in enumerate(offsets) if not self.committed >> index & 1)
        return next(waiting, offsets[-1] + 1)


@attrs.frozen
class _Table:
    table: dict[str, dict[Int32, OrderInfo]] = attrs.field(factory=dict)


class ConsumerOrderInfoTable(ConfigTable[_Table]):
    """The table in consumerOrderInfo.json. `queues` maps "topic@group" to queue id to the popped messages."""

    def __init__(self, path: str) -> None:
        super().__init__(path, lambda data: decode_body(_Table, data))
        self.queues: dict[str, dict[int, OrderInfo]] = {}

    def _fill(self, body: _Table) -> None:
        self.queues = {key: dict(queues) for key, queues in body.table.items()}

    def _body(self) -> _Table:
        return _Table(self.queues)
