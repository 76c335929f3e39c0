"""Reads the marks of strictly ordered messages from the stores of all groups: a table of numbers for each queue."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence

import attrs
import numpy as np
import numpy.typing as npt

from twisted_mq.protocol.messages.order_mark import OrderMark
from twisted_mq.protocol.text.properties import PROPERTY_ORDERED, decode_property_bytes
from twisted_mq.storage.columns.contents import Names, in_queues
from twisted_mq.storage.columns.record_columns import RecordColumns
from twisted_mq.storage.columns.walk import Gap, LogFiles, walk_log
from twisted_mq.storage.tools.findings import StoreFinding
from twisted_mq.storage.tools.verify import gap_finding

Advance = Callable[[int], None]
Rows = npt.NDArray[np.void]

PLAIN = -1
"""The leader of messages from a plain producer; their sequence is the queue offset."""
ROW = np.dtype([(name, np.int64) for name in ("epoch", "offset", "store", "physical", "leader", "base", "sequence")])
"""`offset` is the queue offset; `store` is the index of the store among the given ones."""

_SIGN = f"{PROPERTY_ORDERED}\x01".encode()

Queue = tuple[str, int]


@attrs.frozen
class Unmarked:
    """A message without a mark in a queue whose earlier messages in the same store have one."""

    topic: str
    queue: int
    offset: int
    store: int
    physical: int


@attrs.define
class StoredMarks:
    """The marks of several stores: `rows` has one ROW per message of a queue, in the order of the logs. Others are `unmarked`."""

    stores: Sequence[str]
    unmarked: list[Unmarked] = attrs.field(factory=list)
    problems: list[StoreFinding] = attrs.field(factory=list)
    """Parts of logs that could not be read."""
    _numbers: dict[Queue, array[int]] = attrs.field(factory=dict)

    def rows(self) -> dict[Queue, Rows]:
        """Return the rows of each queue that has marks, sorted by name and number."""
        return {queue: np.frombuffer(numbers, ROW) for queue, numbers in sorted(self._numbers.items())}

    def read(self, store: int, files: LogFiles, advance: Advance) -> None:
        """Read the whole log of one store."""
        names, seen = Names(), set[Queue]()
        for part in walk_log(files, check_bodies=False):
            if isinstance(part, Gap):
                self.problems.append(gap_finding(part))
                advance(part.length)
                continue
            self._read_batch(store, part, names, seen)
            advance(int(part.sizes.sum()))

    def _read_batch(self, store: int, batch: RecordColumns, names: Names, seen: set[Queue]) -> None:
        topics = names.numbers_of(batch)
        rows = np.flatnonzero(in_queues(batch))
        columns = (topics, batch.queue_id, batch.queue_offset, batch.physical_offsets)
        places = zip(*(column[rows].tolist() for column in columns), strict=True)
        for (topic, queue_id, offset, physical), text in zip(places, batch.property_texts(rows), strict=True):
            queue = names.texts[topic], queue_id
            mark = _mark(text, queue_id)
            if mark is not None:
                seen.add(queue)
                leader, sequence = (mark.leader, mark.sequence) if mark.sequence else (PLAIN, offset)
                numbers = (mark.epoch, offset, store, physical, leader, mark.base, sequence)
                self._numbers.setdefault(queue, array("q")).extend(numbers)
            elif queue in seen:
                self.unmarked.append(Unmarked(*queue, offset, store, physical))


def _mark(properties: bytes, queue_id: int) -> OrderMark | None:
    """Return the mark; None without one, or if it is invalid or names another queue."""
    if _SIGN not in properties:
        return None
    try:
        mark = OrderMark.decode(decode_property_bytes(properties).get(PROPERTY_ORDERED, ""))
    except ValueError:
        return None
    return mark if mark.queue == queue_id else None


def read_marks(stores: Sequence[str], advance: Advance = lambda amount: None) -> StoredMarks:
    """Return the marks in these store directories, of masters or slaves. Raises NoStore."""
    marks = StoredMarks(stores)
    for number, files in enumerate([LogFiles(store) for store in stores]):
        marks.read(number, files, advance)
    return marks
