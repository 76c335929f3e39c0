"""Cutting a store into splits: one task each.

A log file is cut every `split` bytes, at the next place where a record begins. Records have no fixed size, so that
place must be found: the consume queues name it (a binary search, a few pages), and where they do not, a search for
the next record that proves itself (magic, lengths, own offset) finds it within the bytes of a record or two. Both
touch a few pages a cut: a file of 1 GiB is planned without being read. Consume queues come first because a message
body could hold something that looks like a record; what a queue names is one.

Cuts inside one file lie at exact record starts and splits touch each other, so each record is in one split only, and
a task walks the frames from its start to its end without looking back.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from pyspark.sql.datasource import InputPartition

from twisted_mq.spark.source.log_file import LogFile, list_log_files, log_directory
from twisted_mq.spark.source.options import ReadOptions
from twisted_mq.spark.source.queue_hints import QueueHints
from twisted_mq.storage.files.files_at_rest import FileAtRest


class LogSplit(InputPartition):
    """A stretch of one commit log file; `start` and `end` are positions in the file."""

    def __init__(self, path: str, first_offset: int, start: int, end: int) -> None:
        super().__init__((path, first_offset, start, end))
        self.path = path
        self.first_offset = first_offset
        self.start = start
        self.end = end

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LogSplit) and self.value == other.value

    __hash__ = None  # type: ignore[assignment]


def plan_splits(options: ReadOptions) -> list[LogSplit]:
    """The splits of a store in physical order; none for an empty log. Raises NoCommitLog."""
    hints = QueueHints(os.path.dirname(os.path.abspath(log_directory(options.path))))
    splits: list[LogSplit] = []
    for file in list_log_files(options.path):
        start = max(options.start_offset - file.first_offset, 0)
        end = min(options.end_offset - file.first_offset, file.size)
        if start < end:
            splits += _file_splits(file, start, end, options.split_bytes, hints)
    return splits


def _file_splits(file: FileAtRest, start: int, end: int, split_bytes: int, hints: QueueHints) -> Iterator[LogSplit]:
    """The splits of one file. The bytes behind the last record found stay in the last split, for a walk to judge."""
    log = LogFile(file.path, file.first_offset)
    begin: int | None = 0 if start == 0 else log.next_record(start, end)
    while begin is not None:
        cut = begin + split_bytes
        following = _place_to_cut(log, cut, end, hints) if cut < end else None
        yield LogSplit(file.path, file.first_offset, begin, end if following is None else following)
        begin = following


def _place_to_cut(log: LogFile, position: int, end: int, hints: QueueHints) -> int | None:
    """Where some record from `position` on begins: one that a consume queue names, or else the first."""
    first_offset = log.first_offset
    for physical_offset in hints.records_near(first_offset + position, first_offset + end):
        if log.is_record(physical_offset - first_offset):
            return physical_offset - first_offset
    return log.next_record(position, end)
