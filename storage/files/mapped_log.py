"""Reads the bytes of a mapped commit log file: identifies the record at a position, and searches for the next one.

A record proves itself: by its magic, by lengths that add up, and by its own physical offset, which must be its place. So a
reader that lost its way in damaged bytes finds the next record by searching for the magic, and knows that it is one.
Nothing here writes or takes the store's lock: a broker may be writing at the same time.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator

from twisted_mq.protocol.errors import RecordError
from twisted_mq.protocol.layouts.record import (
    BLANK_BYTES,
    MAGIC_BLANK,
    MAGIC_POSITION,
    MAGIC_V1,
    MAGICS,
    RecordHead,
    read_head,
    read_mark,
    read_spans,
)
from twisted_mq.storage.files.system_calls import data_ranges

MAGIC_PREFIX = MAGICS[MAGIC_V1][:-1]
"""The common beginning of both versions' magic codes: they differ in the last byte only."""
_CHUNK_BYTES = 1 << 20


class LogBytes:
    """A part of one commit log file. Positions count from the start of the part.

    `first_offset` is its physical offset, `rest` is how many bytes of the file follow it. After `data_end` there are only
    zeros: files are made sparse, at full size.
    """

    def __init__(self, data: bytes | mmap.mmap, path: str, first_offset: int, rest: int = 0) -> None:
        self.data = data
        self.path = path
        self.name = os.path.basename(path)
        self.first_offset = first_offset
        self.size = len(data)
        self.rest = rest
        self.data_end = self.size

    def record_at(self, position: int) -> RecordHead:
        """Return the head of the record at a position. Raises RecordError unless a whole record with this place is there."""
        head = read_head(self.data, position)
        if head.physical_offset != self.first_offset + position:
            raise RecordError(
                f"the record says it is at {head.physical_offset}, not at {self.first_offset + position}", position
            )
        read_spans(self.data, position, head)
        return head

    def is_record(self, position: int) -> bool:
        """Return whether a whole record with this place begins there."""
        try:
            self.record_at(position)
        except RecordError:
            return False
        return True

    def is_blank(self, position: int) -> bool:
        """Return whether the blank record that fills the rest of the file begins there."""
        if self.size - position < BLANK_BYTES:
            return False
        return read_mark(self.data, position) == (self.size + self.rest - position, MAGIC_BLANK)

    def next_record(self, position: int, end: int) -> int | None:
        """Return the position of the first record at or after `position` and before `end`; None without one.

        It searches for the magic, so it costs no more than reading the skipped bytes.
        """
        return next((place for place in self.marks(position, end) if self.is_record(place)), None)

    def marks(self, position: int, end: int) -> Iterator[int]:
        """Yield the positions in [position, end) where a record may begin, because its magic follows there; nothing is proved."""
        for magic in self._places_of(MAGIC_PREFIX, position + MAGIC_POSITION, end + MAGIC_POSITION):
            yield magic - MAGIC_POSITION

    def _places_of(self, pattern: bytes, position: int, end: int) -> Iterator[int]:
        """Yield where the pattern begins in [position, end). In chunks, as `bytes.find` is ten times faster than `mmap.find`."""
        end = min(end, self.data_end)
        while position < end:
            chunk_end = min(end, position + _CHUNK_BYTES)
            chunk = self.data[position : chunk_end + len(pattern) - 1]
            found = chunk.find(pattern)
            while found >= 0:
                yield position + found
                found = chunk.find(pattern, found + 1)
            position = chunk_end

    def written_end(self, start: int, end: int) -> int:
        """Return the position after the last byte that is not zero; `start` if all are zero.

        Files are created at full size, all zero, and filled step by step.
        """
        end = max(start, min(end, self.data_end))
        while start < end:
            chunk_start = max(start, end - _CHUNK_BYTES)
            chunk = self.data[chunk_start:end].rstrip(b"\0")
            if chunk:
                return chunk_start + len(chunk)
            end = chunk_start
        return start

    def fault_at(self, position: int) -> str:
        """Return a description of the fault of the bytes at a position."""
        try:
            self.record_at(position)
        except RecordError as error:
            return error.reason
        return "no fault"


class MappedLog(LogBytes):
    """A whole commit log file. Views of `data` keep the mapping alive."""

    def __init__(self, path: str, first_offset: int, limit: int = 0) -> None:
        """Map the file; of a longer one only the first `limit` bytes, 0 for all.

        Raises FileNotFoundError; ValueError for an empty file.
        """
        with open(path, "rb") as file:
            length = min(limit, os.fstat(file.fileno()).st_size)
            super().__init__(mmap.mmap(file.fileno(), length, access=mmap.ACCESS_READ), path, first_offset)
            self.data_end = max((end for _, end in data_ranges(file.fileno(), 0, self.size)), default=0)
