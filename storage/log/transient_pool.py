"""Writing through buffers in memory instead of a mapping (Apache: TransientStorePool).

A commit writes the buffers to the file with pwrite, and a later flush puts them on disk. Readers see only committed
records. Uncommitted ones are lost if the process dies, so the pool is for brokers whose slaves or asynchronous flush
accept such a loss; under synchronous flush the flush commits first. Apache locks the buffers in memory (mlock); these may
be swapped.
"""

from __future__ import annotations

import logging
import mmap
import os
import threading
from collections import deque

from twisted_mq.protocol.layouts.record import BLANK_BYTES, encode_blank
from twisted_mq.storage.config import FlushDiskType, StoreConfig
from twisted_mq.storage.errors import PoolExhausted, StoreFull
from twisted_mq.storage.files.mapped_file import MappedFile
from twisted_mq.storage.files.mapped_file_queue import Truncation
from twisted_mq.storage.files.next_file import NextFile
from twisted_mq.storage.files.system_calls import Allocate, Sync, fdatasync, posix_fallocate
from twisted_mq.storage.log.commit_log import CommitLog

logger = logging.getLogger(__name__)


class TransientStorePool:
    """`count` buffers, each with the size of a commit log file. A buffer takes memory when it is first written to."""

    def __init__(self, count: int, buffer_bytes: int) -> None:
        private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self._free = deque(memoryview(mmap.mmap(-1, buffer_bytes, flags=private)) for _ in range(count))

    @property
    def available(self) -> int:
        """Return how many buffers are free."""
        return len(self._free)

    def borrow(self) -> memoryview | None:
        """Return a free buffer with its old content; None if all are in use."""
        return self._free.popleft() if self._free else None

    def give_back(self, buffer: memoryview) -> None:
        """Take a buffer back; safe in any thread."""
        self._free.append(buffer)


