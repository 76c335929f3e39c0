"""A broker's side of pulls, as a connection that answers by itself: what it brings at once, in which order, what it lacks."""

from __future__ import annotations

import random
from collections.abc import Callable

import attrs

from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.headers import PullMessageRequestHeader, PullMessageResponseHeader
from twisted_mq.protocol.wire.command import RESPONSE_FLAG, RemotingCommand
from twisted_mq.protocol.wire.framing import FrameDecoder, encode_frame
from twisted_mq.protocol.wire.header_codec import decode_header, encode_header
from twisted_mq.spark.live.errors import PeerSilent


@attrs.define
class ScriptedQueue:
    """The queue [first, end) of one-byte-a-message bodies; a pull returns `most` and skips messages that are not `wanted`."""

    first: int
    end: int
    most: int = 32
    looks_at: int = 800
    wanted: Callable[[int], bool] = lambda offset: True

    def answer(self, header: PullMessageRequestHeader) -> RemotingCommand:
        asked = header.queue_offset
        if asked < self.first:
            return self._made(ResponseCode.PULL_OFFSET_MOVED, self.first)
        if asked > self.end:
            return self._made(ResponseCode.PULL_OFFSET_MOVED, self.end)
        found = []
        offset = asked
        while offset < min(self.end, asked + self.looks_at) and len(found) < min(self.most, header.max_msg_nums):
            if self.wanted(offset):
                found.append(offset)
            offset += 1
        if found:
            return self._made(ResponseCode.SUCCESS, offset, ",".join(map(str, found)).encode() + b",")
        return self._made(
            ResponseCode.PULL_NOT_FOUND if asked == self.end else ResponseCode.PULL_RETRY_IMMEDIATELY, offset
        )

    def _made(self, code: int, following: int, body: bytes = b"") -> RemotingCommand:
        header = PullMessageResponseHeader(
            suggest_which_broker_id=0, next_begin_offset=following, min_offset=self.first, max_offset=self.end
        )
        return RemotingCommand(code, flag=RESPONSE_FLAG, body=body, ext_fields=encode_header(header))


@attrs.define
class ScriptedConnection:
    """Answers in any order; ends after `lasts` answers."""

    queue: ScriptedQueue
    rng: random.Random = attrs.field(factory=lambda: random.Random(7))
    lasts: int = 1 << 30
    address: str = "10.0.0.1:10911"
    closed: bool = False
    most_waiting: int = 0
    asked: list[tuple[int, int]] = attrs.field(factory=list)
    _waiting: list[RemotingCommand] = attrs.field(factory=list)
    _opaque: int = 0

    def send_later(self, request: RemotingCommand) -> int:
        self._opaque += 1
        header = decode_header(PullMessageRequestHeader, _received(request))
        self.asked.append((header.queue_offset, header.max_msg_nums))
        answer = self.queue.answer(header)
        answer.opaque = self._opaque
        self._waiting.append(answer)
        self.most_waiting = max(self.most_waiting, len(self._waiting))
        return self._opaque

    def receive(self) -> RemotingCommand:
        if not self.lasts:
            self.close()
            raise PeerSilent(self.address, "closed the connection")
        self.lasts -= 1
        answer = self._waiting.pop(self.rng.randrange(len(self._waiting)))
        return _received(answer)

    def close(self) -> None:
        self.closed = True


def _received(command: RemotingCommand) -> RemotingCommand:
    """As it comes off the wire."""
    return FrameDecoder().receive_data(encode_frame(command))[0]
