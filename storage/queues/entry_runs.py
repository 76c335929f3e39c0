"""Entries of many records, gathered by queue; consecutive entries are written or compared in one piece."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from twisted_mq.protocol.flags import OUT_OF_QUEUES
from twisted_mq.protocol.layouts.ordinary_records import Row
from twisted_mq.protocol.layouts.queue_entry import ENTRY_BYTES, ENTRY_FIELDS, entries_struct
from twisted_mq.storage.queues.consume_queue import ConsumeQueue

Key = tuple[bytes, int]
"""Topic and queue id."""


@attrs.define
class EntryRun:
    """Consecutive entries from `first` on: physical offset, size and tags code of each, in one flat sequence."""

    queue: ConsumeQueue
    first: int
    next_offset: int
    numbers: list[int] = attrs.field(factory=list)

    def reserve(self) -> None:
        """Take disk space for the entries after the queue's last one. Raises StoreFull."""
        self.queue.next_offset = self.queue.max_offset
        self.queue.reserve(self.next_offset - self.first)

    def write(self) -> None:
        """Write the entries after the queue's last one; their space was reserved."""
        self.queue.append_many(self.numbers)
        self.queue.next_offset = self.next_offset

    def is_there(self) -> bool:
        """Return whether the queue already has these entries."""
        queue, done = self.queue, 0
        while done < len(self.numbers):
            offset = self.first + done // ENTRY_FIELDS
            stored = queue.entries_in_file(offset, self.next_offset - offset)
            behind = done + len(stored) // ENTRY_BYTES * ENTRY_FIELDS
            part = self.numbers[done:behind]
            if not part or stored != entries_struct(len(part) // ENTRY_FIELDS).pack(*part):
                return False
            done = behind
        return True


Begin = Callable[[Row], EntryRun | None]
"""Makes an empty run that begins with a record; None if the queue's entries need more than a row contains."""


def gather(base: int, rows: Sequence[Row], begin: Begin, runs: dict[Key, EntryRun]) -> int:
    """Put the entries of records of the file at `base` into `runs`; return how many records, from the first on.

    Stops before a record that does not follow in its queue, or for which `begin` has no run.
    """
    taken = 0
    for row in rows:
        topic, queue_id, queue_offset, position, size, tags_code, _, sys_flag = row
        if not sys_flag & OUT_OF_QUEUES:
            run = runs.get((topic, queue_id))
            if run is None:
                run = begin(row)
                if run is None:
                    break
                runs[topic, queue_id] = run
            if queue_offset != run.next_offset:
                break
            run.next_offset += 1
            run.numbers += (base + position, size, tags_code)
        taken += 1
    return taken
