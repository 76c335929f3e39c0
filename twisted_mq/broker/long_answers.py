"""Makes answers of many rows in slices, so that other requests do not wait for them; encodes long ones in a thread."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Mapping
from typing import Any, TypeVar

import attrs

from twisted_mq.protocol.bodies import encode_body
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.framing import MAX_FRAME_BYTES
from twisted_mq.reactor_threads import InThread
from twisted_mq.remoting.channel import Answer, Channel
from twisted_mq.turns import Turns, Work, if_connected, outcome, then, while_connected

Key = TypeVar("Key", bound=Hashable)
Row = TypeVar("Row")
Encode = Callable[[Any], bytes]

MAX_BODY_BYTES = MAX_FRAME_BYTES - 64 * 1024
QUEUE_BYTES = 100
"""The fewest bytes that one queue takes in an answer."""
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
class KeptAnswer:
    """An encoded table. It answers the requests up to number `asked`, and later ones that want the same version."""

    asked: int
    version: object
    body: bytes


@attrs.define(eq=False)
class LongAnswers:
    """The long answers of one broker. Those of one request code are made one after the other; past 1,000 the answer is
    SYSTEM_BUSY.
    """

    turns: Turns
    in_thread: InThread
    _asked: int = 0
    _kept: dict[int, KeptAnswer] = attrs.field(factory=dict)

    def report(self, channel: Channel, command: RemotingCommand, body: Work[object]) -> Answer:
        """Return the answer to a question, with a body that does not change once it is made; at once if its first slice is
        all of it. Work whose connection is closed is given up.
        """
        return self.done(command, while_connected(channel, body))

    def done(self, command: RemotingCommand, body: Work[object]) -> Answer:
        """Do the same for work that changes something, and so goes on to its end."""
        return then(self.turns.run(command.code, self._encoded(body)), lambda data: _fitting(command, data))

    def shared(
        self,
        channel: Channel,
        command: RemotingCommand,
        body: Callable[[], Work[object]],
        version: Callable[[], object] = object,
        encode: Encode = encode_body,
    ) -> Answer:
        """Like `report`, but use the same bytes for all requests that came before they were made, or that want the same version.

        A request that waits holds no rows. Leave out `version` if the rows have none that changes with each of them.
        """
        self._asked += 1
        work = if_connected(channel, self._same(command.code, self._asked, body, version, encode))
        return then(self.turns.run(command.code, work), lambda data: _fitting(command, data))

    def _same(
        self, code: int, number: int, body: Callable[[], Work[object]], version: Callable[[], object], encode: Encode
    ) -> Work[bytes]:
        kept = self._kept.get(code)
        if kept is None or (kept.asked < number and kept.version != version()):
            asked, made_of = self._asked, version()
            kept = self._kept[code] = KeptAnswer(asked, made_of, (yield from self._encoded(body(), encode)))
        return kept.body

    def _encoded(self, body: Work[object], encode: Encode = encode_body) -> Work[bytes]:
        long = False
        try:
            while True:
                yield next(body)
                long = True
        except StopIteration as made:
            if not long:
                return encode(made.value)
            value = made.value
        return (yield from outcome(self.in_thread(encode, value)))


def check_rows(count: int, bytes_each: int = QUEUE_BYTES) -> None:
    """Check that so many rows fit into an answer, before they are made. Raises BrokerError."""
    if count * bytes_each > MAX_BODY_BYTES:
        remark = f"the answer has {count} rows, more than the {MAX_BODY_BYTES // bytes_each} that fit into a frame"
        raise BrokerError(ResponseCode.SYSTEM_ERROR, remark)


def _fitting(command: RemotingCommand, body: bytes) -> RemotingCommand:
    """Return the answer with a body. Raises BrokerError for one that no client reads."""
    if len(body) > MAX_BODY_BYTES:
        remark = f"the answer has {len(body)} bytes, more than the {MAX_BODY_BYTES} that fit into a frame"
        raise BrokerError(ResponseCode.SYSTEM_ERROR, remark)
    return command.answer(body=body)


def copied(table: Mapping[Key, Row]) -> Work[dict[Key, Row]]:
    """Copy the rows of a table as they are now, in slices."""
    rows = dict(table)
    if len(rows) > ROWS_OF_SLICE:
        yield None
    return rows
