"""Both ends of one remoting connection without I/O: bytes in, commands out; requests matched with their answers.

Used by Twisted transports in the servers and clients, and by plain sockets in Spark workers.
"""

from __future__ import annotations

import attrs

from twisted_mq.protocol.wire.command import ONE_WAY_FLAG, RemotingCommand
from twisted_mq.protocol.wire.framing import MAX_FRAME_BYTES, FrameDecoder, encode_frame


@attrs.frozen
class Answered:
    """An answer that belongs to `request`."""

    request: RemotingCommand
    answer: RemotingCommand


class RemotingConnection:
    """Numbers the requests of one side and pairs the answers with them. Unexpected answers are dropped."""

    def __init__(self, max_frame_bytes: int = MAX_FRAME_BYTES) -> None:
        self._decoder = FrameDecoder(max_frame_bytes)
        self._pending: dict[int, RemotingCommand] = {}
        self._next_opaque = 0

    def send(self, request: RemotingCommand, *, one_way: bool = False) -> bytes:
        """The bytes of a request, which gets its opaque here; unless one-way, its answer is awaited."""
        request.opaque = self._next_opaque
        self._next_opaque = (self._next_opaque + 1) & 0x7FFFFFFF
        if one_way:
            request.flag |= ONE_WAY_FLAG
        else:
            self._pending[request.opaque] = request
        return encode_frame(request)

    def receive_data(self, data: bytes) -> list[RemotingCommand | Answered]:
        """What `data` completes: requests of the peer, and own requests with their answers. Raises FrameError."""
        events: list[RemotingCommand | Answered] = []
        for command in self._decoder.receive_data(data):
            if not command.is_response:
                events.append(command)
            elif command.opaque in self._pending:
                events.append(Answered(self._pending.pop(command.opaque), command))
        return events

    def forget(self, request: RemotingCommand) -> None:
        """No longer await the answer (its time is up)."""
        self._pending.pop(request.opaque, None)

    @property
    def pending(self) -> list[RemotingCommand]:
        """Requests without an answer yet, in the order they were sent."""
        return list(self._pending.values())
