"""Verifies a store: each record of the log, then the log against queues, index and consumer offsets.

It only reads, with one file mapped at a time, so a store may be larger than memory. A broker may be using the store:
messages that it appends meanwhile are checked as far as they are complete.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

import attrs

from twisted_mq.protocol.layouts.index import IndexSizes
from twisted_mq.storage.columns.contents import odd_records
from twisted_mq.storage.columns.property_shapes import Shapes
from twisted_mq.storage.columns.record_columns import RecordColumns
from twisted_mq.storage.columns.walk import Gap, LogFiles, walk_log
from twisted_mq.storage.files.directory import is_locked
from twisted_mq.storage.queues.queue_files import BatchQueueFiles, QueueFiles
from twisted_mq.storage.store_reader import StoreReader
from twisted_mq.storage.tools.batch_queues import message_counts
from twisted_mq.storage.tools.config_check import known_topics, offset_findings, unreadable_tables
from twisted_mq.storage.tools.findings import LOG, QUEUE, StoreFinding
from twisted_mq.storage.tools.index_tools import IndexCheck
from twisted_mq.storage.tools.queue_check import QueueCheck, wrong_kinds

Advance = Callable[[int], None]
"""Called with the number of the log's bytes walked over since the last call."""


@attrs.define
class VerifyReport:
    """The contents and defects of a store; `findings` is empty for a sound one."""

    directory: str
    closed: bool
    in_use: bool
    min_offset: int = 0
    max_offset: int = 0
    messages: int = 0
    message_bytes: int = 0
    topics: int = 0
    queues: int = 0
    entries: int = 0
    index_entries: int = 0
    deleted_records: int = 0
    undispatched: int = 0
    findings: list[StoreFinding] = attrs.field(factory=list)
    queue_ends: dict[tuple[str, int], int] = attrs.field(factory=dict)

    @property
    def sound(self) -> bool:
        """Return whether the store has no defect."""
        return not self.findings


def verify(
    root: str,
    commit_log: str | None = None,
    *,
    file_size: int = 0,
    index_sizes: IndexSizes | None = None,
    exclusive: bool = False,
    advance: Advance = lambda amount: None,
) -> VerifyReport:
    """Verify the whole store. `file_size` is the log's, if its files do not tell; with `exclusive` the caller has the lock.

    Raises NoStore.
    """
    files = LogFiles(root, commit_log, file_size)
    in_use = not exclusive and is_locked(files.paths.lock)
    report = VerifyReport(root, not os.path.exists(files.paths.abort), in_use, files.min_offset, files.min_offset)
    reader, topics = StoreReader(root, commit_log), known_topics(files.paths)
    queues: list[QueueFiles | BatchQueueFiles] = [*reader.queues(), *reader.batch_queues()]
    report.topics = len({queue.topic for queue in queues})
    report.queues = len(queues)
    report.entries = sum(queue.end_place - queue.begin_place for queue in queues)
    check = QueueCheck.of(queues, topics, in_use=in_use)
    report.findings += file_findings(files)
    report.findings += queue_file_findings(queues)
    report.findings += wrong_kinds(queues, topics)
    index = IndexCheck(files.paths, check.names, index_sizes)
    report.index_entries = index.entries
    _walk(files, check, index, report, advance)
    first = _present_min_offset(files) if in_use else files.min_offset
    report.findings += check.findings(first)
    report.findings += index.findings(first)
    report.findings += unreadable_tables(files.paths)
    report.queue_ends = {key: queue.max_offset for key, queue in check.queues.items()}
    report.findings += offset_findings(files.paths, report.queue_ends)
    report.deleted_records, report.undispatched = check.deleted_records, check.undispatched
    return report


def _present_min_offset(files: LogFiles) -> int:
    """Return where the log begins now: a broker may have deleted files since the walk began."""
    return LogFiles(files.paths.root, files.directory, files.file_size).min_offset


def _walk(files: LogFiles, check: QueueCheck, index: IndexCheck, report: VerifyReport, advance: Advance) -> None:
    for part in walk_log(files):
        if isinstance(part, Gap):
            if not (report.in_use and part.end >= files.files[-1].first_offset + files.file_size):
                report.findings.append(gap_finding(part))
            advance(part.length)
            continue
        shapes = Shapes.of(part)
        topics = check.add(part, shapes)
        if index.entries:
            index.add(part, topics, shapes)
        report.findings += _odd(part, odd_records(part, topics, check.names).tolist())
        report.messages += int(message_counts(part).sum())
        size = int(part.sizes.sum())
        report.message_bytes += size
        report.max_offset = int(part.physical_offsets[-1] + part.sizes[-1])
        advance(size)


def queue_ends(files: LogFiles) -> dict[tuple[str, int], int]:
    """Return the offset after the last entry of every queue."""
    reader = StoreReader(files.paths.root, files.directory)
    ends = {(queue.topic, queue.queue_id): queue.max_offset for queue in reader.queues()}
    return ends | {(queue.topic, queue.queue_id): queue.max_offset for queue in reader.batch_queues()}


def gap_finding(gap: Gap) -> StoreFinding:
    """Return a finding that describes a gap."""
    return StoreFinding(LOG, gap.path, gap.physical_offset, f"{gap.length} bytes are not a record: {gap.reason}")


def _odd(batch: RecordColumns, rows: list[int]) -> Iterator[StoreFinding]:
    for row in rows:
        place = int(batch.starts[row]) + batch.log.first_offset
        topic = batch.log.data[int(batch.topic[row]) : int(batch.topic_end[row])]
        what = f"topic {topic!r}, queue {batch.queue_id[row]}, offset {batch.queue_offset[row]}"
        yield StoreFinding(LOG, batch.log.path, place, f"the record says it is {what}")


def file_findings(files: LogFiles) -> Iterator[StoreFinding]:
    """Yield the log files of a wrong length."""
    for file in files.files:
        if file.size != files.file_size:
            problem = f"is {file.size} bytes long, not {files.file_size}"
            yield StoreFinding(LOG, file.path, file.first_offset, problem)


def queue_file_findings(queues: Sequence[QueueFiles | BatchQueueFiles]) -> Iterator[StoreFinding]:
    """Yield the queue files of a wrong length, and missing ones."""
    for queue in queues:
        for one in queue.problems():
            yield StoreFinding(QUEUE, one.path, one.offset, one.problem)
