"""Decides which files expire, and when a store refuses messages (Apache: CleanCommitLogService, CleanConsumeQueueService).

The first half has pure rules: time and disk usage are arguments. `Retention` applies them to an open store. It takes
files out of the log and the queues at once and returns their paths. The caller removes these files, oldest first, in a
thread if the reactor must not wait for a disk, and hands back the paths that could not be removed.

A file in use is no obstacle: readers' views keep its blocks until they are freed. So Apache's wait for readers
(destroyMapedFileIntervalForcibly) is not needed here. Only a file that the system refuses to unlink is tried again, every
redeleteHangedFileInterval.
"""

from __future__ import annotations

import enum
import logging
import os
from collections.abc import Callable, Collection, Iterator, Sequence

import attrs

from twisted_mq.protocol.names.system_topics import is_lmq, is_system_topic
from twisted_mq.storage.appending.gate import Gate
from twisted_mq.storage.config import StoreConfig
from twisted_mq.storage.files.directory import sync_directory
from twisted_mq.storage.interfaces import Shut
from twisted_mq.storage.log.commit_log import CommitLog
from twisted_mq.storage.queues.queue_table import QueueTable

logger = logging.getLogger(__name__)

MANUAL_TURNS = 20
"""The number of turns in which a manual request deletes files (Apache: MAX_MANUAL_DELETE_FILE_TIMES)."""
QUEUES_A_STEP = 16
"""After this many queues without a file to remove, the caller gets a chance to do something else."""
HOUR_MS = 3_600_000

TrimIndex = Callable[[int], Sequence[str]]
"""Removes index entries that lead to offsets before a physical offset; returns paths to delete."""


class Space(enum.Enum):
    """The fill level of the store's disks."""

    PLENTY = "plenty"
    SCARCE = "above diskMaxUsedSpaceRatio: expired files are deleted at any hour"
    CRITICAL = "above diskSpaceCleanForciblyRatio: the oldest files are deleted, expired or not"
    FULL = "above diskSpaceWarningLevelRatio: sends are refused too"


@attrs.frozen
class DiskUsage:
    """The used share of the log's and of the queues' disk, 0.0 to 1.0; NOT_KNOWN (-1.0) if it is not known."""

    log: float
    queues: float


@attrs.frozen
class Needed:
    """The first message of a queue that a consumer still needs. It and all later records stay unless the disk is full."""

    topic: str
    queue_id: int
    queue_offset: int
    physical_offset: int


def space(config: StoreConfig, usage: DiskUsage) -> Space:
    """Return the level of the fuller disk. The two upper limits are kept within 35 to 90 and 30 to 85 percent, as in Apache."""
    most = max(usage.log, usage.queues)
    if most > min(max(config.disk_space_warning_level_ratio, 35), 90) / 100:
        return Space.FULL
    if most > min(max(config.disk_space_clean_forcibly_ratio, 30), 85) / 100:
        return Space.CRITICAL
    limit = config.disk_max_used_space_ratio / 100
    scarce = any(ratio < 0 or ratio > limit for ratio in (usage.log, usage.queues))
    return Space.SCARCE if scarce else Space.PLENTY


def is_hour_to_delete(delete_when: str, hour: int) -> bool:
    """Return whether `hour` (0 to 23) is in deleteWhen, for example 04;16 (UtilAll.isItTimeToDo)."""
    return hour in {int(one) for one in delete_when.split(";") if one.strip()}


def expired_count(modified_ms: Sequence[int], now_ms: int, reserved_ms: int, *, at_once: bool, most: int) -> int:
    """Return how many of a log's oldest files expire; `modified_ms` has one time per file, oldest first. The last file stays.

    Counting stops at the first file that is young enough, so that no hole is made (MappedFileQueue.deleteExpiredFileByTime).
    """
    count = 0
    for modified in modified_ms[:-1][:most]:
        if not at_once and now_ms < modified + reserved_ms:
            break
        count += 1
    return count


def kept_count(ends: Sequence[int], needed: Collection[Needed]) -> int:
    """Return how many of the oldest files contain no needed message; `ends` has the offset after each file."""
    first = min((one.physical_offset for one in needed), default=None)
    return len(ends) if first is None else sum(end <= first for end in ends)


def remove_file(path: str) -> None:
    """Unlink a file and sync the directory, so that a power cut leaves no hole between files. Raises OSError.

    A file that is already gone is no error.
    """
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
    sync_directory(os.path.dirname(path))


