"""The messages of one queue that were pulled and are not consumed yet (Apache: ProcessQueue). Pure: `now` is given."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

import attrs

from twisted_mq.client.core.option_checks import number
from twisted_mq.protocol.messages.message import MessageExt

PULL_MAX_IDLE_SECONDS = 120.0
"""A queue that was not pulled for this long is given up and taken again (rocketmq.client.pull.pullMaxIdleTime)."""

LOCK_SECONDS = 30.0
"""Seconds for which the client counts on a lock after its last renewal (rocketmq.client.rebalance.lockMaxLiveTime)."""

NOTHING_CONSUMED = -1


@attrs.define(eq=False)
class ProcessQueue:
    """Messages by queue offset. Once `dropped`, no result may commit an offset: the queue belongs to another member."""

    last_pull_seconds: float = 0.0
    dropped: bool = False
    locked_at: float | None = None
    """When the broker last confirmed this client's lock on the queue; None if it is not locked."""
    size_bytes: int = 0
    _held: dict[int, MessageExt] = attrs.Factory(dict)
    _order: list[int] = attrs.Factory(list)  # a heap; offsets no longer held leave it when they come first
    _max_offset: int = NOTHING_CONSUMED

    @property
    def count(self) -> int:
        return len(self._held)

    @property
    def min_offset(self) -> int:
        """Queue offset of the first message held; -1 if none is held."""
        while self._order and self._order[0] not in self._held:
            heapq.heappop(self._order)
        return self._order[0] if self._order else NOTHING_CONSUMED

    @property
    def max_offset(self) -> int:
        """Highest queue offset ever put; -1 at first."""
        return self._max_offset

    @property
    def span(self) -> int:
        """Distance between the first and the last message held: a stuck message makes it grow."""
        return max(self._held) - self.min_offset if self._held else 0

    def put(self, messages: Sequence[MessageExt]) -> None:
        """Add messages; one at the offset of a held message counts once."""
        offsets = [message.queue_offset for message in messages]
        if offsets and offsets[0] > self._max_offset and offsets == sorted({*offsets}):  # as pulls bring them
            self.size_bytes += sum([len(message.body) for message in messages])
            self._max_offset = offsets[-1]
            self._order += offsets  # still a heap: none that is held is larger
            self._held.update(zip(offsets, messages, strict=True))
            return
        for message in messages:
            if message.queue_offset not in self._held:
                self.size_bytes += len(message.body)
                self._max_offset = max(self._max_offset, message.queue_offset)
                heapq.heappush(self._order, message.queue_offset)
            self._held[message.queue_offset] = message

    def first(self, count: int) -> list[MessageExt]:
        """Return the first `count` messages, or fewer; they stay held."""
        least = self.min_offset  # also drops offsets that are no longer held
        if least == NOTHING_CONSUMED:
            return []
        offsets = [least] if count == 1 else heapq.nsmallest(count, self._held)
        return [self._held[offset] for offset in offsets]

    def is_locked(self, now_seconds: float) -> bool:
        """Return whether the lock still allows to consume the queue in order."""
        return self.locked_at is not None and now_seconds - self.locked_at <= LOCK_SECONDS

    def holds(self, message: MessageExt) -> bool:
        return message.queue_offset in self._held

    def remove(self, messages: Iterable[MessageExt]) -> int:
        """Remove consumed messages. Return the offset to commit, below which all are consumed; -1 if nothing was held."""
        held = self._held
        if not held:
            return NOTHING_CONSUMED
        removed = [held.pop(message.queue_offset, None) for message in messages]
        self.size_bytes -= sum([len(message.body) for message in removed if message is not None])
        if held:
            return self.min_offset
        self._order.clear()
        return self._max_offset + 1

    def clear(self) -> None:
        """Remove all messages, as an offset reset demands."""
        self._held.clear()
        self._order.clear()
        self.size_bytes = 0

    def pull_expired(self, now_seconds: float) -> bool:
        return now_seconds - self.last_pull_seconds > PULL_MAX_IDLE_SECONDS


@attrs.define(eq=False)
class PopProcessQueue(ProcessQueue):
    """Counts messages that were popped and not answered, regardless of which of a broker's queues they came from."""

    _unanswered: int = 0

    @property
    def count(self) -> int:
        return self._unanswered

    def put(self, messages: Sequence[MessageExt]) -> None:
        self._unanswered += sum(1 for _ in messages)

    def remove(self, messages: Iterable[MessageExt]) -> int:
        self._unanswered -= sum(1 for _ in messages)
        return NOTHING_CONSUMED


@attrs.frozen
class FlowLimits:
    """Limits on how far pulling may run ahead of consuming, for each queue (Apache: DefaultMQPushConsumer)."""

    max_count: int = attrs.field(default=1000, validator=number(1))
    """pullThresholdForQueue"""
    max_size_bytes: int = attrs.field(default=100 * 1024 * 1024, validator=number(1))
    """pullThresholdSizeForQueue, which is in MiB there"""
    max_span: int = attrs.field(default=2000, validator=number(1))
    """consumeConcurrentlyMaxSpan"""
    max_count_of_topic: int | None = None
    """pullThresholdForTopic: for all assigned queues of a topic together, in equal shares"""
    max_size_bytes_of_topic: int | None = None
    """pullThresholdSizeForTopic, which is in MiB there"""

    def share(self, queues: int) -> FlowLimits:
        """Return the limits of each queue if a topic has this many."""
        return attrs.evolve(
            self,
            max_count=_share(self.max_count_of_topic, queues, self.max_count),
            max_size_bytes=_share(self.max_size_bytes_of_topic, queues, self.max_size_bytes),
        )

    def exceeded(self, queue: ProcessQueue, *, spread: bool = True) -> str | None:
        """Return which limit stops the next pull, in words for the log; None if it may go.

        Without `spread`, the distance between offsets has no limit: no message is stuck in a queue that is consumed in
        order.
        """
        if queue.count > self.max_count:
            return f"{queue.count} messages held, the limit is {self.max_count}"
        if queue.size_bytes > self.max_size_bytes:
            return f"{queue.size_bytes} bytes held, the limit is {self.max_size_bytes}"
        if spread and queue.max_offset - queue.min_offset > self.max_span < queue.span:
            return f"offsets held span {queue.span}, the limit is {self.max_span}"
        return None


def _share(together: int | None, queues: int, otherwise: int) -> int:
    return otherwise if together is None else max(1, together // max(1, queues))
