"""The log of the records of all topics, in the order of arrival (Apache: CommitLog).

Records never cross the end of a file: if the next record plus 8 bytes do not fit, a blank record fills the file and
the record begins the next one. The 8 bytes are for the blank record, so it always fits.
"""

from __future__ import annotations

import threading
from itertools import accumulate

from twisted_mq.protocol.layouts.record import BLANK_BYTES, MAGICS, PLACE_BYTES, encode_blank, unpack_place
from twisted_mq.storage.errors import MissingLogFile, StoreFull, WrongFileSize
from twisted_mq.storage.files.mapped_file import MappedFile
from twisted_mq.storage.files.mapped_file_queue import MappedFileQueue, OddFile, Truncation
from twisted_mq.storage.files.next_file import NextFile
from twisted_mq.storage.files.system_calls import Allocate, posix_fallocate

_NOWHERE = 1 << 63
"""The base while no file is open for writing: greater than every offset."""


COMMITTED = 1 << 63
"""Greater than every offset: bytes written through a mapping can be read at once."""


class CommitLog:
    """Appends and reads records by physical offset.

    The store's hot path uses three fields: a record may be written to `view[max_offset - base:]` if its end is at or before
    `limit`; otherwise call `make_room` first. The writer advances `max_offset`. Readers get the bytes before `committed_offset`.
    """

    def __init__(
        self, directory: str, file_size: int, allocation_step: int, allocate: Allocate = posix_fallocate
    ) -> None:
        self.files = MappedFileQueue(directory, file_size, allocate)
        self.file_size = file_size
        self.max_offset = 0
        self.committed_offset = COMMITTED
        self.flushed_offset = 0
        self.last_store_timestamp = 0
        self.last_record_offset = 0
        """The offset of the last record that recovery or replication has read. A master's appends do not change it."""
        self.lengthened: OddFile | None = None
        self.base = _NOWHERE
        self.limit = 0
        self.view = memoryview(b"")
        self._readable = memoryview(b"")
        self._allocation_step = allocation_step
        self._flushing = threading.Lock()
        self._flush_end = COMMITTED
        self._next_file: NextFile | None = None
        self._prepare_bytes = 0
        self._at_random = False

    def prepare_files(self, next_file: NextFile, near_end_bytes: int) -> None:
        """From now on have the next file made in advance when the end of the last one is at most `near_end_bytes` away."""
        self._next_file = next_file
        self._prepare_bytes = near_end_bytes

    @property
    def largest_record(self) -> int:
        """The length of the longest record that fits into a file, in bytes."""
        return self.file_size - BLANK_BYTES

    @property
    def min_offset(self) -> int:
        """The physical offset of the first byte that is still in the log."""
        return self.files.min_offset

    def load(self) -> None:
        """Find the files. Raises WrongFileSize, MissingLogFile.

        If the last file is too short and the files before it have the right size, it is filled up with zeros, see `lengthened`.
        """
        odd = self.files.load()
        self.lengthened = odd[0] if len(odd) == 1 and self.files.lengthen_last(odd[0]) else None
        if odd and self.lengthened is None:
            raise WrongFileSize(odd[0].path, odd[0].actual_bytes, self.file_size)
        missing = self.files.missing()
        if missing is not None:
            raise MissingLogFile(missing)
        self.max_offset = self.flushed_offset = self.files.max_offset

    def truncate(self, offset: int) -> Truncation:
        """Drop everything from `offset` on and continue writing there."""
        truncation = self.files.truncate(offset)
        with self._flushing:
            self.max_offset = offset
            self._flush_end = min(self._flush_end, offset)
            self.flushed_offset = min(self.flushed_offset, offset)
        files = self.files.files
        if files and offset < files[-1].first_offset + self.file_size:
            self._activate(files[-1])
        else:
            self.base, self.limit = _NOWHERE, 0
        return truncation

    def read_at_random(self, at_random: bool) -> None:
        """Switch the kernel's read-ahead off or on again (Apache: scanFileAndSetReadMode)."""
        self._at_random = at_random
        for file in self.files.files:
            file.read_at_random(at_random)

    def _activate(self, file: MappedFile) -> None:
        file.read_at_random(self._at_random)
        view = file.view  # nothing has changed if it cannot be mapped
        self.base = file.first_offset
        self.view = view
        self._readable = file.readable
        self.limit = self.base + max(0, file.allocated - BLANK_BYTES)

    def make_room(self, size: int) -> None:
        """Make `size` bytes at `max_offset` writable in one file; go to the next file if needed.

        Nothing changes if it raises StoreFull. `size` is at most `largest_record`.
        """
        files = self.files.files
        if files and self.max_offset + size + BLANK_BYTES <= files[-1].first_offset + self.file_size:
            file = files[-1]
            file.reserve(self.max_offset - file.first_offset + size + BLANK_BYTES, self._allocation_step)
            self._activate(file)
            if self._next_file is not None and file.allocated >= file.size - self._prepare_bytes:
                self._next_file.request(file.first_offset + file.size)
            return
        self._roll(size)

    def _roll(self, size: int) -> None:
        files = self.files.files
        full = files[-1] if files else None
        start = full.first_offset + self.file_size if full is not None else 0
        if full is not None and self.max_offset < start:
            full.reserve(self.max_offset - full.first_offset + BLANK_BYTES, BLANK_BYTES)
        created = self._file_for(start)
        try:
            created.reserve(size + BLANK_BYTES, self._allocation_step)
        except StoreFull:
            files.pop()
            created.delete()
            raise
        if full is not None and self.max_offset < start:
            self._fill(full)
        self.max_offset = start
        self._activate(created)

    def _file_for(self, start: int) -> MappedFile:
        made = self._next_file.take(start) if self._next_file is not None else None
        if made is None:
            return self.files.append_file(start)
        self.files.files.append(made)
        return made

    def _fill(self, file: MappedFile) -> None:
        position = self.max_offset - file.first_offset
        file.view[position : position + BLANK_BYTES] = encode_blank(self.file_size - position)
        file.wrote = self.file_size

    def commit(self) -> int:
        """Return the offset up to which everything is in the files: here, all that was written."""
        return self.max_offset

    def begin_flush(self) -> int:
        """Commit the bytes to be flushed now and return their end; `end_flush` follows. For the flush thread."""
        with self._flushing:
            self._flush_end = COMMITTED
        return self.commit()

    def end_flush(self, end: int) -> None:
        """Record that the bytes before `end` are on disk, unless they were truncated meanwhile: other bytes may be there now."""
        with self._flushing:
            self.flushed_offset = min(end, self._flush_end)

    def append_bytes(self, data: bytes | memoryview) -> None:
        """Write a master's bytes at `max_offset`, into as many files as they need. Raises StoreFull.

        The bytes written before the error stay. No blank record is made: the bytes contain the master's.
        """
        position = 0
        while position < len(data):
            file = self.files.find(self.max_offset) or self.files.append_file(self.max_offset)
            start = self.max_offset - file.first_offset
            end = min(file.size, start + len(data) - position)
            file.reserve(end, self._allocation_step)
            file.view[start:end] = data[position : position + end - start]
            file.wrote = end
            self.max_offset += end - start
            position += end - start
            self._activate(file)

    def read_bytes(self, offset: int, max_bytes: int) -> memoryview | None:
        """Return the log's bytes from `offset` on without a copy, at most to the end of their file; None outside the log."""
        if not self.min_offset <= offset <= self.max_offset:
            return None
        end = min(offset + max_bytes, self.max_offset, self.committed_offset, self.next_file_offset(offset))
        file = self.files.find(offset)
        if file is None or end <= offset:
            return memoryview(b"")
        return file.readable[offset - file.first_offset : end - file.first_offset]

    def read(self, offset: int, size: int) -> memoryview | None:
        """Return `size` bytes from `offset` without a copy; None unless all of them are written and in one file."""
        end = offset + size
        if end > self.max_offset or size < 0:
            return None
        if offset >= self.base:
            return self._readable[offset - self.base : end - self.base]
        file = self.files.find(offset)
        if file is None or end > file.first_offset + self.file_size:
            return None
        return file.readable[offset - file.first_offset : end - file.first_offset]

    def read_many(
        self, offsets: tuple[int, ...], sizes: tuple[int, ...], first_offset: int = 0, joined: bool = False
    ) -> list[memoryview] | None:
        """Return the bytes at each place without a copy; as one view if `joined` and they follow one another without a gap.

        None unless readers get all of them, and all are in the newest file and not before `first_offset`.
        """
        base, end = max(self.base, first_offset), min(self.max_offset, self.committed_offset)
        if min(offsets) < base or end < base:
            return None
        base = self.base
        if joined and len(offsets) > 1 and offsets[1] == offsets[0] + sizes[0]:
            ends = tuple(accumulate(sizes, initial=offsets[0]))
            if ends[:-1] == offsets and ends[-1] <= end and min(sizes) > 0:
                return [self._readable[offsets[0] - base : ends[-1] - base]]
        view = self._readable[: end - base]
        records = [view[(start := offset - base) : start + size] for offset, size in zip(offsets, sizes, strict=True)]
        return records if tuple(map(len, records)) == sizes else None

    def record_at(self, offset: int) -> memoryview | None:
        """Return the record that begins at `offset`; None if no record begins there. The record must contain that offset."""
        head = self.read(offset, PLACE_BYTES)
        if head is None:
            return None
        size, magic, own_offset = unpack_place(head)
        return self.read(offset, size) if magic in MAGICS and own_offset == offset else None

    def next_file_offset(self, offset: int) -> int:
        """Return the first offset of the file after the one that contains `offset` (Apache: rollNextFile)."""
        return offset + self.file_size - offset % self.file_size

    def release(self) -> None:
        """Release all files; views that others hold stay valid."""
        self.view = self._readable = memoryview(b"")
        self.base, self.limit = _NOWHERE, 0
        if self._next_file is not None:
            self._next_file.discard()
        self.files.release()
