"""Finds inconsistencies of a store by comparing log records, queue entries and their offsets.

`check_parts` checks an open store, `check_store` a directory, best without a running broker. Neither changes anything.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Protocol

from twisted_mq.protocol.bodies import TopicConfigSerializeWrapper
from twisted_mq.protocol.bodies.codec import decode_body
from twisted_mq.protocol.errors import BodyError
from twisted_mq.protocol.flags import OUT_OF_QUEUES
from twisted_mq.protocol.layouts.index import DEFAULT_ENTRIES, DEFAULT_SLOTS, IndexSizes
from twisted_mq.protocol.layouts.queue_entry import FILLER_SIZE, MAX_EXTENSION_ADDRESS
from twisted_mq.protocol.layouts.record_codec import DispatchFields
from twisted_mq.storage.index.index_check import check_index, open_index
from twisted_mq.storage.interfaces import Inconsistency, QueueKey
from twisted_mq.storage.log.commit_log import CommitLog
from twisted_mq.storage.log.log_scan import LogFile, LogScan, StopReason, intact_behind
from twisted_mq.storage.queues.batch_consume_queue import BatchConsumeQueue, entry_of
from twisted_mq.storage.queues.queue_files import BatchQueueFiles, QueueFiles
from twisted_mq.storage.store_reader import StoreReader

DEFAULT_INDEX = IndexSizes(DEFAULT_SLOTS, DEFAULT_ENTRIES)
Place = tuple[str, int, int]
"""topic, queue id, queue offset."""


class CheckedQueue(Protocol):
    """A consume queue, open or on disk."""

    topic: str
    queue_id: int

    @property
    def min_offset(self) -> int:
        """The offset of the first entry."""

    @property
    def max_offset(self) -> int:
        """The offset after the last entry."""

    @property
    def directory(self) -> str:
        """The directory of its files."""

    def entry(self, offset: int) -> tuple[int, int, int] | None:
        """Return (physical offset, size, tags code)."""


def check_parts(log: CommitLog, queues: Iterable[CheckedQueue], waiting: Collection[int] = ()) -> list[Inconsistency]:
    """Walk an open store's log from its first record, and every queue; return the inconsistencies, none for a sound store.

    `waiting` are the offsets of records that no queue has yet and that no queue may have.
    """
    scan = LogScan(log.files.files, log.min_offset)
    expected = _expected(scan, waiting)
    found = list(_damage(log.files.directory, scan))
    if scan.stop_reason is not StopReason.DAMAGED and not _ends_at(scan, log):
        problem = f"the log's end is {log.max_offset}, the last record ends here"
        found.append(Inconsistency(log.files.directory, scan.end_offset, problem))
    begins: dict[QueueKey, int] = {}
    for queue in queues:
        found += _queue(queue, log.min_offset, expected, begins)
    return found + list(_unqueued(expected, begins))


def _ends_at(scan: LogScan, log: CommitLog) -> bool:
    """Return whether the log ends with the last record, or with the blank record after it in a file that was just filled."""
    filled_up = scan.stop_reason is StopReason.FILE_END and log.next_file_offset(scan.end_offset) == log.max_offset
    return filled_up or scan.end_offset == log.max_offset


def check_store(
    root: str, commit_log: str | None = None, index_sizes: IndexSizes = DEFAULT_INDEX
) -> list[Inconsistency]:
    """Walk the files of a store; also name what the start of a broker would repair. Raises NoStore.

    Index files of other sizes than `index_sizes` are skipped, and so are records that a running broker has yet to index.
    A queue without entries counts as lost if topics.json has its topic; otherwise its topic was deleted.
    """
    reader = StoreReader(root, commit_log)
    found = list(_file_sizes(reader.files))
    expected: dict[Place, DispatchFields] = {}
    start: int | None = reader.min_offset
    while start is not None:
        scan = LogScan(reader.files, start)
        expected.update(_expected(scan, frozenset()))
        found += _damage(reader.directory, scan)
        start = intact_behind(reader.files, scan.end_offset)
        if start is not None and scan.stop_reason is not StopReason.DAMAGED:
            problem = f"nothing is written here, the next record is at {start}"
            found.append(Inconsistency(reader.directory, scan.end_offset, problem))
    begins: dict[QueueKey, int] = {}
    queues: list[QueueFiles | BatchQueueFiles] = [*reader.queues(), *reader.batch_queues()]
    for queue in queues:
        found += queue.problems()
        found += _queue(queue, reader.min_offset, expected, begins)
    topics = _known_topics(os.path.join(reader.paths.config, "topics.json"))
    for topic, queue_id, _ in expected:
        if topics is None or topic in topics:
            begins.setdefault((topic, queue_id), 0)
    found += _unqueued(expected, begins)
    return found + list(_index(reader, index_sizes))


def _index(reader: StoreReader, sizes: IndexSizes) -> Iterator[Inconsistency]:
    files = open_index(reader.paths.index, sizes)
    if files:
        position = files[-1].end_physical_offset
        yield from check_index(files, _records(reader), reader.min_offset, position)


def _records(reader: StoreReader) -> Iterator[DispatchFields]:
    """Yield all intact records, including those after damaged bytes."""
    start: int | None = reader.min_offset
    while start is not None:
        scan = LogScan(reader.files, start)
        yield from scan
        start = intact_behind(reader.files, scan.end_offset)


def _known_topics(path: str) -> Collection[str] | None:
    """Return the topics in topics.json; None if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return decode_body(TopicConfigSerializeWrapper, file.read()).topic_config_table
    except (OSError, BodyError):
        return None


