"""Checks whether strictly ordered queues are in order, from the stores of all groups.

A queue is the messages of its epochs one after the other, each in the order of its queue offsets. The stores of a
group's master and slave have the same messages; such copies count once. In that order each leader's sequences must
count up by one. A message may come again in a later epoch (`resent`): it was stored before, but not acknowledged.
Messages deleted before the first message of a queue are not reported as missing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import attrs
import numpy as np

from twisted_mq.protocol.columns import Mask, Numbers
from twisted_mq.storage.tables.passed_over_table import PASSED_OVER_FILE, decode_rows
from twisted_mq.storage.tools.order_marks import PLAIN, Queue, Rows, StoredMarks

GAP, SWAP, REPEAT, STALE, FORK, UNMARKED = "gap", "swap", "repeat", "stale", "fork", "unmarked"
MEANINGS = {
    GAP: "no store has these sequences: lost, or never sent by their producer",
    SWAP: "comes after a later sequence of its leader",
    REPEAT: "is a repeat in its epoch",
    STALE: "comes after a message of a later epoch or leader",
    FORK: "another store has a different message of that epoch at its queue offset",
    UNMARKED: "has no mark of its queue, after messages that have one",
}


@attrs.frozen
class OrderFault:
    """A break of the order at the message at `physical` in `store`; for a gap that is the message after it."""

    topic: str
    queue: int
    kind: str
    epoch: int | None
    leader: int | None
    """None for a plain producer's messages, whose sequences are queue offsets."""
    first: int
    last: int
    store: str
    physical: int


@attrs.frozen
class OrderTerm:
    """The messages of one leader in one epoch of a queue: their number, first and last sequence and queue offset."""

    topic: str
    queue: int
    epoch: int
    leader: int | None
    stores: tuple[str, ...]
    messages: int
    first: int
    last: int
    first_offset: int
    last_offset: int
    resent: int


@attrs.frozen
class PassedOver:
    """Messages that a consumer group skipped without having consumed them there, as recorded by the broker of `store`."""

    topic: str
    queue: int
    group: str
    epoch: int
    first_offset: int
    count: int
    reason: str
    store: str


@attrs.frozen
class OrderAudit:
    """The result: terms in the order of consumption; faults by queue, epoch and place; skipped messages of groups."""

    terms: tuple[OrderTerm, ...]
    faults: tuple[OrderFault, ...]
    passed_over: tuple[PassedOver, ...] = ()


def audit_order(marks: StoredMarks) -> OrderAudit:
    """Check the order of all queues that have marks, and return the result."""
    terms: list[OrderTerm] = []
    faults: list[OrderFault] = []
    for queue, rows in marks.rows().items():
        audited = _AuditedQueue(queue, marks.stores, rows)
        terms += audited.terms()
        faults += audited.faults()
    for one in marks.unmarked:
        place = one.offset, one.offset, marks.stores[one.store], one.physical
        faults.append(OrderFault(one.topic, one.queue, UNMARKED, None, None, *place))
    return OrderAudit(tuple(terms), tuple(sorted(faults, key=_place)), tuple(_passed_over(marks.stores)))


def _passed_over(stores: Sequence[str]) -> Iterator[PassedOver]:
    """Yield the skipped messages that the brokers of these stores recorded."""
    for store in stores:
        try:
            with open(os.path.join(store, "config", PASSED_OVER_FILE), "rb") as file:
                rows = decode_rows(file.read())
        except FileNotFoundError:
            continue
        for row in rows:
            yield PassedOver(
                row.topic, row.queue_id, row.group, row.epoch, row.first_offset, row.count, row.reason, store
            )


def _place(fault: OrderFault) -> tuple[str | int, ...]:
    epoch = -1 if fault.epoch is None else fault.epoch
    return fault.topic, fault.queue, epoch, fault.first, fault.kind, fault.store, fault.physical


