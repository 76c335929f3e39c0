"""Measures the space of a store: the bytes of each topic, and the topics that keep log files from being deleted.

A log file is deleted as a whole, and only the oldest one can be. A topic pins a file if it has live messages there:
messages that one of its queues leads to. `what_if_dropped` tells which files dropping topics would free.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import attrs
import numpy as np

from twisted_mq.protocol.columns import Numbers
from twisted_mq.storage.columns.contents import Names, groups, in_queues
from twisted_mq.storage.columns.record_columns import RecordColumns
from twisted_mq.storage.columns.walk import Gap, LogFiles, walk_log
from twisted_mq.storage.store_reader import StoreReader
from twisted_mq.storage.tables.config_tables import TOPIC_GROUP_SEPARATOR
from twisted_mq.storage.tools.batch_queues import message_counts
from twisted_mq.storage.tools.config_check import consumer_offsets

Advance = Callable[[int], None]


@attrs.define
class TopicSize:
    """The sizes of a topic. Times are store times in ms; `queue_bytes` is the length of its queue files, holes included."""

    topic: str
    messages: int = 0
    log_bytes: int = 0
    live_bytes: int = 0
    queue_bytes: int = 0
    oldest: int = 0
    newest: int = 0
    files: int = 0


@attrs.define
class FileSize:
    """A log file: `live` maps topic to bytes of live messages here, `unread` has the "topic@group" that still reads it."""

    path: str
    first_offset: int
    record_bytes: int = 0
    oldest: int = 0
    newest: int = 0
    live: dict[str, int] = attrs.field(factory=dict)
    unread: set[str] = attrs.field(factory=set)

    @property
    def pinned_by(self) -> list[str]:
        """The topics with live messages here, the largest first."""
        return sorted(self.live, key=lambda topic: (-self.live[topic], topic))


@attrs.define
class StoreSizes:
    """The sizes of a whole store."""

    file_size: int
    topics: dict[str, TopicSize]
    files: list[FileSize]

    def what_if_dropped(self, topics: Collection[str]) -> DropReport:
        """Return which files and bytes dropping these topics would free."""
        chosen = [self.topics[topic] for topic in topics if topic in self.topics]
        alone = [file for file in self.files[:-1] if file.live and set(file.live) <= set(topics)]
        free = []
        for file in self.files[:-1]:
            if not set(file.live) <= set(topics):
                break
            free.append(file)
        return DropReport(
            sorted(topics),
            sum(one.messages for one in chosen),
            sum(one.log_bytes for one in chosen),
            sum(one.queue_bytes for one in chosen),
            [file.path for file in alone],
            [file.path for file in free],
            len(free) * self.file_size,
        )


@attrs.frozen
class DropReport:
    """The effect of dropping topics: `only_theirs` are files that no other topic pins.

    `deletable` are those of them, and unpinned ones, at the log's beginning.
    """

    topics: list[str]
    messages: int
    log_bytes: int
    queue_bytes: int
    only_theirs: list[str]
    deletable: list[str]
    deletable_bytes: int


def measure(root: str, commit_log: str | None = None, advance: Advance = lambda amount: None) -> StoreSizes:
    """Walk the log once. Raises NoStore."""
    files = LogFiles(root, commit_log)
    measured = _Measure(files, root, commit_log)
    for part in walk_log(files, check_bodies=False):
        advance(part.length if isinstance(part, Gap) else int(part.sizes.sum()))
        if not isinstance(part, Gap):
            measured.add(part)
    return measured.finish()


class _Measure:
    def __init__(self, files: LogFiles, root: str, commit_log: str | None) -> None:
        self._names = Names()
        self._topics: dict[str, TopicSize] = {}
        self._files = {file.first_offset: FileSize(file.path, file.first_offset) for file in files.files}
        self._file_size = files.file_size
        self._seen: set[tuple[str, int]] = set()
        self._first_offsets: dict[tuple[str, int], int] = {}
        self._groups: dict[tuple[str, int], list[tuple[str, int]]] = {}
        reader = StoreReader(root, commit_log)
        for queue in (*reader.queues(), *reader.batch_queues()):
            self._topic(queue.topic).queue_bytes += queue.size_bytes
            first = queue.first_physical_offset
            self._first_offsets[queue.topic, queue.queue_id] = first if first is not None else 1 << 63
        for key, queues in consumer_offsets(files.paths).items():
            for queue_id, offset in queues.items():
                topic = key.partition(TOPIC_GROUP_SEPARATOR)[0]
                self._groups.setdefault((topic, queue_id), []).append((key, offset))

    def _topic(self, name: str) -> TopicSize:
        return self._topics.setdefault(name, TopicSize(name))

    def add(self, batch: RecordColumns) -> None:
        file = self._files[batch.log.first_offset]
        file.record_bytes += int(batch.sizes.sum())
        file.oldest = file.oldest or int(batch.store_timestamp[0])
        file.newest = int(batch.store_timestamp[-1])
        topics = self._names.numbers_of(batch)
        for number in np.unique(topics).tolist():
            self._count(batch, np.flatnonzero(topics == number), self._names.texts[number])
        for number, queue_id, rows in groups(topics, batch.queue_id, np.flatnonzero(in_queues(batch))):
            self._live(file, batch, self._names.texts[number], queue_id, rows)

    def _count(self, batch: RecordColumns, rows: Numbers, topic: str) -> None:
        size = self._topic(topic)
        size.messages += int(message_counts(batch.rows(rows)).sum())
        size.log_bytes += int(batch.sizes[rows].sum())
        size.oldest = size.oldest or int(batch.store_timestamp[rows[0]])
        size.newest = int(batch.store_timestamp[rows[-1]])
        size.files += (topic, batch.log.first_offset) not in self._seen
        self._seen.add((topic, batch.log.first_offset))

    def _live(self, file: FileSize, batch: RecordColumns, topic: str, queue_id: int, rows: Numbers) -> None:
        first = self._first_offsets.get((topic, queue_id), 1 << 63)
        live = rows[batch.physical_offsets[rows] >= first] if first < 1 << 63 else rows[:0]
        if not len(live):
            return
        size = int(batch.sizes[live].sum())
        file.live[topic] = file.live.get(topic, 0) + size
        self._topic(topic).live_bytes += size
        last = int((batch.queue_offset[live] + message_counts(batch.rows(live))).max()) - 1
        file.unread.update(key for key, offset in self._groups.get((topic, queue_id), ()) if offset <= last)

    def finish(self) -> StoreSizes:
        return StoreSizes(self._file_size, self._topics, list(self._files.values()))
