"""Writes all consume queues and the key index again from the log, which is authoritative.

New files are made beside the old ones and replace them when all are on disk; the old ones go to the quarantine
folder. If that is interrupted, the next start of a broker walks through the whole log. Queues of deleted topics are
not revived: a topic counts as deleted if topics.json does not name it and it has no queue. Light queues (%LMQ%), whose
records are of other topics, are not changed.
"""

from __future__ import annotations

import collections
import os
import shutil
from collections.abc import Callable, Iterable

import attrs
import numpy as np

from twisted_mq.protocol.columns import Numbers
from twisted_mq.protocol.layouts.index import IndexSizes
from twisted_mq.protocol.layouts.queue_entry import BATCH_ENTRY_BYTES, ENTRY_BYTES
from twisted_mq.storage.columns.contents import Names, TagsCodes, entry_codes, groups, in_queues
from twisted_mq.storage.columns.property_shapes import Shapes
from twisted_mq.storage.columns.walk import Gap, LogFiles, walk_log
from twisted_mq.storage.config import QUEUE_ENTRIES_A_FILE
from twisted_mq.storage.files.directory import sync_directory, sync_tree
from twisted_mq.storage.files.files_at_rest import files_in
from twisted_mq.storage.files.paths import StorePaths, is_topic_name
from twisted_mq.storage.recovery.interruption_mark import Unfinished
from twisted_mq.storage.tools.batch_queues import BatchQueueWriter, batch_columns
from twisted_mq.storage.tools.config_check import known_topics
from twisted_mq.storage.tools.exclusive import exclusively
from twisted_mq.storage.tools.index_rebuild import IndexRebuild, usual_sizes
from twisted_mq.storage.tools.index_tools import index_files
from twisted_mq.storage.tools.quarantine import Quarantine
from twisted_mq.storage.tools.queue_check import LIGHT_QUEUES
from twisted_mq.storage.tools.queue_writer import QueueWriter

Advance = Callable[[int], None]
_BESIDE = "rebuilding"


@attrs.define
class RebuildReport:
    """The result of a rebuild, or the result that it would have."""

    queues: int = 0
    entries: int = 0
    bridges: int = 0
    index_entries: int = 0
    records_of_deleted_topics: int = 0
    left_out: list[tuple[str, int, int, int]] = attrs.field(factory=list)
    """topic, queue id, queue offset, physical offset of records whose queue offset is wrong."""
    gaps: int = 0
    kept_in: str = ""


class QueueRebuild:
    """Reads the log once. The queues' directories are made in `made`; with None nothing is written."""

    def __init__(
        self,
        files: LogFiles,
        made: StorePaths | None,
        queue_file_size: int = 0,
        index: IndexRebuild | None = None,
    ) -> None:
        self.report = RebuildReport()
        self._files = files
        self._made = made
        self._index = index
        self._file_size = queue_file_size or usual_queue_file_size(files.paths)
        self._batch_file_size = usual_batch_queue_file_size(files.paths)
        self._names = index.names if index is not None else Names()
        self._tags = TagsCodes()
        self._writers: dict[tuple[str, int], QueueWriter | BatchQueueWriter] = {}
        self._topics = known_topics(files.paths)
        self._batched = {topic for topic, _ in files.paths.batch_queue_directories()}
        self._on_disk = {topic for topic, _ in files.paths.queue_directories()} | self._batched

    def run(self, advance: Advance = lambda amount: None) -> RebuildReport:
        """Run the pass and return the report. Raises OSError if writing fails."""
        for part in walk_log(self._files):
            if isinstance(part, Gap):
                self.report.gaps += 1
                advance(part.length)
                continue
            topics = self._names.numbers_of(part)
            shapes = Shapes.of(part)
            codes = entry_codes(part, topics, self._names, self._tags, shapes)
            columns = np.stack((part.queue_offset, part.physical_offsets, part.sizes, codes), axis=1)
            for number, queue_id, rows in groups(topics, part.queue_id, np.flatnonzero(in_queues(part))):
                topic, records = self._names.texts[number], columns[rows]
                if self._is_batched(topic):
                    records = batch_columns(part, rows, records)
                self._add(topic, queue_id, records)
            if self._index is not None:
                self._index.add(part, topics, shapes)
            advance(int(part.sizes.sum()))
        self._finish()
        return self.report

    def _add(self, topic: str, queue_id: int, records: Numbers) -> None:
        if not self._is_wanted(topic, queue_id):
            self.report.records_of_deleted_topics += len(records)
            return
        writer = self._writers.get((topic, queue_id))
        if writer is None:
            writer = self._writers[topic, queue_id] = self._writer(topic, queue_id)
        writer.add(records)

    def _writer(self, topic: str, queue_id: int) -> QueueWriter | BatchQueueWriter:
        made = self._made
        if self._is_batched(topic):
            return BatchQueueWriter(made.batch_queue(topic, queue_id) if made else None, self._batch_file_size)
        return QueueWriter(made.queue(topic, queue_id) if made else None, self._file_size)

    def _is_batched(self, topic: str) -> bool:
        """Return whether the topic has batch queues; if topics.json does not tell, the directories do."""
        config = (self._topics or {}).get(topic)
        return topic in self._batched if config is None else config.has_batch_queues

    def _is_wanted(self, topic: str, queue_id: int) -> bool:
        if not is_topic_name(topic) or queue_id < 0:
            return False
        return self._topics is None or topic in self._on_disk or topic in self._topics

    def _finish(self) -> None:
        report = self.report
        if self._index is not None:
            self._index.finish()
            report.index_entries = self._index.entries
        for (topic, queue_id), writer in sorted(self._writers.items()):
            writer.finish()
            report.queues += 1
            report.bridges += writer.bridges
            report.entries += writer.entries
            report.left_out += [(topic, queue_id, row[0], row[1]) for row in writer.left_out]