class Retention:
    """The retention limits of an open store. All methods are called in the store's thread."""

    def __init__(
        self, config: StoreConfig, log: CommitLog, queues: QueueTable, gate: Gate, trim_index: TrimIndex
    ) -> None:
        self.space = Space.PLENTY
        self._config = config
        self._log = log
        self._queues = queues
        self._gate = gate
        self._trim_index = trim_index
        self._manual_turns = 0
        self._trimmed_to = 0
        self._hanged: list[str] = []
        self._hanged_tried_ms = 0
        self.deleted_unconsumed: dict[tuple[str, int], int] = {}
        """The number of a queue's messages deleted although a consumer still needed them, because the disk was full."""

    def configure(self, config: StoreConfig) -> None:
        """Take over limits and hours, from the next turn on."""
        self._config = config

    # The log

    def delete_soon(self) -> None:
        """Delete expired log files in the next turns at any hour (Apache: executeDeleteFilesManually)."""
        self._manual_turns = MANUAL_TURNS

    def may_expire(self) -> bool:
        """Return whether the log has more files than the one being written."""
        return len(self._log.files.files) > 1

    def expire_log(self, now_ms: int, hour: int, usage: DiskUsage, needed: Collection[Needed] = ()) -> list[str]:
        """Run one turn and return the paths of the expired files that it takes out of the log.

        The state of the disks decides whether messages are accepted or refused. Files with messages that are `needed` stay,
        unless the disk forces the oldest files out.
        """
        self._set_space(space(self._config, usage), usage)
        manual = self._manual_turns > 0
        if not (manual or self.space is not Space.PLENTY or is_hour_to_delete(self._config.delete_when, hour)):
            return []
        self._manual_turns -= manual
        at_once = self.space in (Space.CRITICAL, Space.FULL) and self._config.clean_file_forcibly_enable
        paths = self._take_expired(now_ms, at_once, needed)
        if paths:
            logger.info(
                "log files expired: files=%d minOffset=%d space=%s atOnce=%s manual=%s",
                len(paths), self._log.min_offset, self.space.name, at_once, manual,
            )  # fmt: skip
        elif self.space is not Space.PLENTY:
            logger.warning(
                "disk space is short and no log file can be deleted: space=%s usage=%s", self.space.name, usage
            )
        return paths

    def _set_space(self, now: Space, usage: DiskUsage) -> None:
        before, self.space = self.space, now
        if (now is Space.FULL) != (before is Space.FULL):
            message = "disk full, sends are refused: %s" if now is Space.FULL else "disk has space again: %s"
            logger.log(logging.ERROR if now is Space.FULL else logging.INFO, message, usage)
        if now is Space.FULL:
            self._gate.shut(Shut.DISK_FULL)
        else:
            self._gate.open(Shut.DISK_FULL)

    def _take_expired(self, now_ms: int, at_once: bool, needed: Collection[Needed]) -> list[str]:
        files = self._log.files.files[: self._config.delete_file_batch_max + 1]
        times = [_modified_ms(file.path) for file in files]
        reserved = self._config.file_reserved_time * HOUR_MS
        most = self._config.delete_file_batch_max
        count = expired_count(times, now_ms, reserved, at_once=at_once, most=most)
        if not at_once:
            count = min(count, kept_count([file.first_offset + file.size for file in files], needed))
        paths = self._log.files.drop_first(count)
        self._tell_deleted(needed)
        return paths

    def _tell_deleted(self, needed: Collection[Needed]) -> None:
        """Count the needed messages that were deleted, and report them to readers from now on."""
        minimum = self._log.min_offset
        for one in needed:
            queue = self._queues.get(one.topic, one.queue_id)
            if one.physical_offset >= minimum or queue is None:
                continue
            queue.correct_min_offset(minimum)
            first, count = one.queue_offset, queue.min_offset - one.queue_offset
            key = one.topic, one.queue_id
            self.deleted_unconsumed[key] = self.deleted_unconsumed.get(key, 0) + count
            logger.error(
                "the disk is full: messages that a consumer still needed were deleted: topic=%s queue=%d first=%d messages=%d",
                *key, first, count,
            )  # fmt: skip

    # Queues and index

    def trim(self) -> Iterator[list[str]]:
        """Bring queues and index to the log's minimum in steps; each step yields the paths that it took out.

        Does nothing if the minimum has not changed. An empty list is a chance to pause.
        """
        minimum = self._log.min_offset
        if minimum <= self._trimmed_to:
            return
        for number, queue in enumerate(self._queues, 1):
            paths = queue.trim(minimum)
            if paths or number % QUEUES_A_STEP == 0:
                yield paths
        expired = list(self._trim_index(minimum))
        if expired:
            yield expired
        self._trimmed_to = minimum

    def expired_queues(self) -> list[tuple[str, int]]:
        """Return topic and id of the queues that lead only to before the log's minimum; not those of system topics."""
        minimum = self._log.min_offset
        return [
            (queue.topic, queue.queue_id)
            for queue in self._queues
            if 0 < queue.max_physical_offset < minimum
            and queue.next_offset == queue.max_offset
            and not is_system_topic(queue.topic)
        ]

    def unused_topics(self, retained: Collection[str]) -> set[str]:
        """Return the topics with queues that are not among `retained`, without system topics and light queues."""
        return {
            topic
            for topic in self._queues.topics()
            if topic not in retained and not is_system_topic(topic) and not is_lmq(topic)
        }

    # Files that could not be removed

    def could_not_remove(self, paths: Sequence[str], now_ms: int) -> None:
        """Remember paths, oldest first, to try again later."""
        self._hanged += paths
        self._hanged_tried_ms = now_ms

    def hanged_files(self, now_ms: int) -> list[str]:
        """Return the paths to try again now; report failures with `could_not_remove`."""
        if now_ms - self._hanged_tried_ms <= self._config.redelete_hanged_file_interval_ms:
            return []
        hanged, self._hanged = self._hanged, []
        return hanged


def _modified_ms(path: str) -> int:
    """Return when a file was last written, in ms; 0 for a missing file, which the log may forget too."""
    try:
        return os.stat(path).st_mtime_ns // 1_000_000
    except FileNotFoundError:
        return 0
