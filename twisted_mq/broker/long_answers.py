"""Makes answers of many rows in slices, so that other requests do not wait for them; encodes long ones in a thread."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Mapping
from typing import TypeVar

import attrs

from twisted_mq.protocol.bodies import encode_body
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.reactor_threads import InThread
from twisted_mq.remoting.channel import Answer
from twisted_mq.turns import Turns, Work, outcome, then

Key = TypeVar("Key", bound=Hashable)
Row = TypeVar("Row")

ROWS_OF_SLICE = 128
"""Rows of one slice. A row takes up to 0.1 ms, with a queue's first and last message, or the search for a time."""


def in_slices(count: int, row: Callable[[int], tuple[Key, Row]]) -> Generator[None, None, dict[Key, Row]]:
    """Make a row for each number from 0 on."""
    rows: dict[Key, Row] = {}
    for number in range(count):
        if number and number % ROWS_OF_SLICE == 0:
            yield
        key, rows[key] = row(number)
    return rows


@attrs.frozen
class Kept:
    """An encoded table. It answers the requests up to number `asked`, and later ones that want the same version."""

    asked: int
    version: object
    body: bytes


@attrs.define(eq=False)
class LongAnswers:
    """The long answers of one broker. Those of one `lane` are made one after the other; past 1,000 the answer is SYSTEM_BUSY."""

    turns: Turns
    in_thread: InThread
    _asked: int = 0
    _kept: dict[Hashable, Kept] = attrs.field(factory=dict)

    def answer(self, lane: Hashable, command: RemotingCommand, body: Work[object]) -> Answer:
        """Return the answer with a body that does not change once it is made; at once if its first slice is all of it."""
        return then(self.turns.run(lane, self._encoded(body)), lambda data: command.answer(body=data))

    def shared(
        self,
        lane: Hashable,
        command: RemotingCommand,
        body: Callable[[], Work[object]],
        version: Callable[[], object] = object,
    ) -> Answer:
        """Like `answer`, but use the same bytes for all requests that came before they were made, or that want the same version.

        A request that waits holds no rows. Leave out `version` if the rows have none that changes with each of them.
        """
        self._asked += 1
        work = self._same(lane, self._asked, body, version)
        return then(self.turns.run(lane, work), lambda data: command.answer(body=data))

    def _same(
        self, lane: Hashable, number: int, body: Callable[[], Work[object]], version: Callable[[], object]
    ) -> Work[bytes]:
        kept = self._kept.get(lane)
        if kept is None or (kept.asked < number and kept.version != version()):
            asked, made_of = self._asked, version()
            kept = self._kept[lane] = Kept(asked, made_of, (yield from self._encoded(body())))
        return kept.body

    def _encoded(self, body: Work[object]) -> Work[bytes]:
        long = False
        try:
            while True:
                yield next(body)
                long = True
        except StopIteration as made:
            if not long:
                return encode_body(made.value)
            value = made.value
        return (yield from outcome(self.in_thread(encode_body, value)))


def copied(table: Mapping[Key, Row]) -> Work[dict[Key, Row]]:
    """Copy the rows of a table as they are now, in slices."""
    rows = dict(table)
    if len(rows) > ROWS_OF_SLICE:
        yield None
    return rows
