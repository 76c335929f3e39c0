"""Commits transactions whose END_TRANSACTION requests come many at a time, see protocol.wire.shapes.

This is the quick form of `EndTransactionProcessor` for the commits that a producer sends one-way, on the connection on which it
sent the half messages. All copies are stored in one write. What is special goes to the processor as a command: a rollback, an
immunity time, a message that also waits, a half message that is over. A test checks that log, queues and counts are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import attrs

from twisted_mq.access.guard import Guard
from twisted_mq.broker.ha.durability import Durability
from twisted_mq.broker.schedule.copies_together import first_alike, together
from twisted_mq.broker.schedule.postpone import POSTPONING
from twisted_mq.broker.statistics.broker_statistics import BrokerStatistics
from twisted_mq.broker.stored_message import StoredMessage
from twisted_mq.broker.transaction.half_messages import has_immunity
from twisted_mq.broker.transaction.transaction_service import TransactionService
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.errors import ProtocolError, RecordError
from twisted_mq.protocol.flags import MessageSysFlag, reset_transaction_value
from twisted_mq.protocol.headers import EndTransactionRequestHeader
from twisted_mq.protocol.names.system_topics import HALF_TOPIC
from twisted_mq.protocol.text.properties import PROPERTY_PRODUCER_GROUP, PROPERTY_REAL_TOPIC
from twisted_mq.protocol.wire.command import ONE_WAY_FLAG
from twisted_mq.protocol.wire.header_codec import fast_header
from twisted_mq.protocol.wire.shapes import OPAQUE_PART, Family, Streak, Varying, are_opaques, are_plain, numbers_of
from twisted_mq.remoting.channel import Channel
from twisted_mq.storage.interfaces import IMessageStore

_PLACES = ("tranStateTableOffset", "commitLogOffset")
_TEXTS = ("msgId", "transactionId")
VARYING = {int(RequestCode.END_TRANSACTION): Varying(_PLACES, texts=_TEXTS, flag=ONE_WAY_FLAG, is_unordered=True)}
"""The varying fields: the half message's places in its queue and in the log, and its unique key."""
_COMMIT = MessageSysFlag.TRANSACTION_COMMIT_TYPE
_READ = fast_header(EndTransactionRequestHeader)
_MOST_APART = 4
"""Half messages are read together if their places in the queue are no further apart, on average."""
_READ_BYTES = 1 << 20


class CommitParts(Protocol):
    """The parts of the broker that CommitColumns uses."""

    wall_ms: Callable[[], int]
    store: IMessageStore
    transactions: TransactionService
    durability: Durability
    statistics: BrokerStatistics


@attrs.frozen
class CommitPattern:
    """Values that the commits of one family share; places are indexes in the parts of a request."""

    group: str
    queue_offset: int
    physical_offset: int
    opaque: int | None
    """None for ROCKETMQ headers: all four bytes are a number."""
    texts: Sequence[int]


