"""Decides where in the log a recovery begins to walk.

Apache begins at the first record of a file. Files may hold a gigabyte, so if that would mean more than
`recovery_scan_bytes`, recovery begins at a record nearer to the end that the queues name and the log confirms.
"""

from __future__ import annotations

from collections.abc import Iterable

from twisted_mq.protocol.boundary_type import BoundaryType
from twisted_mq.storage.config import StoreConfig
from twisted_mq.storage.log.commit_log import CommitLog
from twisted_mq.storage.log.log_scan import first_store_timestamp
from twisted_mq.storage.queues.consume_queue import ConsumeQueue
from twisted_mq.storage.queues.queue_reader import QueueReader

FILES_CHECKED = 3
"""The number of the last log files that a clean start walks through."""


def reached_by(queues: Iterable[ConsumeQueue]) -> int:
    """Return the physical offset after the last record that any queue leads to; 0 without one."""
    return max((queue.max_physical_offset for queue in queues), default=0)


def clean_start(config: StoreConfig, log: CommitLog, queues: Iterable[ConsumeQueue]) -> int:
    """Return the start of the third file from the end, or of the file that the queues reach, whichever comes first."""
    reached = reached_by(queues)
    third = log.files.files[-FILES_CHECKED:][0].first_offset
    start = min(third, reached - reached % log.file_size)
    wanted = reached - config.recovery_scan_bytes
    if wanted <= start:
        return start
    known = (queue.peek(queue.first_at_or_behind(wanted)) for queue in queues)
    return min((entry[0] for entry in known if entry is not None and log.record_at(entry[0])), default=start)


def unclean_start(config: StoreConfig, log: CommitLog, queues: Iterable[ConsumeQueue], safe_timestamp: int) -> int:
    """Return the start of the newest file whose first record was stored by `safe_timestamp` (Apache: isMappedFileMatchedRecover).

    Up to that time log and queues are on disk, so any record of that time is an equally good start.
    """
    start = log.min_offset
    for file in reversed(log.files.files):
        timestamp = first_store_timestamp(file.readable)
        if timestamp and timestamp <= safe_timestamp:
            start = file.first_offset
            break
    if reached_by(queues) - start <= config.recovery_scan_bytes:
        return start
    reader = QueueReader(config, log)
    for queue in sorted(queues, key=lambda queue: queue.max_physical_offset, reverse=True):
        if queue.max_physical_offset <= start:  # all of it is before what another queue leads to
            break
        start = max(start, _last_before(reader, log, queue, safe_timestamp))
    return start


def _last_before(reader: QueueReader, log: CommitLog, queue: ConsumeQueue, timestamp: int) -> int:
    """Return the physical offset of a queue's last record of that time or earlier; the log's beginning without one."""
    offset = reader.offset_by_time(queue, timestamp, BoundaryType.UPPER)
    entry = queue.entry(offset)
    if entry is None or reader.store_timestamp(queue, offset) > timestamp or log.record_at(entry[0]) is None:
        return log.min_offset
    return entry[0]
