"""Writes a consume queue again from the records of the log, in their order.

Queue offsets go up by one. A run of records that begins lower means that the topic was deleted and created again: the older
entries are dropped, as in Apache's dispatch. If a single record is out of order and the next one continues the old order,
its queue offset is damaged, and it gets no entry, so that it does not replace others. Offsets without a record become
fillers before the first one and bridges after it, as in ConsumeQueue.append_at.
"""

from __future__ import annotations

import os

import attrs
import numpy as np

from twisted_mq.protocol.columns import Numbers
from twisted_mq.protocol.layouts.queue_entry import ENTRY_BYTES, FILLER_SIZE
from twisted_mq.storage.files import system_calls
from twisted_mq.storage.files.directory import sync_directory
from twisted_mq.storage.files.paths import file_name
from twisted_mq.storage.queues.queue_files import QueueFiles
from twisted_mq.storage.tools.findings import runs

LARGEST_HOLE = 50_000_000
"""The most queue offsets that are bridged: 1 GB of entries."""
_BUFFERED_ROWS = 16384


@attrs.define
class QueueWriter:
    """Takes rows of (queue offset, physical offset, size, tags code). With `directory` None it only counts.

    Raises OSError. `left_out` has the rows that got no entry.
    """

    directory: str | None
    file_size: int
    begin: int = 0
    end: int = 0
    bridges: int = 0
    left_out: list[tuple[int, int, int, int]] = attrs.field(factory=list)
    _empty: bool = True
    _bridging: bool = False
    _doubtful: Numbers | None = None
    _buffer: list[bytes] = attrs.field(factory=list)
    _buffered: int = 0

    @property
    def entries(self) -> int:
        """Return how many entries were written."""
        return self.end - self.begin

    @property
    def entries_a_file(self) -> int:
        """The number of entries in one file."""
        return self.file_size // ENTRY_BYTES

    def add(self, records: Numbers) -> None:
        """Take the queue's next records."""
        for first, count in runs(records[:, 0]):
            self._run(records[first : first + count])

    def _run(self, rows: Numbers) -> None:
        first = int(rows[0, 0])
        self._settle(first)
        if self._empty:
            self._begin_at(first)
        if first < self.end:
            if len(rows) == 1:
                self._doubtful = rows
                return
            self._truncate(first)
        elif first - self.end > (self.entries_a_file if len(rows) == 1 else LARGEST_HOLE):
            self._leave_out(rows)
            return
        self._append(rows)

    def _settle(self, next_offset: int) -> None:
        """Decide about a single record with a lower offset, now that the next record is known."""
        rows, self._doubtful = self._doubtful, None
        if rows is None:
            return
        if next_offset == rows[0, 0] + 1:
            self._truncate(int(rows[0, 0]))
            self._append(rows)
        else:
            self._leave_out(rows)

    def _leave_out(self, rows: Numbers) -> None:
        self.left_out += [tuple(row) for row in rows.tolist()]

    def _begin_at(self, offset: int) -> None:
        self._empty = self._bridging = False
        self.begin = self.end = offset - offset % self.entries_a_file

    def _append(self, rows: Numbers) -> None:
        hole = int(rows[0, 0]) - self.end
        entries = np.zeros(hole + len(rows), QueueFiles.dtype)
        entries["physical_offset"][hole:], entries["size"][hole:] = rows[:, 1], rows[:, 2]
        entries["tags_code"][hole:] = rows[:, 3]
        if self._bridging:
            entries[:hole] = entries[hole]
            self.bridges += hole
        else:
            entries["size"][:hole] = FILLER_SIZE
        self._bridging = True
        self.end += len(entries)
        self._buffer.append(entries.tobytes())
        self._buffered += len(entries)
        if self._buffered >= _BUFFERED_ROWS:
            self._write_out()

    def _write_out(self) -> None:
        data = b"".join(self._buffer)
        offset = self.end - self._buffered
        self._buffer, self._buffered = [], 0
        while self.directory is not None and data:
            inside = offset % self.entries_a_file
            count = min(len(data) // ENTRY_BYTES, self.entries_a_file - inside)
            self._write(offset - inside, inside, data[: count * ENTRY_BYTES])
            offset, data = offset + count, data[count * ENTRY_BYTES :]

    def _write(self, first_entry: int, inside: int, data: bytes) -> None:
        assert self.directory is not None
        os.makedirs(self.directory, exist_ok=True)
        path = os.path.join(self.directory, file_name(first_entry * ENTRY_BYTES))
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            if os.fstat(descriptor).st_size != self.file_size:
                os.ftruncate(descriptor, self.file_size)
            os.pwrite(descriptor, data, inside * ENTRY_BYTES)
        finally:
            os.close(descriptor)

    def _truncate(self, offset: int) -> None:
        """Drop the entries from `offset` on."""
        self._write_out()
        if offset < self.begin:
            self._remove_files(0)
            self._begin_at(offset)
            return
        inside = offset % self.entries_a_file
        self._remove_files(offset + self.entries_a_file - inside if inside else offset)
        if inside and self.directory is not None:
            kept = min(self.end, offset - inside + self.entries_a_file)
            self._write(offset - inside, inside, bytes((kept - offset) * ENTRY_BYTES))
        self.end = offset
        self._bridging = offset > self.begin

    def _remove_files(self, first_entry: int) -> None:
        if self.directory is None or not os.path.isdir(self.directory):
            return
        for name in os.listdir(self.directory):
            if int(name) >= first_entry * ENTRY_BYTES:
                os.unlink(os.path.join(self.directory, name))

    def finish(self) -> None:
        """Write the rest and put everything on disk. If the last record fell back to 0, its topic was created again."""
        if self._doubtful is not None:
            self._settle(1 if self._doubtful[0, 0] == 0 else -1)
        self._write_out()
        if self.directory is None or not os.path.isdir(self.directory):
            return
        for name in os.listdir(self.directory):
            descriptor = os.open(os.path.join(self.directory, name), os.O_RDONLY | os.O_CLOEXEC)
            try:
                system_calls.fdatasync(descriptor)
            finally:
                os.close(descriptor)
        sync_directory(self.directory)