def _file_sizes(files: Sequence[LogFile]) -> Iterator[Inconsistency]:
    for before, file in itertools.pairwise(files):
        if file.size != files[0].size:
            yield Inconsistency(file.path, file.first_offset, f"is {file.size} bytes long, not {files[0].size}")
        if file.first_offset != before.first_offset + before.size:
            missing = before.first_offset + before.size
            yield Inconsistency(file.path, file.first_offset, f"the file before it is missing, at {missing}")


def _expected(scan: LogScan, waiting: Iterable[int]) -> dict[Place, DispatchFields]:
    """Return the records that need queue entries. If two have one place (a topic was deleted and created again), the later."""
    return {
        (record.topic, record.queue_id, record.queue_offset): record
        for record in scan
        if not record.sys_flag & OUT_OF_QUEUES and record.physical_offset not in waiting
    }


def _damage(directory: str, scan: LogScan) -> Iterator[Inconsistency]:
    if scan.stop_reason is StopReason.DAMAGED:
        yield Inconsistency(directory, scan.end_offset, f"damaged record: {scan.problem}")


def _queue(
    queue: CheckedQueue | BatchQueueFiles,
    min_physical_offset: int,
    expected: dict[Place, DispatchFields],
    begins: dict[QueueKey, int],
) -> Iterator[Inconsistency]:
    """Yield the entries that lead to no record of their queue; remove the records of the others from `expected`.

    Puts the place of the queue's first record into `begins`.
    """
    if isinstance(queue, BatchConsumeQueue | BatchQueueFiles):
        yield from _batch_queue(queue, min_physical_offset, expected, begins)
        return
    for offset in range(queue.min_offset, queue.max_offset):
        entry = queue.entry(offset)
        if entry is None or entry[1] == FILLER_SIZE or entry[0] < min_physical_offset:
            continue
        begins.setdefault((queue.topic, queue.queue_id), entry[0])
        record = expected.pop((queue.topic, queue.queue_id, offset), None)
        if record is None:
            if entry == queue.entry(offset + 1):
                continue  # a bridge over a lost message, see ConsumeQueue.append_at
            problem = f"leads to {entry[0]}, where no record of this queue offset is"
            yield Inconsistency(queue.directory, offset, problem)
        elif not _says(entry, record):
            right = (record.physical_offset, record.size, record.tags_code)
            yield Inconsistency(queue.directory, offset, f"is {entry}, the record says {right}")


def _batch_queue(
    queue: BatchConsumeQueue | BatchQueueFiles,
    min_physical_offset: int,
    expected: dict[Place, DispatchFields],
    begins: dict[QueueKey, int],
) -> Iterator[Inconsistency]:
    """Yield the same for a batch queue: each entry must match its record, and must not overlap the entry before it."""
    next_offset = 0
    for entry in queue.batch_entries():
        offset, count = entry[-2:]
        if offset < next_offset:
            yield Inconsistency(queue.directory, offset, f"the entry before it reaches to {next_offset}")
        next_offset = offset + count
        if entry[0] < min_physical_offset:
            continue
        begins.setdefault((queue.topic, queue.queue_id), entry[0])
        record = expected.pop((queue.topic, queue.queue_id, offset), None)
        if record is None:
            problem = f"leads to {entry[0]}, where no record of this queue offset is"
            yield Inconsistency(queue.directory, offset, problem)
        elif entry != entry_of(record):
            yield Inconsistency(queue.directory, offset, f"is {entry}, the record says {entry_of(record)}")


def _says(entry: tuple[int, int, int], record: DispatchFields) -> bool:
    """Return whether an entry matches the record. On disk the tags code may be in an extension unit, which is not read."""
    tags_code = record.tags_code if entry[2] > MAX_EXTENSION_ADDRESS else entry[2]
    return entry == (record.physical_offset, record.size, tags_code)


def _unqueued(expected: dict[Place, DispatchFields], begins: dict[QueueKey, int]) -> Iterator[Inconsistency]:
    """Yield each record without an entry, except records of deleted topics, even if the topics were created again."""
    for (topic, queue_id, offset), record in expected.items():
        begin = begins.get((topic, queue_id))
        if begin is not None and record.physical_offset >= begin:
            problem = f"no entry leads to the record at {record.physical_offset}"
            yield Inconsistency(f"{topic}/{queue_id}", offset, problem)