class BufferedCommitLog(CommitLog):
    """A commit log whose `view` is a borrowed buffer. `commit` may be called in any thread, everything else in one.

    Without a free buffer a file is written through its mapping. With `fast_fail`, PoolExhausted is raised instead until a
    commit has freed a buffer.
    """

    def __init__(
        self,
        directory: str,
        file_size: int,
        allocation_step: int,
        pool: TransientStorePool,
        *,
        fast_fail: bool,
        allocate: Allocate = posix_fallocate,
    ) -> None:
        super().__init__(directory, file_size, allocation_step, allocate)
        self.committed_offset = 0
        self._pool = pool
        self._fast_fail = fast_fail
        self._buffers: dict[int, memoryview | None] = {}
        """By a file's first offset; None for a file that is written through its mapping."""
        self._data_ends: dict[int, int] = {}
        """For each file that is full: the end of the 8 bytes of its blank record."""
        self._committing = threading.Lock()

    # Writing

    def load(self) -> None:
        """Find the files; all of them count as committed. Raises WrongFileSize, MissingLogFile."""
        super().load()
        self.committed_offset = self.max_offset

    def truncate(self, offset: int) -> Truncation:
        """Drop everything from `offset` on; the rest is committed. Raises OSError."""
        self.commit()
        truncation = super().truncate(offset)
        self.committed_offset = offset
        return truncation

    def _activate(self, file: MappedFile) -> None:
        super()._activate(file)
        buffer = self._buffers.get(file.first_offset)
        if buffer is not None:
            self.view = buffer

    def make_room(self, size: int) -> None:
        """Make `size` bytes writable in one buffer. Raises StoreFull, PoolExhausted."""
        files = self.files.files
        end = files[-1].first_offset + self.file_size if files else 0
        rolls = not files or self.max_offset + size + BLANK_BYTES > end
        first = end if rolls else files[-1].first_offset
        borrowed = first not in self._buffers and self._borrow(first)
        try:
            super().make_room(size)
        except StoreFull:
            if borrowed:
                self._return(first)
            raise

    def _borrow(self, first: int) -> bool:
        buffer = self._pool.borrow()
        if buffer is None and self._fast_fail:
            self._end_file()
            raise PoolExhausted(self.files.directory)
        if buffer is None:
            logger.warning("no buffer left, file is written through its mapping: offset=%d", first)
        self._buffers[first] = buffer
        return True

    def _return(self, first: int) -> None:
        buffer = self._buffers.pop(first, None)
        self._data_ends.pop(first, None)
        if buffer is not None:
            self._pool.give_back(buffer)

    def _end_file(self) -> None:
        """Finish the file that a record did not fit into, so that a commit frees its buffer. Raises StoreFull."""
        files = self.files.files
        if files and files[-1].first_offset in self._buffers:
            full = files[-1]
            start = full.first_offset + self.file_size
            if self.max_offset < start:
                full.reserve(self.max_offset - full.first_offset + BLANK_BYTES, BLANK_BYTES)
                self._fill(full)
                self.max_offset = start

    def _fill(self, file: MappedFile) -> None:
        buffer = self._buffers.get(file.first_offset)
        if buffer is None:
            super()._fill(file)
            return
        position = self.max_offset - file.first_offset
        buffer[position : position + BLANK_BYTES] = encode_blank(self.file_size - position)
        self._data_ends[file.first_offset] = self.max_offset + BLANK_BYTES
        file.wrote = self.file_size

    def append_bytes(self, data: bytes | memoryview) -> None:
        """Write a master's bytes through the mapping. Raises StoreFull, OSError."""
        self.commit()
        super().append_bytes(data)
        self.committed_offset = self.max_offset

    # Committing

    def commit(self) -> int:
        """Write all records put so far to the files; return the offset up to which the files are complete. Raises OSError."""
        with self._committing:
            end = self.max_offset
            for file in tuple(self.files.files):
                if self.committed_offset < end and file.first_offset + file.size > self.committed_offset:
                    self._commit_file(file, end)
            self._free_committed()
            return self.committed_offset

    def _commit_file(self, file: MappedFile, end: int) -> None:
        start = max(self.committed_offset, file.first_offset)
        stop = min(end, file.first_offset + file.size)
        buffer = self._buffers.get(file.first_offset)
        if buffer is not None:
            data_end = min(stop, self._data_ends.get(file.first_offset, stop))
            _write(
                file.path, start - file.first_offset, buffer[start - file.first_offset : data_end - file.first_offset]
            )
        self.committed_offset = stop

    def _free_committed(self) -> None:
        for first in tuple(self._buffers):
            if first + self.file_size <= self.committed_offset:
                self._return(first)

    # Reading

    def read(self, offset: int, size: int) -> memoryview | None:
        """Return `size` bytes from `offset`; None unless all of them are committed and in one file."""
        return super().read(offset, size) if offset + size <= self.committed_offset else None

    def read_bytes(self, offset: int, max_bytes: int) -> memoryview | None:
        """Return the log's committed bytes from `offset` on, at most to the end of their file."""
        if offset > self.committed_offset:
            return None
        return super().read_bytes(offset, min(max_bytes, self.committed_offset - offset))

    def release(self) -> None:
        """Release files and buffers; uncommitted records are lost."""
        for first in tuple(self._buffers):
            self._return(first)
        super().release()


def _write(path: str, position: int, data: memoryview) -> None:
    """Write all of `data` into a file whose disk space is already taken. Does nothing if the file has expired. Raises OSError."""
    if not data:
        return
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        while data:
            written = os.pwrite(descriptor, data, position)
            data, position = data[written:], position + written
    finally:
        os.close(descriptor)


def make_commit_log(config: StoreConfig, allocate: Allocate = posix_fallocate, sync: Sync = fdatasync) -> CommitLog:
    """Return a log that is not loaded yet. If its files are long, they are made in advance."""
    directory, size = config.paths.commit_log, config.mapped_file_size_commit_log
    step = config.commit_log_allocation_step
    log = CommitLog(directory, size, step, allocate)
    if config.transient_store_pool_enable:
        pool = TransientStorePool(config.transient_store_pool_size, size)
        fast_fail = config.fast_fail_if_no_buffer_in_store_pool
        log = BufferedCommitLog(directory, size, step, pool, fast_fail=fast_fail, allocate=allocate)
    if 0 < config.commit_log_prepare_bytes < size:
        warm = config.warm_mapped_file_enable
        next_file = NextFile(
            directory, size, step, warm_pages=_warm_pages(config) if warm else None, allocate=allocate, sync=sync
        )
        log.prepare_files(next_file, size if warm else config.commit_log_prepare_bytes)
    return log


def _warm_pages(config: StoreConfig) -> int:
    """Return after how many pages a file is flushed while it is warmed: only under synchronous flush it is flushed at all."""
    sync_flush = config.flush_disk_type is FlushDiskType.SYNC_FLUSH
    return config.flush_least_pages_when_warm_mapped_file if sync_flush else 0
