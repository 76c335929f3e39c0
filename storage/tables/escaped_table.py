"""config/escaped.json: waiting messages of this log that another master has taken while no master of this name was there.

{"levels":[{"end":12,"first":7,"level":3,"physicalOffset":5740,"storeTimestamp":1795216968628}],"ticks":[{"end":40,...}]}

An acting slave writes it, and its master takes it over when it returns; both pass those messages over. A log can lose its
end and give the same queue offsets to other messages, so each row names the place and the store time of its last message:
`Escaped` trusts a row only while the log has just that message there.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from twisted_mq.protocol.bodies import DelayOffsetSerializeWrapper
from twisted_mq.protocol.bodies.codec import decode_body
from twisted_mq.protocol.bodies.types import Int32, Int64
from twisted_mq.storage.tables.config_tables import ConfigTable

ESCAPED_FILE = "escaped.json"
MOST_ROWS = 1_000
"""The most rows of each kind; the newest are kept. A forgotten row is messages that are delivered once more."""

LastMessage = tuple[int, int]
"""The physical offset and the store time, in ms, of a message."""


@attrs.frozen
class EscapedLevel:
    """A run of a delay level's queue, from `first` up to and without `end`, and where its last message is."""

    level: Int32 = 0
    first: Int64 = 0
    end: Int64 = 0
    physical_offset: Int64 = 0
    store_timestamp: Int64 = 0


@attrs.frozen
class EscapedTicks:
    """The messages before queue offset `end` of the timer's topic that were due from `from_ms` up to and without `to_ms`."""

    from_ms: Int64 = 0
    to_ms: Int64 = 0
    end: Int64 = 0
    physical_offset: Int64 = 0
    store_timestamp: Int64 = 0


@attrs.frozen
class EscapedMessages:
    """All rows of one broker."""

    levels: list[EscapedLevel] = attrs.field(factory=list)
    ticks: list[EscapedTicks] = attrs.field(factory=list)


@attrs.frozen
class DelayOffsetsOfSlave(DelayOffsetSerializeWrapper):
    """A slave's answer to GET_ALL_DELAY_OFFSET, with a member that Apache's brokers ignore and do not write."""

    escaped: EscapedMessages | None = None


class EscapedTable(ConfigTable[EscapedMessages]):
    """`levels` and `ticks` have the rows, oldest first."""

    def __init__(self, path: str) -> None:
        super().__init__(path, lambda data: decode_body(EscapedMessages, data))
        self.levels: list[EscapedLevel] = []
        self.ticks: list[EscapedTicks] = []

    def _fill(self, body: EscapedMessages) -> None:
        self.levels, self.ticks = list(body.levels), list(body.ticks)

    def _body(self) -> EscapedMessages:
        return self.messages()

    def messages(self) -> EscapedMessages:
        """Return the rows as they are sent and kept."""
        return EscapedMessages(self.levels[-MOST_ROWS:], self.ticks[-MOST_ROWS:])

    # what a log that has these messages shows

    def take(self, theirs: EscapedMessages) -> int:
        """Take over another broker's rows. Return how many are new."""
        levels = [row for row in theirs.levels if row not in self.levels]
        ticks = [row for row in theirs.ticks if row not in self.ticks]
        self.levels += levels
        self.ticks += ticks
        return len(levels) + len(ticks)

    def trust(
        self, of_level: Callable[[int, int], LastMessage | None], of_timer: Callable[[int], LastMessage | None]
    ) -> int:
        """Drop each row whose last message this log does not have. Return how many were dropped.

        `of_level` and `of_timer` return the message at an offset of a level's queue and of the timer's.
        """
        before = len(self.levels) + len(self.ticks)
        self.levels = [row for row in self.levels if of_level(row.level, row.end - 1) == _last(row)]
        self.ticks = [row for row in self.ticks if of_timer(row.end - 1) == _last(row)]
        return before - len(self.levels) - len(self.ticks)

    def has_of_level(self, level: int, offset: int) -> bool:
        """Return whether another master took a message of a level's queue."""
        return any(row.level == level and row.first <= offset < row.end for row in self.levels)

    def has_of_timer(self, offset: int, due_ms: int) -> bool:
        """Return whether another master took a message of the timer's topic, or it was recalled."""
        return any(offset < row.end and row.from_ms <= due_ms < row.to_ms for row in self.ticks)

    # what an acting slave notes

    def note_level(self, level: int, offset: int, last: LastMessage) -> None:
        """Note that another master has taken a message of a level's queue."""
        for index, row in enumerate(self.levels):
            if row.level == level and row.end == offset:
                self.levels[index] = EscapedLevel(level, row.first, offset + 1, *last)
                return
        self.levels.append(EscapedLevel(level, offset, offset + 1, *last))

    def note_ticks(self, from_ms: int, to_ms: int, end: int, last: LastMessage) -> None:
        """Note that the timer passed these ticks. Rows within them, of an earlier moment of the same run, are replaced."""
        within = range(from_ms, to_ms)
        self.ticks = [row for row in self.ticks if row.from_ms not in within or row.to_ms > to_ms or row.end > end]
        self.ticks.append(EscapedTicks(from_ms, to_ms, end, *last))


def _last(row: EscapedLevel | EscapedTicks) -> LastMessage:
    return row.physical_offset, row.store_timestamp
