"""Keeps the queues that ordered consumer groups hold, until they are free again (Apache: ConsumerOrderInfoManager,
ConsumerOrderInfoLockManager).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from twisted.internet import interfaces

from twisted_mq.broker.pop.order_info import ConsumerOrderInfoTable, OrderInfo
from twisted_mq.broker.pop.parts import PopParts
from twisted_mq.logs import Logger
from twisted_mq.protocol.names.pop_receipt import offset_count_info, queue_count_info

UNUSED_MS = 24 * 3600 * 1000
"""A queue that was not popped for this long is forgotten (Apache: CLEAN_SPAN_FROM_LAST)."""


class OrderedPop(Protocol):
    """The fields of a pop's header that its order depends on."""

    @property
    def consumer_group(self) -> str: ...

    @property
    def attempt_id(self) -> str | None: ...

    @property
    def invisible_time(self) -> int: ...


class ConsumerOrderManager:
    """Queues by topic, group and queue id; `freed(topic, group, queue_id)` is called when one can be popped again.

    It continues with the loaded table.
    """

    log = Logger()

    def __init__(self, broker: PopParts, table: ConsumerOrderInfoTable, freed: Callable[[str, str, int], None]) -> None:
        self._broker = broker
        self._freed = freed
        self._timers: dict[tuple[str, str, int], interfaces.IDelayedCall] = {}
        self._steps: dict[tuple[str, str, int], int] = {}
        """By how much the time of day had been set when a queue was popped: its times are of that clock."""
        self._table = table
        self._bound()
        for key, queues in table.queues.items():
            topic, _, group = key.rpartition("@")
            for queue_id, info in queues.items():
                self._free_later(topic, group, queue_id, info)

    def _bound(self) -> None:
        """Forget messages past the end of their queue, on disk too: other messages will get their offsets. Raises OSError.

        The pop itself is kept, so that an acknowledgement of its messages is refused.
        """
        lost = 0
        for key, queues in self._table.queues.items():
            topic, _, group = key.rpartition("@")
            for queue_id, info in queues.items():
                end = self._broker.store.max_offset_in_queue(topic, queue_id)
                if max(info.queue_offsets, default=-1) >= end:
                    self.log.warn(
                        "popped messages are lost, the group will pop them again: group={g} topic={t} queue={q} from={b} to={o}",
                        g=group, t=topic, q=queue_id, b=max(info.queue_offsets) + 1, o=end,
                    )  # fmt: skip
                    info.offsets, info.committed, lost = [], 0, lost + 1
        if lost:
            self._table.save_with_backup()

    def blocks(self, attempt_id: str | None, topic: str, group: str, queue_id: int, invisible_time: int) -> bool:
        """Return True if messages of the queue are still invisible; always False for the attempt that popped them."""
        info = self._find(topic, group, queue_id)
        if info is None or (attempt_id is not None and info.attempt_id == attempt_id):
            return False
        return info.visible_again_ms(self._now_ms((topic, group, queue_id)), invisible_time) is not None

    def popped(
        self, header: OrderedPop, topic: str, queue_id: int, pop_time: int, queue_offsets: Sequence[int]
    ) -> list[str]:
        """Record a pop; return the parts of its orderCountInfo."""
        group = header.consumer_group
        queues = self._table.queues.setdefault(f"{topic}@{group}", {})
        info = OrderInfo.of_pop(
            header.attempt_id, self._broker.wall_ms(), pop_time, header.invisible_time, queue_offsets
        )
        before = queues.get(queue_id)
        if before is not None:
            info.count_times(before)
        queues[queue_id] = info
        self._steps[topic, group, queue_id] = self._broker.steps.ms()
        self._free_later(topic, group, queue_id, info)
        counts = info.times_consumed or {}
        least = min(counts.values(), default=0) if len(counts) == len(queue_offsets) else 0
        parts = [offset_count_info(topic, queue_id, offset, count) for offset, count in counts.items()]
        return [*parts, queue_count_info(topic, queue_id, least)]

    def commit(self, topic: str, group: str, queue_id: int, queue_offset: int, pop_time: int) -> int:
        """Acknowledge a message. Returns the offset to commit, NOT_POPPED or NOTHING_TO_COMMIT."""
        info = self._find(topic, group, queue_id)
        if info is None:
            return queue_offset + 1
        next_offset = info.commit(queue_offset, pop_time)
        if next_offset >= 0:
            self._free_later(topic, group, queue_id, info)
        return next_offset

    def change_visible_time(
        self, topic: str, group: str, queue_id: int, queue_offset: int, pop_time: int, visible_ms: int
    ) -> None:
        """Set the time of day at which a message comes back. Ignores messages of another pop."""
        info = self._find(topic, group, queue_id)
        if info is None or info.pop_time != pop_time:
            self.log.warn(
                "no ordered pop to change: topic={t} group={g} queue={q} offset={o} popTime={p}",
                t=topic, g=group, q=queue_id, o=queue_offset, p=pop_time,
            )  # fmt: skip
            return
        set_since = self._broker.steps.ms() - self._steps.get((topic, group, queue_id), 0)
        info.visible_ms = {**(info.visible_ms or {}), queue_offset: visible_ms - set_since}
        self._free_later(topic, group, queue_id, info)

    def clear(self, topic: str, group: str, queue_id: int) -> None:
        """Forget what a group holds that starts again on a queue."""
        self._table.queues.get(f"{topic}@{group}", {}).pop(queue_id, None)

    def save(self) -> None:
        """Forget unused queues, and write the rest if it changed. Raises OSError."""
        self.forget_unused()
        self._table.save()

    def stop(self) -> None:
        """Stop calling `freed`. A second call does nothing."""
        timers, self._timers = self._timers, {}
        for timer in timers.values():
            timer.cancel()

    def _find(self, topic: str, group: str, queue_id: int) -> OrderInfo | None:
        return self._table.queues.get(f"{topic}@{group}", {}).get(queue_id)

    def _free_later(self, topic: str, group: str, queue_id: int, info: OrderInfo) -> None:
        """Call `freed` when the queue is free; on the clock's next turn if it is free now."""
        broker, key = self._broker, (topic, group, queue_id)
        if not broker.options.enable_notify_after_pop_order_lock_release:
            return
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
        now = self._now_ms(key)
        due_ms = info.visible_again_ms(now) or now
        self._timers[key] = broker.clock.callLater((due_ms - now) / 1000, self._free, key)

    def _now_ms(self, key: tuple[str, str, int]) -> int:
        """Return the time of day as it would be if the clock had not been set since the queue was popped."""
        return self._broker.now_ms() + self._steps.get(key, 0)

    def _free(self, key: tuple[str, str, int]) -> None:
        del self._timers[key]
        self._freed(*key)

    def forget_unused(self) -> None:
        """Forget queues of deleted topics and groups, and those that are not popped any more."""
        broker, queues_by_key = self._broker, self._table.queues
        oldest = broker.wall_ms() - UNUSED_MS
        for key, queues in list(queues_by_key.items()):
            topic, _, group = key.rpartition("@")
            config = broker.topics.get(topic)
            used = {
                queue_id: info
                for queue_id, info in queues.items()
                if config is not None and queue_id < config.read_queue_nums and info.consumed_ms >= oldest
            }
            if used and group in broker.groups.groups:
                queues_by_key[key] = used
            else:
                del queues_by_key[key]
        self._steps = {key: steps for key, steps in self._steps.items() if self._find(*key) is not None}
