"""Puts full index files on disk in a thread of their own (Apache: FlushIndexFileThread).

Such a file may have hundreds of MB that are not on disk yet: requests for the log must not wait for it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from twisted_mq.storage.files.checkpoint import Checkpoint
from twisted_mq.storage.files.system_calls import Sync
from twisted_mq.storage.flushing.threads import SYSTEM_THREADS, Thread, Threads
from twisted_mq.storage.index.index_service import IndexService
from twisted_mq.storage.index.index_writer import IndexFile

logger = logging.getLogger(__name__)


class IndexFlush:
    """Flushes one index. `begin` and `finish` are called in one thread; the checkpoint is changed but not saved.

    After a file fails, the checkpoint stays where it is, so that a start after a crash builds the file again; the
    store continues.
    """

    def __init__(
        self, index: IndexService, checkpoint: Checkpoint, sync: Sync, threads: Threads = SYSTEM_THREADS
    ) -> None:
        self._index = index
        self._checkpoint = checkpoint
        self._sync = sync
        self._failed = False
        self._threads = threads
        self._thread: Thread | None = None

    def begin(self, flush_log: Callable[[], None]) -> None:
        """Flush the files that are full now, unless a flush is running. The log comes first, so that no file leads past its end.

        Raises OSError if the log cannot be flushed.
        """
        if not self._index.full_files or self._failed or (self._thread is not None and self._thread.is_alive()):
            return
        flush_log()
        self._launch(self._take())

    def _take(self) -> list[IndexFile]:
        files = list(self._index.full_files)
        for _ in files:
            self._index.full_files.popleft()
        return files

    def _launch(self, files: list[IndexFile]) -> None:
        self._thread = self._threads.start(partial(self._flush, files), "store-index-flush")

    def wait(self) -> None:
        """Return when no flush is running."""
        if self._thread is not None:
            self._thread.join()

    def finish(self) -> None:
        """Flush all files in the caller's thread, including the last one; the log is on disk already."""
        self.wait()
        self._flush(self._take())
        for file in self._index.files[-1:]:
            self._put_on_disk(file)

    def _flush(self, files: list[IndexFile]) -> None:
        for file in files:
            if self._failed or not self._put_on_disk(file):
                return
            self._checkpoint.index_msg_timestamp = file.end_timestamp

    def _put_on_disk(self, file: IndexFile) -> bool:
        try:
            file.sync(self._sync)
        except OSError as error:
            self._failed = True
            logger.error("index file not flushed, it is rebuilt after a crash: file=%s %s", file.path, error)
            return False
        return True
