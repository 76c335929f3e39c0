"""Compares the log with the consume queues, in one pass (the rules of twisted_mq.storage.check, for stores of any size).

Each batch of records is compared with the entries that should lead to it. Matches are ticked off; records without a match
are remembered. So memory holds a byte for every queue entry and a few numbers for every record without a match.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import attrs
import numpy as np

from twisted_mq.protocol.bodies import TopicConfig
from twisted_mq.protocol.columns import Numbers
from twisted_mq.storage.columns.contents import Names, TagsCodes, entry_codes, groups, in_queues
from twisted_mq.storage.columns.property_shapes import Shapes
from twisted_mq.storage.columns.record_columns import RecordColumns
from twisted_mq.storage.queues.queue_files import BatchQueueFiles, QueueFiles
from twisted_mq.storage.tools.batch_queues import BatchQueueEntries, batch_columns
from twisted_mq.storage.tools.findings import QUEUE, StoreFinding, runs
from twisted_mq.storage.tools.queue_entries import QueueEntries

LIGHT_QUEUES = "%LMQ%"
"""The prefix of queues whose entries lead to records of other topics (Apache: MixAll.LMQ_PREFIX)."""


@attrs.define
class Strays:
    """Records without a matching entry at their queue offset: columns of offset, physical offset, size, tags.

    Those of batch queues have two more, see batch_queues.
    """

    parts: list[Numbers] = attrs.field(factory=list)

    def add(self, rows: Numbers) -> None:
        """Remember these rows."""
        self.parts.append(rows)

    def latest(self) -> Numbers:
        """Return one row for each queue offset, in order; if a topic was created again, the later record counts."""
        rows = np.concatenate(self.parts)
        rows = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
        last = np.append(rows[1:, 0] != rows[:-1, 0], True)
        latest: Numbers = rows[last]
        return latest


@attrs.define
class QueueCheck:
    """Takes every batch of the log; then `findings` returns the result.

    `known_topics` is None if topics.json cannot be read. A record whose topic is not in it and has no queue was deleted with
    its topic. In a store in use, records after the last entries wait for their dispatch.
    """

    queues: dict[tuple[str, int], QueueEntries | BatchQueueEntries]
    known_topics: Mapping[str, TopicConfig] | None = None
    in_use: bool = False
    deleted_records: int = 0
    undispatched: int = 0
    _names: Names = attrs.field(factory=Names)
    _tags: TagsCodes = attrs.field(factory=TagsCodes)
    _strays: dict[tuple[str, int], Strays] = attrs.field(factory=dict)

    @classmethod
    def of(
        cls,
        queues: Iterable[QueueFiles | BatchQueueFiles],
        topics: Mapping[str, TopicConfig] | None,
        *,
        in_use: bool,
    ) -> QueueCheck:
        """Make a check of these queues, without light ones; `topics` are those of topics.json, None if it cannot be read."""
        entries: dict[tuple[str, int], QueueEntries | BatchQueueEntries] = {}
        for queue in queues:
            if isinstance(queue, BatchQueueFiles):
                entries[queue.topic, queue.queue_id] = BatchQueueEntries(queue)
            elif not queue.topic.startswith(LIGHT_QUEUES):
                entries[queue.topic, queue.queue_id] = QueueEntries(queue)
        return cls(entries, topics, in_use)

    def add(self, batch: RecordColumns, shapes: Shapes) -> Numbers:
        """Compare a batch; return the numbers of its topics in `names`."""
        topics = self._names.numbers_of(batch)
        codes = entry_codes(batch, topics, self._names, self._tags, shapes)
        physical, sizes = batch.physical_offsets, batch.sizes
        rows = np.flatnonzero(in_queues(batch))
        for topic, queue_id, chosen in groups(topics, batch.queue_id, rows):
            columns = (batch.queue_offset[chosen], physical[chosen], sizes[chosen], codes[chosen])
            records, key = np.stack(columns, axis=1), (self._names.texts[topic], queue_id)
            if isinstance(self.queues.get(key), BatchQueueEntries):
                records = batch_columns(batch, chosen, records)
            self._compare(key, records)
        return topics

    @property
    def names(self) -> Names:
        """The topics found so far."""
        return self._names

    def _compare(self, key: tuple[str, int], records: Numbers) -> None:
        queue = self.queues.get(key)
        fits = queue.fits(records) if queue is not None else np.zeros(len(records), np.bool_)
        if queue is not None:
            queue.mark(records[fits, 0])
        if not fits.all():
            self._strays.setdefault(key, Strays()).add(records[~fits])

    def findings(self, min_physical_offset: int) -> Iterator[StoreFinding]:
        """Yield the defects between log and queues; call it once, at the end. `min_physical_offset` is the log's beginning."""
        strays = {key: found.latest() for key, found in self._strays.items()}
        if self.in_use:
            strays = {key: self._still_stray(key, rows) for key, rows in strays.items()}
        reached = max((queue.reached() for queue in self.queues.values()), default=0) if self.in_use else None
        for key, queue in sorted(self.queues.items()):
            yield from self._queue(queue, strays.pop(key, np.zeros((0, 4), np.int64)), min_physical_offset, reached)
        for key, rows in sorted(strays.items()):
            yield from self._without_queue(key, rows, reached)

    def _still_stray(self, key: tuple[str, int], rows: Numbers) -> Numbers:
        """Return the rows that are still without an entry after a second read of the queue."""
        queue = self.queues.get(key)
        if queue is None:
            return rows
        queue.refresh()
        still: Numbers = rows[~queue.fits(rows)]
        return still

    def _queue(
        self, queue: QueueEntries | BatchQueueEntries, strays: Numbers, min_physical_offset: int, reached: int | None
    ) -> Iterator[StoreFinding]:
        offsets, entries = queue.unseen(min_physical_offset)
        places = np.searchsorted(strays[:, 0], offsets)
        meant = np.zeros(len(offsets), np.bool_)
        inside = places < len(strays)
        meant[inside] = strays[places[inside], 0] == offsets[inside]
        for row in np.flatnonzero(meant).tolist():
            right = tuple(strays[places[row], 1:].tolist())
            yield StoreFinding(
                QUEUE, queue.directory, int(offsets[row]), f"is {entries[row].item()}, the record says {right}"
            )
        bridges = entries == queue.at(offsets + 1)
        lost, entries = offsets[~meant & ~bridges], entries[~meant & ~bridges]
        for first, count in runs(lost):
            problem = f"leads to {entries['physical_offset'][first]}, where no record of this queue offset is"
            yield StoreFinding(QUEUE, queue.directory, int(lost[first]), problem, count)
        begin = queue.first_physical_offset(min_physical_offset)
        if begin is None and self.known_topics is not None and queue.topic not in self.known_topics:
            self.deleted_records += len(strays)
            return
        rest = strays[~np.isin(strays[:, 0], offsets[meant])]
        rest = rest[(rest[:, 1] >= (begin or 0)) | (rest[:, 0] < queue.min_offset)]
        rest = rest[rest[:, 1] >= min_physical_offset]
        rest = rest[rest[:, 1] > queue.at(rest[:, 0])["physical_offset"]]
        yield from self._unqueued(queue.directory, rest, reached)

    def _unqueued(self, path: str, rows: Numbers, reached: int | None) -> Iterator[StoreFinding]:
        if reached is not None:
            self.undispatched += int((rows[:, 1] >= reached).sum())
            rows = rows[rows[:, 1] < reached]
        for first, count in runs(rows[:, 0]):
            problem = f"no entry leads to the record at {rows[first, 1]}"
            yield StoreFinding(QUEUE, path, int(rows[first, 0]), problem, count)

    def _without_queue(self, key: tuple[str, int], rows: Numbers, reached: int | None) -> Iterator[StoreFinding]:
        topic, queue_id = key
        if self.known_topics is not None and topic not in self.known_topics:
            self.deleted_records += len(rows)
            return
        yield from self._unqueued(f"{topic}/{queue_id}", rows, reached)


def wrong_kinds(
    queues: Iterable[QueueFiles | BatchQueueFiles], topics: Mapping[str, TopicConfig] | None
) -> Iterator[StoreFinding]:
    """Yield the queues of another kind than topics.json gives their topic."""
    for queue in queues:
        config = (topics or {}).get(queue.topic)
        if config is not None and config.has_batch_queues is not isinstance(queue, BatchQueueFiles):
            yield StoreFinding(QUEUE, queue.directory, 0, f"topics.json gives {queue.topic} queues of another kind")
