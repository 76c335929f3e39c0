"""Commits the buffers of a transient store pool to their files at intervals (Apache: CommitRealTimeService)."""

from __future__ import annotations

import time
from collections.abc import Callable

from twisted_mq.storage.config import StoreConfig
from twisted_mq.storage.files.next_file import PAGE_BYTES
from twisted_mq.storage.flushing.threads import SYSTEM_THREADS, Thread, Threads
from twisted_mq.storage.log.transient_pool import BufferedCommitLog


class CommitService:
    """A thread that runs from `start` to `stop`. `failed` and `committed` are called in it.

    `failed` is called for the first commit that fails; nothing is committed after it.
    """

    def __init__(
        self,
        config: StoreConfig,
        log: BufferedCommitLog,
        failed: Callable[[OSError], None],
        committed: Callable[[], None],
        *,
        monotonic: Callable[[], float] = time.monotonic,
        threads: Threads = SYSTEM_THREADS,
    ) -> None:
        self._config = config
        self._log = log
        self._failed = failed
        self._committed = committed
        self._monotonic = monotonic
        self._told = log.committed_offset
        self._last_commit = monotonic()
        self._threads = threads
        self._stopped = threads.event()
        self._thread: Thread | None = None

    def start(self) -> None:
        """Start the thread."""
        self._thread = self._threads.start(self._run, "store-commit")

    def stop(self) -> None:
        """End the thread. Records put since its last turn are not committed by this."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(self._config.commit_interval_commit_log_ms / 1000):
            if not self.turn():
                return

    def turn(self) -> bool:
        """Commit what is due, and report commits, including those made by a flush; return False if one failed."""
        if self._is_due():
            try:
                self._log.commit()
            except OSError as error:
                self._failed(error)
                return False
            self._last_commit = self._monotonic()
        if self._log.committed_offset > self._told:
            self._told = self._log.committed_offset
            self._committed()
        return True

    def _is_due(self) -> bool:
        config, log = self._config, self._log
        pages = log.max_offset // PAGE_BYTES - log.committed_offset // PAGE_BYTES
        if pages >= config.commit_commit_log_least_pages:
            return True
        thorough = config.commit_commit_log_thorough_interval_ms / 1000
        return self._monotonic() - self._last_commit >= thorough
