"""A commit log file that is open for reads of ranges, with a bounded stretch of it in memory.

A broker may be writing, so two reads may differ: a missing record is read again before it is reported.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from twisted_mq.protocol.layouts.record import BLANK_BYTES, MAGICS, PLACE_BYTES, SMALLEST_RECORD, unpack_place
from twisted_mq.spark.errors import LogFileGone
from twisted_mq.spark.file_systems import is_remote, locate
from twisted_mq.spark.source.ranges import LOCAL, REMOTE, Gathering, ReadAhead
from twisted_mq.spark.source.stores import LogFile, Store
from twisted_mq.spark.source.witness import Witness
from twisted_mq.storage.files.mapped_log import LogBytes

SEARCH_BYTES = 64 * 1024
"""Bytes that a search reads at a time, and the least size of any read."""
MOST_DOUBTED = 64
"""Number of possible records that are in no queue, after which a search starts again at the file's start."""


class OpenLog:
    """An open file. Positions count from the file's start; reading ends at `limit`."""

    def __init__(self, store: Store, file: LogFile, log_end: int | None = None) -> None:
        """`log_end`: the physical offset at which the log ends for this reader. Raises LogFileGone."""
        system, _ = locate(store.uri)
        try:
            self._input = system.open_input_file(file.path)
        except FileNotFoundError as error:
            raise LogFileGone(file.path) from error
        self.path = file.path
        self.first_offset = file.first_offset
        self.size = file.size
        self.limit = file.size if log_end is None else min(file.size, log_end - file.first_offset)
        self._kept = (0, b"")
        self._ahead: ReadAhead | None = None
        self._is_remote = is_remote(store.uri)
        self._witness = Witness(store)

    def window(self, position: int, length: int) -> LogBytes:
        """Return the bytes from there on, fewer at the limit."""
        data = self.read(position, length)
        return LogBytes(data, self.path, self.first_offset + position, self.size - position - len(data))

    @property
    def gathering(self) -> Gathering:
        """Return the settings for reading single records."""
        return REMOTE if self._is_remote else LOCAL

    @contextlib.contextmanager
    def reading_ahead(self, begin: int, end: int, block_bytes: int) -> Iterator[None]:
        """Read ahead while [begin, end) is read forward, if reads are requests to another machine."""
        end = min(end + SEARCH_BYTES, self.limit)  # the last record may extend past it
        if not self._is_remote or end - begin <= block_bytes:
            yield
            return
        self._ahead = ReadAhead(lambda position, length: self._read(length, position), begin, end, block_bytes)
        try:
            yield
        finally:
            self._ahead.close()
            self._ahead = None

    def read(self, position: int, length: int) -> bytes:
        """Return the bytes from there on, fewer at the limit."""
        length = max(0, min(length, self.limit - position))
        if self._ahead is not None:
            found = self._ahead.read(position, length)
            if found is not None and len(found) == length:
                return found
        begin, data = self._kept
        if not begin <= position <= position + length <= begin + len(data):
            begin, data = position, self._read(max(length, min(SEARCH_BYTES, self.limit - position)), position)
            if len(data) <= SEARCH_BYTES:
                self._kept = begin, data
        return data[position - begin : position - begin + length]

    def read_only(self, position: int, length: int) -> bytes:
        """Return exactly these bytes, fewer at the limit."""
        return self._read(max(0, min(length, self.limit - position)), position)

    def look_again(self) -> None:
        """Discard bytes in memory, so that they are read again."""
        self._kept = (0, b"")

    def _read(self, length: int, position: int) -> bytes:
        data: bytes = self._input.read_at(length, position)
        return data

    def record_size(self, position: int) -> int:
        """Return the size of the valid record there; 0 without one."""
        record = self._record(position)
        return 0 if record is None else record.size

    def _record(self, position: int) -> LogBytes | None:
        """Return the valid record there, or None."""
        head = self.window(position, PLACE_BYTES)
        if head.size < PLACE_BYTES:
            return None
        size, magic, physical_offset = unpack_place(head.data)
        if magic not in MAGICS or physical_offset != head.first_offset:
            return None
        if not SMALLEST_RECORD <= size <= self.limit - position:
            return None
        record = self.window(position, size)
        return record if record.is_record(0) else None

    def records_from(self, position: int, end: int) -> Iterator[int]:
        """Yield positions of valid records in [position, end), found by their magic."""
        return (start for start in self._marks(position, end) if self.record_size(start))

    def _marks(self, position: int, end: int) -> Iterator[int]:
        """Yield positions in [position, end) at which a record may begin: its magic is in its place."""
        end = min(end, self.limit)
        while position < end:
            window = self.window(position, SEARCH_BYTES)
            for mark in window.marks(0, window.size):
                if position + mark >= end:
                    return
                yield position + mark
            if window.size < SEARCH_BYTES:
                return
            position += window.size - BLANK_BYTES + 2  # the next window finds a magic that extends into it

    def proven_before(self, position: int) -> int:
        """Return the position of a proven record at or before `position`: a queue entry points to it, or the file starts."""
        doubted, end, step = 0, min(position + 1, self.limit), SEARCH_BYTES
        while self._witness.has_queues and end > 0 and doubted < MOST_DOUBTED:
            begin = max(0, end - step)
            for start in reversed(list(self._marks(begin, end))):
                if self._is_named(start):
                    return start
                doubted += 1
            end, step = begin, 4 * step
        return 0

    def next_proven(self, position: int, end: int) -> int | None:
        """Return the position in [position, end) at which the log continues after damage: the first record with a queue entry.

        Without consume queues in the store it is the first valid record; None without one.
        """
        if not self._witness.has_queues:
            return next(self.records_from(position, end), None)
        return next((start for start in self._marks(position, end) if self._is_named(start)), None)

    def _is_named(self, position: int) -> bool:
        record = self._record(position)
        return record is not None and self._witness.names(bytes(record.data))

    def is_written(self, position: int, length: int) -> bool:
        """Return True if any of these bytes is not zero."""
        return bool(self.read_only(position, length).strip(b"\0"))
