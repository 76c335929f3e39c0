"""Parses the JSON bodies of requests: short ones at once, long ones in a thread, one after the other.

A body that is not standard JSON, or has very many small values, is parsed at about 1 MiB/s.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import attrs
from twisted.internet import defer

from twisted_mq.protocol.bodies import decode_body
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.wire.command import ONE_WAY_FLAG, RemotingCommand
from twisted_mq.reactor_threads import InThread
from twisted_mq.remoting.channel import Answer, Channel, Ready
from twisted_mq.turns import Room, Turns, Work, if_connected, outcome

Body = TypeVar("Body")

READ_AT_ONCE = 64 * 1024
"""Bytes that are parsed at once: a heartbeat of some hundred groups, or the locks of a thousand queues."""
MOST_BODY_BYTES = 8 * 1024 * 1024
"""The longest body: the locks of all queues of the largest topic."""


def short_body(body_class: type[Body], command: RemotingCommand) -> Body:
    """Parse a body that is always short. Raises BodyError, BrokerError."""
    _check_size(command, READ_AT_ONCE)
    return decode_body(body_class, command.body)


def _check_size(command: RemotingCommand, most: int) -> None:
    size = len(command.body)
    if size > most:
        raise BrokerError(
            ResponseCode.INVALID_PARAMETER,
            f"body: {size} bytes, the limit for a request with code {command.code} is {most}",
        )


@attrs.frozen(eq=False)
class RequestBodies:
    """Parses the bodies of one broker's requests. 64 MiB of them may wait."""

    turns: Turns
    in_thread: InThread
    _room: Room = attrs.field(factory=Room)

    def read(
        self, body_class: type[Body], channel: Channel, command: RemotingCommand, answer: Callable[[Body], Answer]
    ) -> Answer:
        """Return the result of `answer` for the body, at once or after it was parsed. Raises, or fails with, BodyError
        and BrokerError.

        A long body is not read if the connection is closed before its turn comes, unless the request is one-way.
        """
        body = command.body
        if len(body) <= READ_AT_ONCE:
            return answer(decode_body(body_class, body))
        _check_size(command, MOST_BODY_BYTES)
        decoded = self._decoded(body_class, body)
        if not command.flag & ONE_WAY_FLAG:
            decoded = if_connected(channel, decoded)
        read = self.turns.run("bodies", self._room.keep(len(body), decoded))
        return (
            defer.Deferred.fromCoroutine(_answered(read, answer)) if isinstance(read, defer.Deferred) else answer(read)
        )

    def _decoded(self, body_class: type[Body], body: bytes) -> Work[Body]:
        return (yield from outcome(self.in_thread(decode_body, body_class, body)))


async def _answered(read: defer.Deferred[Body], answer: Callable[[Body], Answer]) -> Ready:
    given = answer(await read)
    return await given if isinstance(given, defer.Deferred) else given
