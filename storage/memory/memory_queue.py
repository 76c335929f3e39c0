"""A queue of the store in memory, of either kind: lists instead of consume_queue and batch_consume_queue."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from twisted_mq.protocol.boundary_type import BoundaryType
from twisted_mq.protocol.layouts.queue_entry import ENTRY_FIELDS


@attrs.define(eq=False)
class MemoryQueue:
    """A queue: entries of physical offset, size and tags code; `counts` has the number of messages of each record put.

    The records of a simple queue hold one message each.
    """

    topic: str
    queue_id: int
    batched: bool = False
    next_offset: int = 0
    max_offset: int = 0
    entries: list[tuple[int, int, int]] = attrs.field(factory=list)
    counts: list[int] = attrs.field(factory=list)

    def expect(self, count: int) -> None:
        """Note a record of `count` messages that was put."""
        self.counts.append(count)
        self.next_offset += count

    def append(self, physical_offset: int, size: int, tags_code: int) -> None:
        """Write the next visible entry."""
        self.max_offset += self.counts[len(self.entries)]
        self.entries.append((physical_offset, size, tags_code))

    def append_many(self, numbers: Sequence[int]) -> None:
        """Write the next visible entries."""
        for index in range(0, len(numbers), ENTRY_FIELDS):
            self.append(*numbers[index : index + ENTRY_FIELDS])

    def place_of(self, offset: int) -> int:
        """Return the place of the record that holds the message at an offset; the end without one."""
        if not self.batched:
            return min(offset, len(self.entries))
        behind = 0
        for place in range(len(self.entries)):
            behind += self.counts[place]
            if offset < behind:
                return place
        return len(self.entries)

    def base(self, place: int) -> int:
        """Return the offset of a record's first message."""
        return sum(self.counts[:place]) if self.batched else place


def place_by_time(times: list[int], timestamp_ms: int, boundary: BoundaryType) -> int:
    """Return the place of a batch queue's record for a time, see BatchConsumeQueue.offset_by_time."""
    if not times or timestamp_ms >= times[-1]:
        return max(0, len(times) - 1)
    same = [place for place, time in enumerate(times) if time == timestamp_ms]
    if same:
        return same[0] if boundary is BoundaryType.LOWER else same[-1]
    return next(place for place, time in enumerate(times) if time > timestamp_ms)
