"""Walks a whole log as batches of proved records and the gaps between them, or one stretch of it for Spark's tasks.

Record sizes chain the records of a file; numpy proves whole batches. If the chain breaks, the walk continues at the next
record that proves itself by magic, lengths and own offset; with `check_bodies` by its body's CRC too. Files are mapped one
at a time and only read.
"""

from __future__ import annotations

import collections
import itertools
import os
from collections.abc import Iterator, Sequence

import attrs

from twisted_mq.protocol.layouts.record import BLANK_BYTES
from twisted_mq.storage.columns.chain import chained
from twisted_mq.storage.columns.record_columns import RecordColumns, intact_records
from twisted_mq.storage.errors import NoStore
from twisted_mq.storage.files.files_at_rest import FileAtRest, files_in
from twisted_mq.storage.files.mapped_log import LogBytes, MappedLog
from twisted_mq.storage.files.paths import StorePaths, file_name

BATCH_BYTES = 4 << 20
"""A batch ends with the record that reaches this size."""
DEFAULT_FILE_BYTES = 1 << 30
_PAGE = 4096


@attrs.frozen
class Gap:
    """Bytes of the log that belong to no proved record; `written` of them lie before the last non-zero byte."""

    path: str
    physical_offset: int
    length: int
    reason: str
    written: int

    @property
    def end(self) -> int:
        """The physical offset after the gap."""
        return self.physical_offset + self.length


@attrs.frozen
class Break:
    """A position in a file at which no record proves itself, and the position of the next that does; None without a next one."""

    start: int
    following: int | None
    reason: str


class LogFiles:
    """The log of a store as it was when this object was made. `file_size` is the expected length of every file."""

    def __init__(self, root: str, commit_log: str | None = None, file_size: int = 0) -> None:
        """Find the files; `file_size` 0 means that it is determined from them. Raises NoStore."""
        self.paths = StorePaths(root, commit_log)
        self.directory = self.paths.commit_log
        if not os.path.isdir(self.directory):
            raise NoStore(root)
        self.files = files_in(self.directory)
        self.file_size = file_size or standard_size(self.files)

    @property
    def min_offset(self) -> int:
        """The physical offset of the log's first byte."""
        return self.files[0].first_offset if self.files else 0

    @property
    def size_bytes(self) -> int:
        """The total length of the files in bytes."""
        return sum(file.size for file in self.files)

    def path_of(self, physical_offset: int) -> str:
        """Return the path of the file that contains an offset, whether it exists or not."""
        return os.path.join(self.directory, file_name(physical_offset - physical_offset % self.file_size))


def standard_size(files: Sequence[FileAtRest]) -> int:
    """Return the expected length of a log's files: that of most files if the names agree, else the distance between names.

    For a single file its size, in whole pages; a size near Apache's 1 GiB counts as 1 GiB.
    """
    steps = [after.first_offset - before.first_offset for before, after in itertools.pairwise(files)]
    if not files:
        return DEFAULT_FILE_BYTES
    usual = collections.Counter(file.size for file in files).most_common(1)[0][0]
    if not any(file.first_offset % usual for file in files) and (steps or files[0].first_offset):
        return usual
    return min(steps) if steps else _whole_pages(usual)


def _whole_pages(size: int) -> int:
    if abs(size - DEFAULT_FILE_BYTES) < DEFAULT_FILE_BYTES // 2:
        return DEFAULT_FILE_BYTES
    odd = size % _PAGE
    return size - odd + (_PAGE if odd > _PAGE // 2 else 0) or size


def walk_log(files: LogFiles, *, check_bodies: bool = True, start: int = 0) -> Iterator[RecordColumns | Gap]:
    """Yield everything in the log from the file on that contains `start`; neighbouring gaps are joined.

    A gap at the log's very end is followed by nothing; zeros there are no gap but the end. A file that disappeared since it
    was listed had expired.
    """
    waiting: collections.deque[Gap] = collections.deque()
    expected = -1
    for file in files.files:
        if file.first_offset + files.file_size <= start:
            continue
        if 0 <= expected < file.first_offset:
            _join(
                waiting, Gap(files.path_of(expected), expected, file.first_offset - expected, "the file is missing", 0)
            )
        expected = file.first_offset + files.file_size
        try:
            log = MappedLog(file.path, file.first_offset, files.file_size)
        except FileNotFoundError:
            continue
        for part in walk_file(log, check_bodies=check_bodies):
            if isinstance(part, Gap):
                _join(waiting, part)
                continue
            yield from waiting
            waiting.clear()
            yield part
        if log.size < files.file_size:
            missing = files.file_size - log.size
            _join(waiting, Gap(file.path, file.first_offset + log.size, missing, "the file is cut short", 0))
    if waiting and waiting[0].written:
        yield waiting[0]


def _join(waiting: collections.deque[Gap], gap: Gap) -> None:
    """Append a gap to the one that it continues."""
    if not waiting or waiting[-1].end != gap.physical_offset:
        waiting.append(gap)
        return
    before = waiting.pop()
    written = before.length + gap.written if gap.written else before.written
    waiting.append(attrs.evolve(before, length=before.length + gap.length, written=written))


def walk_file(log: LogBytes, start: int = 0, *, check_bodies: bool = True) -> Iterator[RecordColumns | Gap]:
    """Yield everything in one file from a position on, up to its blank record or its end."""
    for part in walk_stretch(log, start, log.size):
        if isinstance(part, RecordColumns):
            yield from _with_sound_bodies(part) if check_bodies else (part,)
        elif log.size - part.start >= BLANK_BYTES:
            end = log.size if part.following is None else part.following
            yield _gap(log, part.start, end, part.reason)


def walk_stretch(log: LogBytes, start: int, end: int) -> Iterator[RecordColumns | Break]:
    """Yield batches of the records that begin in [start, end), and the breaks of their chain.

    The last record may end after `end`. `start` is the beginning of a record or of damaged bytes. A blank record ends its file.
    """
    position: int | None = start
    end = min(end, log.size)
    while position is not None and position < end:
        batch = intact_records(log, chained(log, position, min(end, position + BATCH_BYTES)))
        if len(batch):
            yield batch
            position = int(batch.ends[-1])
            continue
        if log.is_blank(position):
            return
        following = log.next_record(position + 1, end)
        if log.is_record(position):
            continue  # its broker completed it meanwhile
        yield Break(position, following, log.fault_at(position))
        position = following


def _gap(log: LogBytes, start: int, end: int, reason: str) -> Gap:
    written = log.written_end(start, end) - start
    return Gap(
        log.path, log.first_offset + start, end - start, reason if written else "nothing is written here", written
    )


def _with_sound_bodies(batch: RecordColumns) -> Iterator[RecordColumns | Gap]:
    """Yield the batch, or its runs of records with right bodies, with the others as gaps."""
    begin = 0
    for row in batch.wrong_bodies().tolist():
        if row > begin:
            yield batch.rows(slice(begin, row))
        reason = f"the body's CRC is not {int(batch.body_crc[row])} as the record says"
        yield _gap(batch.log, int(batch.starts[row]), int(batch.ends[row]), reason)
        begin = row + 1
    if begin < len(batch):
        yield batch.rows(slice(begin, None)) if begin else batch
