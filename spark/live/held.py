"""Messages of live queues in files, for readers of live queues: brokers need not be asked for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.spark.columns.makers import Origin
from twisted_mq.spark.live.cluster import Cluster
from twisted_mq.spark.live.pulling import PullSelection, Stretch
from twisted_mq.spark.live.queue_offsets import Offsets, first_offsets, offsets_at
from twisted_mq.storage.columns.record_columns import RecordColumns


class HeldRecords(NamedTuple):
    """Messages of one queue, in its order, from a file."""

    records: RecordColumns
    origin: Origin


class Held(Protocol):
    """Files of several brokers. An offset means the same message there and at the broker."""

    def check(self) -> None:
        """Check the stores. Raises NoCommitLog if one is missing."""

    def first_offset(self, queue: MessageQueue) -> int | None:
        """Return the offset of the first message of a queue; None if no file has one."""

    def offset_at(self, queue: MessageQueue, timestamp_ms: int) -> int | None:
        """Return the offset of the first message stored at that time or later; None if no file has one."""

    def mean_size(self, queue: MessageQueue, offset: int) -> float | None:
        """Return the mean size of messages from an offset on, in bytes; None if no file has one."""

    def pieces(self, stretch: Stretch, selection: PullSelection) -> Iterator[HeldRecords | Stretch]:
        """Yield a stretch in order: messages in files, and between them the stretches to ask brokers for."""


def first_of_both(cluster: Cluster, queues: Sequence[MessageQueue], held: Held | None) -> Offsets:
    """Return the offset of each queue's first message at a broker or in a file."""
    found = first_offsets(cluster, queues)
    return found if held is None else {queue: _least(first, held.first_offset(queue)) for queue, first in found.items()}


def at_time_of_both(cluster: Cluster, queues: Sequence[MessageQueue], timestamp_ms: int, held: Held | None) -> Offsets:
    """Return the offset of each queue's first message stored at that time or later; its end if neither has one."""
    found = offsets_at(cluster, queues, timestamp_ms)
    if held is None:
        return found
    return {queue: _least(offset, held.offset_at(queue, timestamp_ms)) for queue, offset in found.items()}


def _least(offset: int, other: int | None) -> int:
    return offset if other is None else min(offset, other)
