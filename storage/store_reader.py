"""Reads a store's log and queues without its lock and without changes, for `mq store` and the checks.

A broker may be writing at the same time; bytes that are not written yet are not read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from twisted_mq.protocol.errors import RecordError
from twisted_mq.protocol.layouts.record import unpack_size
from twisted_mq.protocol.layouts.record_codec import decode_message
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.storage.errors import NoStore
from twisted_mq.storage.files.files_at_rest import FileAtRest, files_in
from twisted_mq.storage.files.paths import StorePaths
from twisted_mq.storage.interfaces import Inconsistency
from twisted_mq.storage.log.log_scan import LogScan, StopReason, intact_behind
from twisted_mq.storage.queues.queue_files import BatchQueueFiles, QueueFiles


class StoreReader:
    """A store directory; `commit_log` is given if that lies elsewhere. Raises NoStore if no commit log is there."""

    def __init__(self, root: str, commit_log: str | None = None) -> None:
        self.paths = StorePaths(root, commit_log)
        self.directory = self.paths.commit_log
        if not os.path.isdir(self.directory):
            raise NoStore(root)
        self.files = files_in(self.directory)
        self.problems: list[Inconsistency] = []

    @property
    def min_offset(self) -> int:
        """The physical offset of the log's first byte."""
        return self.files[0].first_offset if self.files else 0

    def messages(self, *, check_crc: bool = True, decompress: bool = True) -> Iterator[MessageExt]:
        """Yield every message of the log in order. `problems` names what could not be read; reading continues after it."""
        for offset, view, position in self._places():
            try:
                yield decode_message(view, position, check_crc=check_crc, decompress=decompress)
            except RecordError as error:
                self.problems.append(Inconsistency(self.directory, offset, error.reason))

    def records(self) -> Iterator[tuple[int, memoryview]]:
        """Yield (physical offset, stored bytes) of every sound record; damaged records are treated as in `messages`."""
        for offset, view, position in self._places():
            (size,) = unpack_size(view, position)
            yield offset, view[position : position + size]

    def _places(self) -> Iterator[tuple[int, memoryview, int]]:
        """Yield (physical offset, its file's bytes, position there) of every sound record."""
        start: int | None = self.min_offset
        while start is not None:
            scan = LogScan(self.files, start)
            for record in scan:
                file = self._file_of(record.physical_offset)
                yield record.physical_offset, file.readable, record.physical_offset - file.first_offset
            start = intact_behind(self.files, scan.end_offset)
            if scan.stop_reason is StopReason.DAMAGED:
                self.problems.append(Inconsistency(self.directory, scan.end_offset, scan.problem))
            elif start is not None:
                problem = f"nothing is written here, the next record is at {start}"
                self.problems.append(Inconsistency(self.directory, scan.end_offset, problem))

    def _file_of(self, offset: int) -> FileAtRest:
        return next(file for file in reversed(self.files) if file.first_offset <= offset)

    def queues(self) -> Iterator[QueueFiles]:
        """Yield every consume queue, sorted by topic and queue id."""
        for topic, queue_id in self.paths.queue_directories():
            yield QueueFiles(topic, queue_id, self.paths.queue(topic, queue_id))

    def batch_queues(self) -> Iterator[BatchQueueFiles]:
        """Yield every batch queue, sorted by topic and queue id."""
        for topic, queue_id in self.paths.batch_queue_directories():
            yield BatchQueueFiles(topic, queue_id, self.paths.batch_queue(topic, queue_id))
