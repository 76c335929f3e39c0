"""Walks the log record by record, and finds where it stops being sound."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from mmap import mmap
from typing import NamedTuple, Protocol

import attrs

from twisted_mq.protocol.errors import RecordError
from twisted_mq.protocol.layouts.derive import Buffer
from twisted_mq.protocol.layouts.ordinary_records import POSITION, SIZE, Row, pass_records, read_rows
from twisted_mq.protocol.layouts.record import (
    BLANK_BYTES,
    MAGIC_BLANK,
    MAGIC_POSITION,
    MAGICS,
    read_head,
    read_mark,
    read_spans,
    topic_of,
)
from twisted_mq.protocol.layouts.record_codec import DispatchFields, dispatch_fields
from twisted_mq.protocol.messages.delay_levels import DEFAULT_DELAY_TABLE
from twisted_mq.protocol.text.java import from_utf8

_STEP_BYTES = 128 << 10
"""The number of bytes of the log that are read into rows at once."""


class LogFile(Protocol):
    """A commit log file, open for writing or only for reading."""

    path: str
    first_offset: int
    size: int

    @property
    def readable(self) -> memoryview:
        """The whole file."""

    def find_all(self, data: bytes, position: int) -> Iterator[int]:
        """Yield the positions of these bytes from `position` on."""


class StopReason(enum.Enum):
    """Why a scan ended."""

    NOTHING_WRITTEN = "nothing was written after it"
    FILE_END = "the last file is full"
    DAMAGED = "damaged"


class Rows(NamedTuple):
    """Ordinary records of one file; `base` is the file's first offset."""

    first_offset: int
    rows: list[Row]


@attrs.define
class LogScan:
    """Iterates over the records from a record's first byte on. Afterwards `end_offset` is the end of the last intact record.

    A record is intact if its magic is known, its lengths add up, the body's CRC is right, it contains its own offset, and
    its topic is printable. A blank record leads to the next file whatever its size, as in Apache's checkMessageAndReturnSize.
    """

    files: Sequence[LogFile]
    start: int
    delay_table: Mapping[int, int] = DEFAULT_DELAY_TABLE
    check_crc: bool = True
    end_offset: int = attrs.field(init=False, default=0)
    stop_reason: StopReason = attrs.field(init=False, default=StopReason.FILE_END)
    problem: str = attrs.field(init=False, default="")

    def __iter__(self) -> Iterator[DispatchFields]:
        for part in self._parts(0):
            assert isinstance(part, DispatchFields)
            yield part

    def parts(self) -> Iterator[Rows | DispatchFields]:
        """Yield the same records: ordinary ones as rows, many at a time, the others one by one."""
        return self._parts(_STEP_BYTES)

    def _parts(self, step_bytes: int) -> Iterator[Rows | DispatchFields]:
        self.end_offset = self.start
        for file in self.files:
            if file.first_offset + file.size <= self.start:
                continue
            position = max(0, self.start - file.first_offset)
            yield from self._file(file, position, step_bytes)
            if self.problem or self.stop_reason is StopReason.NOTHING_WRITTEN:
                return

    def _file(self, file: LogFile, position: int, step_bytes: int) -> Iterator[Rows | DispatchFields]:
        view = file.readable
        while True:
            rows = self._rows(file, position, step_bytes) if step_bytes else []
            if rows:
                position = rows[-1][POSITION] + rows[-1][SIZE]
                self.end_offset = file.first_offset + position
                yield Rows(file.first_offset, rows)
                continue
            self.end_offset = file.first_offset + position
            if file.size - position < BLANK_BYTES:
                return
            size, magic = read_mark(view, position)
            if magic == MAGIC_BLANK:
                return
            if size == 0 and magic == 0:
                self.stop_reason = StopReason.NOTHING_WRITTEN
                return
            record = self._record(view, position)
            if record is None:
                return
            yield record
            position += record.size

    def _rows(self, file: LogFile, position: int, step_bytes: int) -> list[Row]:
        """Return the intact ordinary records from a position on."""
        view, rows = file.readable, list[Row]()
        data = view.obj
        assert isinstance(data, mmap)
        passed = pass_records(data, file.first_offset, position, min(file.size, position + step_bytes))
        read_rows(data, position, passed, passed, rows, check_crc=self.check_crc)
        if not all(from_utf8(topic).isprintable() for topic in {row[0] for row in rows}):
            return []
        if rows and _torn(view, rows[-1][POSITION], rows[-1][SIZE]):
            rows.pop()
        return rows

    def _record(self, view: memoryview, position: int) -> DispatchFields | None:
        try:
            record = dispatch_fields(view, position, check_crc=self.check_crc, delay_table=self.delay_table)
        except RecordError as error:
            self._damaged(error.reason)
            return None
        problem = self._wrong(record) or _torn(view, position, record.size)
        if problem:
            self._damaged(problem)
            return None
        return record

    def _wrong(self, record: DispatchFields) -> str:
        """Return the faults that lengths and the body's CRC do not show: no CRC covers the rest of a record."""
        if record.physical_offset != self.end_offset:
            return f"the record says it is at {record.physical_offset}"
        if not record.topic.isprintable() or record.queue_id < 0 or record.queue_offset < 0:
            return f"the record says it is {record.topic!r}, queue {record.queue_id}, offset {record.queue_offset}"
        return ""

    def _damaged(self, problem: str) -> None:
        self.stop_reason = StopReason.DAMAGED
        self.problem = problem


def _torn(view: memoryview, position: int, size: int) -> str:
    """Return the fault of the last record if a kill left it half-written: a slave writes bytes as they arrive.

    No CRC covers properties. Unwritten ones are zeros, and no properties end with zeros. Apache's recovery accepts them.
    """
    end = position + size
    if view[end - 1] or any(view[end : end + BLANK_BYTES]):
        return ""
    spans = read_spans(view, position, read_head(view, position))
    return "its properties end in zeros, they were not written whole" if spans.properties < spans.end else ""


def first_store_timestamp(view: Buffer) -> int:
    """Return the store time in ms of the record that begins a log file; 0 if no record begins there."""
    try:
        return read_head(view).store_timestamp
    except RecordError:
        return 0


def intact_behind(files: Sequence[LogFile], offset: int) -> int | None:
    """Return the physical offset of an intact record after `offset`, at which the log is damaged; None if none follows."""
    for file in files:
        if file.first_offset + file.size > offset:
            found = _intact_in(file, max(0, offset + 1 - file.first_offset))
            if found is not None:
                return file.first_offset + found
    return None


def _intact_in(file: LogFile, start: int) -> int | None:
    """Return the position of an intact record at or after `start` in a file; None without one."""
    for magic in MAGICS.values():
        for found in file.find_all(magic, start + MAGIC_POSITION):
            if _is_intact(file, found - MAGIC_POSITION):
                return found - MAGIC_POSITION
    return None


def _is_intact(file: LogFile, position: int) -> bool:
    try:
        record = dispatch_fields(file.readable, position, check_crc=True)
    except RecordError:
        return False
    return record.physical_offset == file.first_offset + position


def record_matches(record: memoryview, topic: str, queue_id: int, queue_offset: int, size: int) -> bool:
    """Return whether a record matches its queue entry."""
    try:
        head = read_head(record)
    except RecordError:
        return False
    return (head.queue_id, head.queue_offset, head.size) == (queue_id, queue_offset, size) and topic_of(record) == topic