@attrs.frozen(eq=False)
class CommitColumns:
    """Commits streaks of transactions. With access control, or where answers wait for the disk or a slave, it takes none."""

    broker: CommitParts
    guard: Guard

    def take(self, channel: Channel, streak: Streak, start: int) -> tuple[int, bytes]:
        """Commit the transactions from `start` on, up to the first that the processor has to handle; return how many.

        A vain try reads all half messages of the streak, so not every request is tried after one.
        """
        broker = self.broker
        if start < streak.next_try:
            return 0, b""
        pattern = None if self.guard.checks or broker.durability.waits else self._pattern(streak)
        if pattern is None:
            return 0, b""
        times = broker.statistics.request_times
        began = 0.0 if times is None else times.seconds()
        wanted = self._wanted(pattern, streak, start)
        copies = first_alike(self._halves(pattern, channel, wanted))
        if len(copies) < 2:
            streak.tried_in_vain(start)
            return 0, b""
        messages = together(copies)
        halves = [half for half, _, _ in copies]
        messages = attrs.evolve(
            messages,
            sys_flag=reset_transaction_value(messages.sys_flag, _COMMIT),
            prepared_offsets=[half.head.physical_offset for half in halves],
        )
        places = broker.store.put_plain(messages)
        self._ended(halves[: len(places)])
        broker.statistics.count_together(places)
        broker.statistics.commits_together += len(places)
        if times is not None:
            times.note_together(RequestCode.END_TRANSACTION, len(places), began)
        return len(places), b""

    def _pattern(self, streak: Streak) -> CommitPattern | None:
        """Return the pattern of a family, which is kept with it; None if its requests are no commits, or the first is damaged."""
        family = streak.family
        if family.kept is None:
            try:
                header = _READ(streak.plain(0))
            except ProtocolError:
                return None
            family.kept = (
                self._new_pattern(family, header.producer_group) if header.commit_or_rollback == _COMMIT else ()
            )
        return family.kept or None

    @staticmethod
    def _new_pattern(family: Family, group: str) -> CommitPattern:
        queue_offset, physical_offset = map(family.place, _PLACES)
        opaque = None if family.is_binary else family.place(OPAQUE_PART)
        texts = [family.place(name) for name in _TEXTS if name in family.names]
        return CommitPattern(group, queue_offset, physical_offset, opaque, texts)

    @staticmethod
    def _wanted(pattern: CommitPattern, streak: Streak, start: int) -> list[tuple[int, int]]:
        """Return the places of half messages in their queue and in the log; none if a request has to be looked at by itself."""
        columns, _ = streak.columns(start, len(streak))
        if pattern.opaque is not None and not are_opaques(columns[pattern.opaque]):
            return []
        if not are_plain(columns[place] for place in pattern.texts):
            return []
        queue_offsets = numbers_of(columns[pattern.queue_offset])
        physical_offsets = numbers_of(columns[pattern.physical_offset])
        if queue_offsets is None or physical_offsets is None:
            return []
        return [*zip(queue_offsets, physical_offsets, strict=True)]

    def _halves(
        self, pattern: CommitPattern, channel: Channel, wanted: Sequence[tuple[int, int]]
    ) -> Iterator[StoredMessage]:
        """Yield the half messages at these places, up to one whose commit is not just allowed."""
        records = self._records([queue_offset for queue_offset, _ in wanted])
        for queue_offset, physical_offset in wanted:
            record = records.pop(queue_offset, None)  # a second commit of it finds none
            try:
                half = None if record is None else StoredMessage.read(record)
            except RecordError:
                return
            if half is None or (half.head.queue_offset, half.head.physical_offset) != (queue_offset, physical_offset):
                return
            if half.head.born_host != channel.packed_address or self._is_special(pattern, half):
                return
            yield half

    def _is_special(self, pattern: CommitPattern, half: StoredMessage) -> bool:
        """Return whether the processor decides about a half message."""
        properties = half.properties
        return (
            properties.get(PROPERTY_PRODUCER_GROUP) != pattern.group
            or not POSTPONING.isdisjoint(properties)
            or has_immunity(half)
            or self.broker.transactions.is_over(half)
        )

    def _records(self, queue_offsets: Sequence[int]) -> dict[int, memoryview | bytes]:
        """Return the records of the half topic at these offsets, by offset, if they are near each other."""
        found: dict[int, memoryview | bytes] = {}
        if not queue_offsets:
            return found
        offset, end = min(queue_offsets), max(queue_offsets) + 1
        if end - offset > _MOST_APART * len(queue_offsets):
            return found
        while offset < end:
            result = self.broker.store.get_message(HALF_TOPIC, 0, offset, end - offset, _READ_BYTES, None)
            found.update(enumerate(result.records, offset))
            if result.next_begin_offset <= offset:
                break
            offset = result.next_begin_offset
        return found

    def _ended(self, halves: Sequence[StoredMessage]) -> None:
        """Record that half messages are committed."""
        broker = self.broker
        broker.transactions.ended(halves)
        now = broker.wall_ms()
        for half in halves:
            topic = half.properties[PROPERTY_REAL_TOPIC]
            broker.statistics.committed[topic].record((now - half.head.born_timestamp) // 1000)