class _AuditedQueue:
    """A queue under audit. `rows` are its messages without copies, in the order of consumption; columns have the same rows."""

    def __init__(self, queue: Queue, stores: Sequence[str], stored: Rows) -> None:
        self.queue = queue
        self.stores = stores
        self.stored = stored[np.lexsort((stored["store"], stored["offset"], stored["epoch"]))]
        another_place = _changes(self.stored["epoch"], self.stored["offset"])
        self.forked = self.stored[~another_place & ~_as_first(self.stored, another_place)]
        self.rows = self.stored[another_place]
        # sequences of plain producers begin again in each epoch: each epoch is a line of its own, below all leaders
        plain = self.rows["leader"] == PLAIN
        self.line: Numbers = np.where(plain, -1 - self.rows["epoch"], self.rows["leader"])
        self.again = self._is_again(self.line)
        self.again_in_epoch = self._is_again(self.line, self.rows["epoch"])

    def _is_again(self, *groups: Numbers) -> Mask:
        """Return which rows have a sequence that an earlier row of the same groups has."""
        order = np.lexsort((self.rows["offset"], self.rows["epoch"], self.rows["sequence"], *groups))
        again = np.empty(len(order), np.bool_)
        again[order] = ~_changes(*(column[order] for column in (self.rows["sequence"], *groups)))
        return again

    def _highest_before(self, name: str, *groups: Numbers) -> Numbers:
        """Return for each row the highest value of the earlier rows in the same groups, -1 without one."""
        order = np.lexsort((self.rows["offset"], self.rows["epoch"], *groups))
        highest = np.empty(len(order), np.int64)
        highest[order] = _highest_before(self.rows[name][order], *(column[order] for column in groups))
        return highest

    def faults(self) -> Iterator[OrderFault]:
        """Yield the faults of the queue, in no order."""
        rows, sequence = self.rows, self.rows["sequence"]
        behind = (sequence < self._highest_before("sequence", self.line)) & ~self.again
        behind |= (sequence < self._highest_before("sequence", self.line, rows["epoch"])) & ~self.again_in_epoch
        yield from self._each(SWAP, rows[behind])
        yield from self._each(REPEAT, rows[self.again_in_epoch])
        yield from self._each(STALE, rows[self._is_stale()])
        yield from self._each(FORK, self.forked)
        yield from self._gaps()

    def _is_stale(self) -> Mask:
        """Return the rows of an epoch or leader older than that of an earlier row.

        Epochs are compared in the order of a store, leaders in the order of the queue.
        """
        rows = self.rows
        led = rows["leader"] != PLAIN
        older = rows["leader"] < self._highest_before("leader", led.astype(np.int64))
        order = np.lexsort((rows["offset"], rows["store"]))
        stale: Mask = np.empty(len(rows), np.bool_)
        stale[order] = rows["epoch"][order] < _highest_before(rows["epoch"][order], rows["store"][order])
        stale |= older & led
        return stale

    def _gaps(self) -> Iterator[OrderFault]:
        """Yield gaps: for leaders missing sequences, for plain producers missing offsets. The first leader may begin anywhere."""
        rows, plain = self.rows, self.line < 0
        firsts = np.flatnonzero(~self.again & ~plain)
        firsts = firsts[np.lexsort((rows["sequence"][firsts], self.line[firsts]))]
        begins = _changes(self.line[firsts])
        sequence = rows["sequence"][firsts]
        before = np.concatenate(([0], sequence[:-1]))[: len(firsts)]
        before[begins] = np.where(self.line[firsts][begins] == self.line[0], sequence[begins] - 1, 0)
        yield from self._missing(rows[firsts], before)
        follows = np.flatnonzero(plain & ~_changes(rows["epoch"]))
        yield from self._missing(rows[follows], rows["offset"][follows - 1])

    def _missing(self, rows: Rows, before: Numbers) -> Iterator[OrderFault]:
        """Yield the sequences missing between the one before each row and its own."""
        for row in np.flatnonzero(rows["sequence"] > before + 1).tolist():
            yield self._fault(GAP, rows[row], int(before[row]) + 1, int(rows["sequence"][row]) - 1)

    def _each(self, kind: str, rows: Rows) -> Iterator[OrderFault]:
        for row in rows:
            yield self._fault(kind, row, int(row["sequence"]), int(row["sequence"]))

    def _fault(self, kind: str, row: np.void, first: int, last: int) -> OrderFault:
        place = self.stores[row["store"]], int(row["physical"])
        return OrderFault(*self.queue, kind, int(row["epoch"]), _leader(row), first, last, *place)

    def terms(self) -> Iterator[OrderTerm]:
        """Yield the terms in the order of consumption."""
        rows = self.rows
        order = np.lexsort((rows["offset"], rows["leader"], rows["epoch"]))
        cuts = np.flatnonzero(_changes(rows["epoch"][order], rows["leader"][order]))[1:]
        for part in np.split(order, cuts):
            sequence, offset = rows["sequence"][part], rows["offset"][part]
            yield OrderTerm(
                *self.queue,
                int(rows["epoch"][part[0]]),
                _leader(rows[part[0]]),
                self._stores_of(int(rows["epoch"][part[0]])),
                len(part),
                int(sequence.min()),
                int(sequence.max()),
                int(offset.min()),
                int(offset.max()),
                int((self.again & ~self.again_in_epoch)[part].sum()),
            )

    def _stores_of(self, epoch: int) -> tuple[str, ...]:
        numbers = np.unique(self.stored["store"][self.stored["epoch"] == epoch])
        return tuple(self.stores[number] for number in numbers.tolist())


def _leader(row: np.void) -> int | None:
    return None if row["leader"] == PLAIN else int(row["leader"])


def _changes(*columns: Numbers) -> Mask:
    """Return the rows at which any column has another value than in the row before; the first row is included."""
    changes = np.ones(len(columns[0]), np.bool_)
    changes[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return changes


def _as_first(rows: Rows, begins: Mask) -> Mask:
    """Return the rows marked as the first of their kind."""
    first = rows[np.flatnonzero(begins)[np.cumsum(begins) - 1]]
    same: Mask = np.logical_and.reduce([rows[name] == first[name] for name in ("leader", "base", "sequence")])
    return same


def _highest_before(values: Numbers, *groups: Numbers) -> Numbers:
    """Return the highest earlier value of each row's group, -1 in a group's first row; rows are sorted by groups."""
    begins = _changes(*groups)
    kinds, ranks = np.unique(values, return_inverse=True)
    highest = np.maximum.accumulate(np.cumsum(begins) * len(kinds) + ranks)
    before: Numbers = np.concatenate(([-1], kinds[highest[:-1] % len(kinds)]))
    before[begins] = -1
    return before