def usual_queue_file_size(paths: StorePaths) -> int:
    """Return the length of most queue files of the store; Apache's 6,000,000 bytes without any."""
    return _usual((paths.queue(*key) for key in paths.queue_directories()), ENTRY_BYTES)


def usual_batch_queue_file_size(paths: StorePaths) -> int:
    """Return the same for batch queues; Apache's 13,800,000 bytes without any."""
    return _usual((paths.batch_queue(*key) for key in paths.batch_queue_directories()), BATCH_ENTRY_BYTES)


def _usual(directories: Iterable[str], entry_bytes: int) -> int:
    sizes = collections.Counter(file.size for directory in directories for file in files_in(directory))
    usual = [size for size, _ in sizes.most_common() if size % entry_bytes == 0]
    return usual[0] if usual else QUEUE_ENTRIES_A_FILE * entry_bytes


def rebuild(
    root: str,
    commit_log: str | None = None,
    *,
    apply: bool = False,
    name: str = "",
    queue_file_size: int = 0,
    index_sizes: IndexSizes | None = None,
    advance: Advance = lambda amount: None,
) -> RebuildReport:
    """Report what would be written, or with `apply` write it. `name` is that of the quarantine folder.

    Raises NoStore, StoreInUse, StoreUnwritable, StoreFull, OSError.
    """
    files = LogFiles(root, commit_log)
    if not apply:
        return QueueRebuild(files, None, queue_file_size).run(advance)
    with exclusively(files.paths):
        quarantine = Quarantine(files.paths, name, "mq store rebuild")
        quarantine.open()
        unfinished = Unfinished(files.paths)
        report = replace_derived(files, quarantine, unfinished, queue_file_size, index_sizes, advance)
        unfinished.take_back()
        quarantine.write_manifest()
    return report


def replace_derived(
    files: LogFiles,
    quarantine: Quarantine,
    unfinished: Unfinished,
    queue_file_size: int = 0,
    index_sizes: IndexSizes | None = None,
    advance: Advance = lambda amount: None,
) -> RebuildReport:
    """Build queues and index again and put the old ones into the quarantine; the caller holds the store's lock.

    The index is built only if there was one before. `unfinished` begins with the first change.
    """
    paths = files.paths
    made = StorePaths(os.path.join(paths.root, _BESIDE))
    shutil.rmtree(made.root, ignore_errors=True)
    os.makedirs(made.consume_queues)
    indexing = None
    if index_files(paths):
        os.makedirs(made.index)
        indexing = IndexRebuild(made.index, usual_sizes(paths, index_sizes))
    report = QueueRebuild(files, made, queue_file_size, indexing).run(advance)
    for topic in {topic for topic, _ in paths.queue_directories() if topic.startswith(LIGHT_QUEUES)}:
        shutil.copytree(os.path.join(paths.consume_queues, topic), os.path.join(made.consume_queues, topic))
    sync_tree(made.root)
    unfinished.begin(index=True)
    _swap(made.consume_queues, paths.consume_queues, quarantine)
    if os.path.isdir(made.batch_consume_queues) or os.path.isdir(paths.batch_consume_queues):
        os.makedirs(made.batch_consume_queues, exist_ok=True)
        _swap(made.batch_consume_queues, paths.batch_consume_queues, quarantine)
    if indexing is not None:
        _swap(made.index, paths.index, quarantine)
    os.rmdir(made.root)
    sync_directory(paths.root)
    report.kept_in = quarantine.directory
    return report


def _swap(made: str, path: str, quarantine: Quarantine) -> None:
    """Put a new directory in the place of the old one, which is kept in the quarantine."""
    if os.path.isdir(path):
        quarantine.keep_path(path, "replaced by data rebuilt from the log")
    os.rename(made, path)
    sync_directory(os.path.dirname(path))
