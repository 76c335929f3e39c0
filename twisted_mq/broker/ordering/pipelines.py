"""Keeps track of the active producer's sends of a unit in one epoch: which message is next, which is a repeat. Pure.

A producer sends many messages before the first is acknowledged. If one is refused, those after it must not be stored
before it. A message that was sent twice must not be stored twice, or a later message would come before an earlier one's
copy.
"""

from __future__ import annotations

import bisect

import attrs

from twisted_mq.protocol.messages.order_mark import OrderMark

MOST_STRETCHES = 4096
"""The limit of stretches of one queue: each message of a plain producer in between begins another. Older repeats count as
gaps.
"""


class NotNext(Exception):
    """Raised when a message is missing before this one: `expected` is its sequence."""

    def __init__(self, expected: int) -> None:
        super().__init__(f"sequence {expected} is expected")
        self.expected = expected


@attrs.define
class _Pipeline:
    """The messages of one queue up to `last`, all stored. Stretches map a sequence to the queue offset from which others
    follow.
    """

    last: int
    sequences: list[int] = attrs.field(factory=list)
    offsets: list[int] = attrs.field(factory=list)

    def offset_of(self, sequence: int) -> int | None:
        """Return the offset of a stored message; None if it is forgotten, or was given up before it was stored."""
        place = bisect.bisect_right(self.sequences, sequence) - 1
        if place < 0:
            return None
        offset = self.offsets[place] + sequence - self.sequences[place]
        is_skipped = place + 1 < len(self.offsets) and offset >= self.offsets[place + 1]
        return None if is_skipped else offset

    def appended(self, sequence: int, offset: int) -> None:
        if not self.offsets or offset - self.offsets[-1] != sequence - self.sequences[-1]:
            self.sequences.append(sequence)
            self.offsets.append(offset)
            del self.sequences[:-MOST_STRETCHES], self.offsets[:-MOST_STRETCHES]
        self.last = sequence


@attrs.define
class Pipelines:
    """The pipelines of the queues of one unit, for the leader whose term is `leader`."""

    leader: int
    _queues: dict[int, _Pipeline] = attrs.field(factory=dict)

    def led_by(self, leader: int) -> None:
        """Start again for a newer leader."""
        self.leader = leader
        self._queues.clear()

    def place(self, order: OrderMark) -> int | None:
        """Return the queue offset of a repeat, None for the message that comes next. Raises NotNext.

        All messages before a message's base are settled: stored, or given up by their producer.
        """
        pipeline = self._queues.get(order.queue)
        sequence = order.sequence
        expected = order.base if pipeline is None else max(pipeline.last + 1, order.base)
        if sequence == expected:
            return None
        offset = pipeline.offset_of(sequence) if pipeline is not None and sequence < expected else None
        if offset is None:
            raise NotNext(expected)
        return offset

    def appended(self, order: OrderMark, offset: int) -> None:
        """Record that the next message is stored at that queue offset."""
        pipeline = self._queues.get(order.queue)
        if pipeline is None:
            pipeline = self._queues[order.queue] = _Pipeline(0)
        pipeline.appended(order.sequence, offset)
