"""Puts data on disk in one thread (Apache: FlushRealTimeService, GroupCommitService, FlushConsumeQueueService).

The reactor appends and never waits for a disk. The thread flushes at intervals, or at once if there are requests: one
fdatasync answers all requests that are waiting. The thread touches no mapping, only paths and numbers.

Group commit works as in Apache. There are two lists of requests: new ones go into one, and each turn takes it whole and
leaves an empty one in its place, so that no request waits for a lock while the disk works. Apache swaps them every 10 ms,
but a request ends that wait at once (putRequest calls wakeup), so its latency is that of a flush and not 10 ms; here too.
The 10 ms are for data that no request waits for: under synchronous flush it is on disk that soon.

A failed flush of log or queues is final: the kernel may have dropped the data, so a second try proves nothing. `error`
holds it, all waiting requests get False, and the store takes no more messages.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable

import attrs

from twisted_mq.storage.appending.gate import Gate
from twisted_mq.storage.config import FlushDiskType, StoreConfig
from twisted_mq.storage.files.checkpoint import Checkpoint
from twisted_mq.storage.files.descriptors import is_shortage
from twisted_mq.storage.files.next_file import PAGE_BYTES
from twisted_mq.storage.files.system_calls import Sync, fdatasync
from twisted_mq.storage.flushing.index_flush import IndexFlush
from twisted_mq.storage.flushing.threads import SYSTEM_THREADS, Thread, Threads
from twisted_mq.storage.interfaces import Shut
from twisted_mq.storage.log.commit_log import CommitLog
from twisted_mq.storage.queues.consume_queue import ConsumeQueue

logger = logging.getLogger(__name__)

GROUP_COMMIT_SECONDS = 0.01
"""The longest wait of a turn for requests under synchronous flush (Apache: GroupCommitService.run)."""
_LONGEST_WATCH_SECONDS = 1.0

FlushCallback = Callable[[bool], None]


@attrs.define(eq=False)
class _Request:
    """A request to have the log on disk up to `offset`; `callback` is None once it was answered."""

    offset: int
    deadline: float
    callback: FlushCallback | None


class FlushService:
    """The flush thread of one store. Call `start`, then `stop`; between them `request` and `wake` from any thread.

    `queues` returns the queues at the time of the call; `dispatched_timestamp` the store time of the last visible message.
    """

    def __init__(
        self,
        config: StoreConfig,
        log: CommitLog,
        checkpoint: Checkpoint,
        gate: Gate,
        queues: Callable[[], Iterable[ConsumeQueue]],
        dispatched_timestamp: Callable[[], int],
        *,
        index: IndexFlush | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        sync: Sync = fdatasync,
        threads: Threads = SYSTEM_THREADS,
    ) -> None:
        self.error: OSError | None = None
        self._config = config
        self._log = log
        self._checkpoint = checkpoint
        self._gate = gate
        self._queues = queues
        self._dispatched_timestamp = dispatched_timestamp
        self._index = index
        self._monotonic = monotonic
        self._sync = sync
        self._is_synchronous = config.flush_disk_type is FlushDiskType.SYNC_FLUSH
        self._made_by = threads
        self._wanted = threads.condition()
        self._stopped = threads.event()
        self._woken = False
        self._requests: list[_Request] = []
        self._in_flight: list[_Request] = []
        self._threads: list[Thread] = []
        self._checkpoint_failed = False
        self._short = False
        self._longest_flush = 0.0
        self._saved: Checkpoint = attrs.evolve(checkpoint)
        now = monotonic()
        self._last_log_flush = self._last_queue_flush = self._last_thorough_flush = self._last_save = now

    def start(self) -> None:
        """Start the flush thread, and the thread that watches for requests that wait too long."""
        for name, run in (("flush", self._run), ("flush-watcher", self._watch)):
            self._threads.append(self._made_by.start(run, f"store-{name}"))

    def stop(self) -> None:
        """End the threads, flush everything and try to save the checkpoint, in the caller's thread. Raises OSError."""
        with self._wanted:
            self._stopped.set()
            self._wanted.notify_all()
        for thread in self._threads:
            thread.join()
        self._threads.clear()
        self._serve_requests()
        if self.error is not None:
            raise self.error
        self.flush_log()
        self._flush_queues(0)
        if self._index is not None:
            self._index.finish()
        self._try_to_save_checkpoint()

    def request(self, offset: int, callback: FlushCallback) -> None:
        """Request the log to be on disk up to `offset`. The callback runs in a thread of this service."""
        deadline = self._monotonic() + self._config.sync_flush_timeout_ms / 1000
        with self._wanted:
            self._requests.append(_Request(offset, deadline, callback))
            self._wanted.notify()

    def wake(self) -> None:
        """Flush the log soon, without a request."""
        with self._wanted:
            self._woken = True
            self._wanted.notify()

    def take_longest_flush(self) -> float:
        """Return the seconds that the longest flush of the log took since the last call. May be called in any thread."""
        longest, self._longest_flush = self._longest_flush, 0.0
        return longest

    def nudge(self) -> None:
        """Flush what is due now, without waiting for the end of the interval (Apache: flushCommitLogTimed=false)."""
        if self._log_is_due(self._monotonic()):
            with self._wanted:
                self._wanted.notify()

    # The flush thread

    def _run(self) -> None:
        while not self._stopped.is_set():
            with self._wanted:
                if not self._requests and not self._woken:
                    self._wanted.wait(self.turn_seconds)
            self.turn()

    @property
    def turn_seconds(self) -> float:
        """Return how long a turn waits at most for requests."""
        return GROUP_COMMIT_SECONDS if self._is_synchronous else self._config.flush_interval_commit_log_ms / 1000

    def turn(self) -> None:
        """Run one turn of the flush thread: answer the waiting requests, then flush what is due."""
        with self._wanted:
            wanted, self._woken = self._woken or self._is_synchronous, False
        try:
            if wanted and not self._requests and self.error is None:
                self.flush_log()
            self._serve_requests()
            self._flush_what_is_due()
        except OSError as error:
            self._failed(error)

    def _failed(self, error: OSError) -> None:
        """Handle a failed flush. After a shortage of descriptors the next turn tries again; any other error is final."""
        if not is_shortage(error):
            self.fail(error)
        elif not self._short:
            logger.warning("flush failed, retrying: %s", error)
        self._short = is_shortage(error)

    def fail(self, error: OSError) -> None:
        """Take no more messages, because the disk lost some or did not take them."""
        if self.error is None:
            self.error = error
            self._gate.shut(Shut.DISK_FAILED)
            logger.error("flush failed, the store accepts no more messages: %s", error)

    def _serve_requests(self) -> None:
        """Answer all waiting requests with one flush."""
        with self._wanted:
            self._in_flight, self._requests = self._requests, []
        if not self._in_flight:
            return
        if self.error is None and any(request.offset > self._log.flushed_offset for request in self._in_flight):
            try:
                self.flush_log()
            except OSError as error:
                self._failed(error)
        for request in self._in_flight:
            self._answer(request, self.error is None and request.offset <= self._log.flushed_offset)
        self._in_flight = []

    def _answer(self, request: _Request, done: bool) -> None:
        with self._wanted:
            callback, request.callback = request.callback, None
        if callback is not None:
            callback(done)

    def flush_log(self) -> None:
        """Commit the log and put on disk all that is written at this moment. Raises OSError."""
        timestamp = self._log.last_store_timestamp
        end = self._log.begin_flush()
        start = self._log.flushed_offset
        if end > start:
            began = self._monotonic()
            for file in tuple(self._log.files.files):
                if file.first_offset < end and file.first_offset + file.size > start:
                    file.sync(self._sync)
            self._longest_flush = max(self._longest_flush, self._monotonic() - began)
            self._log.end_flush(end)
        if timestamp:
            self._checkpoint.physic_msg_timestamp = timestamp
        self._last_log_flush = self._monotonic()
        self._short = False

    def _flush_what_is_due(self) -> None:
        if self.error is not None:
            return
        config, now = self._config, self._monotonic()
        if self._log_is_due(now):
            self.flush_log()
        if now - self._last_queue_flush >= config.flush_interval_consume_queue_ms / 1000:
            thorough = now - self._last_thorough_flush >= config.flush_consume_queue_thorough_interval_ms / 1000
            self._flush_queues(0 if thorough else config.flush_consume_queue_least_pages)
        if self._index is not None:
            self._index.begin(self.flush_log)
        if now - self._last_save >= config.flush_checkpoint_interval_ms / 1000:
            self._try_to_save_checkpoint()

    def _log_is_due(self, now: float) -> bool:
        behind = self._log.max_offset - self._log.flushed_offset
        if behind >= self._config.flush_commit_log_least_pages * PAGE_BYTES:
            return True
        thorough = self._config.flush_commit_log_thorough_interval_ms / 1000
        return behind > 0 and now - self._last_log_flush >= thorough

    def _flush_queues(self, least_pages: int) -> None:
        """Put queues with that many unflushed pages on disk; with 0 all, which the checkpoint then records.

        Requests for the log are served between two queues.
        """
        timestamp = self._dispatched_timestamp()
        for queue in self._queues():
            queue.flush(least_pages * PAGE_BYTES, self._sync)
            if self._requests:
                self._serve_requests()
        self._last_queue_flush = self._monotonic()
        if least_pages == 0:
            self._last_thorough_flush = self._last_queue_flush
            if timestamp:
                self._checkpoint.logics_msg_timestamp = timestamp

    def _save_checkpoint(self) -> None:
        self._last_save = self._monotonic()
        if self._checkpoint != self._saved:
            saved = attrs.evolve(self._checkpoint)
            saved.save(self._sync)
            self._saved = saved
            self._checkpoint_failed = False

    def _try_to_save_checkpoint(self) -> None:
        """Save the checkpoint if possible. A failure loses nothing, because a start then walks further; it is tried again."""
        try:
            self._save_checkpoint()
        except OSError as error:
            if not self._checkpoint_failed:
                logger.error("checkpoint not written, retrying: %s", error)
            self._checkpoint_failed = True

    # The watcher thread

    def _watch(self) -> None:
        """Answer requests for which the disk takes too long, even while it hangs (Apache: FlushDiskWatcher)."""
        seconds = 0.0
        while not self._stopped.wait(seconds):
            seconds = self.answer_late()

    def answer_late(self) -> float:
        """Answer False to requests whose time is over; return after how many seconds to look again."""
        now, allowed = self._monotonic(), self._config.sync_flush_timeout_ms / 1000
        soonest = now + min(allowed, _LONGEST_WATCH_SECONDS)
        for request in (*self._in_flight, *self._requests):
            if now >= request.deadline:
                self._answer(request, False)
            else:
                soonest = min(soonest, request.deadline)
        return soonest - now
