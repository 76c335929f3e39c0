"""The walk over a whole log: batches of proved records, and the gaps between them; of one stretch of it, for Spark's tasks.

Record sizes chain the records of a file; numpy proves whole batches. Where the chain breaks, the walk goes on at the next
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
"""A batch ends with the record that reaches it."""
DEFAULT_FILE_BYTES = 1 << 30
_PAGE = 4096


@attrs.frozen
class Gap:
    """Bytes of the log that belong to no proved record. `written` is how many of them lie before the last non-zero one."""

    path: str
    physical_offset: int
    length: int
    reason: str
    written: int

    @property
    def end(self) -> int:
        """The physical offset behind it."""
        return self.physical_offset + self.length


@attrs.frozen
class Break:
    """A position in a file at which no record proves itself, and that of the next one that does; None: there is none."""

    start: int
    following: int | None
    reason: str


class LogFiles:
    """The log of a store as it was when this was made. `file_size` is what every file should be long."""

    def __init__(self, root: str, commit_log: str | None = None, file_size: int = 0) -> None:
        """`file_size` 0: found out from the files. Raises NoStore."""
        self.paths = StorePaths(root, commit_log)
        self.directory = self.paths.commit_log
        if not os.path.isdir(self.directory):
            raise NoStore(root)
        self.files = files_in(self.directory)
        self.file_size = file_size or standard_size(self.files)

    @property
    def min_offset(self) -> int:
        """The log's first byte."""
        return self.files[0].first_offset if self.files else 0

    @property
    def size_bytes(self) -> int:
        """The length of all files."""
        return sum(file.size for file in self.files)

    def path_of(self, physical_offset: int) -> str:
        """The file that holds an offset, whether it is there or not."""
        return os.path.join(self.directory, file_name(physical_offset - physical_offset % self.file_size))


def standard_size(files: Sequence[FileAtRest]) -> int:
    """What the files of a log should be long: what most of them are if their names agree, else the distance of names.

    Of a single file its size, in whole pages; one near Apache's 1 GiB counts as one of 1 GiB.
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
    """Everything of the log from the file on that holds `start`; neighbouring gaps come as one.

    A gap at the log's very end has nothing behind it; one of zeros there is no gap but the end. A file that is gone
    since it was listed was too old to keep.
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
    """Put a gap behind the one that it continues."""
    if not waiting or waiting[-1].end != gap.physical_offset:
        waiting.append(gap)
        return
    before = waiting.pop()
    written = before.length + gap.written if gap.written else before.written
    waiting.append(attrs.evolve(before, length=before.length + gap.length, written=written))


def walk_file(log: LogBytes, start: int = 0, *, check_bodies: bool = True) -> Iterator[RecordColumns | Gap]:
    """Everything in one file from a position on, up to its blank record or its end."""
    for part in walk_stretch(log, start, log.size):
        if isinstance(part, RecordColumns):
            yield from _with_sound_bodies(part) if check_bodies else (part,)
        elif log.size - part.start >= BLANK_BYTES:
            end = log.size if part.following is None else part.following
            yield _gap(log, part.start, end, part.reason)


def walk_stretch(log: LogBytes, start: int, end: int) -> Iterator[RecordColumns | Break]:
    """Batches of the records that begin in [start, end), and where their chain breaks; the last may reach beyond `end`.

    `start` is where a record begins, or damaged bytes do. A blank record ends its file.
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
    """The batch, or the runs of its records with right bodies and the others as gaps."""
    begin = 0
    for row in batch.wrong_bodies().tolist():
        if row > begin:
            yield batch.rows(slice(begin, row))
        reason = f"the body's CRC is not {int(batch.body_crc[row])} as the record says"
        yield _gap(batch.log, int(batch.starts[row]), int(batch.ends[row]), reason)
        begin = row + 1
    if begin < len(batch):
        yield batch.rows(slice(begin, None)) if begin else batch
