"""Deletes expired files in a running broker, and watches its disks (Apache: CleanCommitLogService and similar services).

`twisted_mq.storage.retention` decides what expires. This module adds the turns, the pauses between deletions, and the
thread that measures the disk and removes files, because removing a file of 1 GiB can take long.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection, Sequence

from twisted.internet import defer, interfaces, task
from twisted.python import failure

from twisted_mq.broker.options import BrokerOptions
from twisted_mq.logs import Logger
from twisted_mq.reactor_threads import InThread
from twisted_mq.storage.config import StoreConfig
from twisted_mq.storage.files.disk_space import disk_space, used_ratio
from twisted_mq.storage.message_store import FileMessageStore
from twisted_mq.storage.retention import DiskUsage, Needed, remove_file


def local_hour(now_ms: int) -> int:
    """Return the hour of the day that deleteWhen means, 0 to 23, in the machine's time zone."""
    return time.localtime(now_ms / 1000).tm_hour


async def nothing_needed() -> Collection[Needed]:
    """Return the needs of consumers that never keep a file."""
    return ()


def has_space(config: StoreConfig) -> bool:
    """Return True if the next file of the log and of a queue fit on their disks. Raises OSError."""
    needed = {
        config.paths.commit_log: config.mapped_file_size_commit_log,
        config.paths.consume_queues: config.mapped_file_size_consume_queue,
    }
    return all(disk_space(path).available >= size for path, size in needed.items())


class RetentionService:
    """Deletes expired files in turns; `turn` is called every cleanResourceInterval, `stop` ends the one that runs."""

    log = Logger()

    def __init__(
        self,
        store: FileMessageStore,
        options: BrokerOptions,
        clock: interfaces.IReactorTime,
        now_ms: Callable[[], int],
        in_thread: InThread,
        *,
        needed: Callable[[], Awaitable[Collection[Needed]]] = nothing_needed,
        measure: Callable[[str], float] = used_ratio,
        has_space: Callable[[StoreConfig], bool] = has_space,
        remove: Callable[[str], None] = remove_file,
        hour: Callable[[int], int] = local_hour,
    ) -> None:
        self._store = store
        self._options = options
        self._clock = clock
        self._now_ms = now_ms
        self._in_thread = in_thread
        self._needed = needed
        self._measure = measure
        self._has_space = has_space
        self._remove = remove
        self._hour = hour
        self._running: defer.Deferred[None] | None = None

    def turn(self) -> defer.Deferred[None]:
        """Run one turn. Fires when it is over, never with a failure: the next turn tries again."""
        self._running = defer.ensureDeferred(self._turn())
        self._running.addErrback(self._failed)
        return self._running

    def stop(self) -> None:
        """End a running turn; the store may be closed afterwards. A second call does nothing."""
        running, self._running = self._running, None
        if running is not None:
            running.cancel()

    def _failed(self, reason: failure.Failure) -> None:
        if reason.check(defer.CancelledError) is None:
            self.log.failure("retention failed, retrying at the next time", failure=reason)

    async def _turn(self) -> None:
        paths = self._store.config.paths
        usage = DiskUsage(
            await self._in_thread(self._measure, paths.commit_log),
            await self._in_thread(self._measure, paths.consume_queues),
        )
        retention, now_ms = self._store.retention, self._now_ms()
        hanged = retention.hanged_files(now_ms)
        needed = await self._needed() if retention.may_expire() else ()
        expired = retention.expire_log(now_ms, self._hour(now_ms), usage, needed)
        options = self._options
        await self._remove_all(hanged + expired, options.delete_commit_log_files_interval / 1000)
        queue_pause = options.delete_consume_queue_files_interval / 1000
        for removed in retention.trim():
            await self._remove_all(removed, 0)
            await task.deferLater(self._clock, queue_pause if removed else 0)
        if self._store.gate.no_space and await self._in_thread(self._has_space, self._store.config):
            self._store.gate.no_space = False

    async def _remove_all(self, paths: Sequence[str], pause: float) -> None:
        """Remove files, oldest first. If one cannot be removed, keep all later ones too, so that the log has no gap."""
        for number, path in enumerate(paths):
            if number:
                await task.deferLater(self._clock, pause)
            try:
                await self._in_thread(self._remove, path)
            except OSError as error:
                self.log.error("file not removed, retrying later: path={path} error={error}", path=path, error=error)
                self._store.retention.could_not_remove(paths[number:], self._now_ms())
                return
            self.log.info("file removed: path={path}", path=path)
