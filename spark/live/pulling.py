"""Pull a stretch of one queue with several pulls in flight.

The end of the stretch is known, so it is cut into pieces of as many offsets as one pull returns, and the pieces are pulled at the
same time. After a pull with fewer messages the piece continues at the offset that the broker returned. Bodies are yielded in the
order of the queue. If a filter or an inner batch makes a pull exceed its piece, messages are repeated: the caller keeps those
with ascending offsets.
"""

from __future__ import annotations

import collections
import socket
from collections.abc import Iterator

import attrs

from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.flags import build_pull_sys_flag
from twisted_mq.protocol.headers import PullMessageRequestHeader, PullMessageResponseHeader
from twisted_mq.protocol.messages.subscription import SUB_ALL, TAG, is_tag_type
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import encode_header, fast_header
from twisted_mq.spark.live.connection import BUSY_CODES, PeerConnection
from twisted_mq.spark.live.errors import Behind, OffsetsLost, PeerSilent, RequestRefused

PULL_STATUSES = frozenset(
    {
        ResponseCode.SUCCESS,
        ResponseCode.PULL_NOT_FOUND,
        ResponseCode.PULL_RETRY_IMMEDIATELY,
        ResponseCode.PULL_OFFSET_MOVED,
    }
)
_FILTERED_PIECES = 16
"""Pieces per pull with a filter: a broker reads more entries than it returns messages."""
_RESETS = 2
"""Number of times that a broker may return another offset although it has the requested one, as it does once after a group's
reset."""
_read_header = fast_header(PullMessageResponseHeader)


@attrs.frozen
class PullSelection:
    """Selection of a topic's messages: all, by tags (`a || b`), or by an SQL92 expression."""

    expression: str = SUB_ALL
    kind: str = TAG

    @property
    def selects_all(self) -> bool:
        return is_tag_type(self.kind) and self.expression == SUB_ALL


@attrs.frozen
class PullLimits:
    """Limits of pulls: `in_flight` pulls of at most `messages` each; brokers return at most 32 by default."""

    messages: int = 32
    in_flight: int = 32


@attrs.frozen
class Stretch:
    """The messages of a queue with offsets in [start, end)."""

    queue: MessageQueue
    start: int
    end: int

    def __str__(self) -> str:
        return queue_text(self.queue)


def queue_text(queue: MessageQueue) -> str:
    """Return the name of a queue for errors."""
    return f"queue {queue.queue_id} of {queue.topic} at {queue.broker_name}"


def pull_request(queue: MessageQueue, offset: int, count: int, group: str, selection: PullSelection) -> RemotingCommand:
    """Return a pull request for at most `count` messages that is answered at once."""
    header = PullMessageRequestHeader(
        consumer_group=group,
        topic=queue.topic,
        queue_id=queue.queue_id,
        queue_offset=offset,
        max_msg_nums=count,
        sys_flag=build_pull_sys_flag(commit_offset=False, suspend=False, subscription=True),
        commit_offset=0,
        suspend_timeout_millis=0,
        subscription=selection.expression,
        sub_version=0,
        expression_type=selection.kind,
        bname=queue.broker_name,
    )
    return RemotingCommand.request(RequestCode.PULL_MESSAGE, encode_header(header))


@attrs.define
class _Piece:
    """A part of a stretch: `position` is the next offset to pull."""

    position: int
    end: int
    bodies: list[bytes] = attrs.field(factory=list)
    resets: int = 0


class StretchPull:
    """Pull of one stretch over one connection after another: a new one continues at `position`.

    `lost` has the messages that were no longer there, with `fail_on_data_loss` False.
    """

    def __init__(
        self,
        stretch: Stretch,
        group: str,
        selection: PullSelection,
        limits: PullLimits,
        *,
        fail_on_data_loss: bool = True,
    ) -> None:
        self.stretch = stretch
        self.position = stretch.start
        self.lost: list[OffsetsLost] = []
        self._group = group
        self._selection = selection
        self._limits = limits
        self._fail = fail_on_data_loss

    def bodies(self, connection: PeerConnection) -> Iterator[bytes]:
        """Pull from `position` to the end. Each body has records one after the other.

        Raises PeerSilent, after which another connection can continue; Refused, OffsetsLost.
        """
        pieces: collections.deque[_Piece] = collections.deque()
        waiting: dict[int, _Piece] = {}
        cut = self.position
        try:
            while self.position < self.stretch.end:
                while len(pieces) < self._limits.in_flight and cut < self.stretch.end:
                    piece = _Piece(cut, min(cut + self._piece_offsets, self.stretch.end))
                    pieces.append(piece)
                    self._pull(piece, connection, waiting)
                    cut = piece.end
                self._receive(connection, waiting)
                while pieces and pieces[0].position >= pieces[0].end:
                    done = pieces.popleft()
                    self.position = done.end
                    yield from done.bodies
        finally:
            if waiting:  # answers that are still to come, but no longer needed
                connection.close()

    @property
    def _piece_offsets(self) -> int:
        return self._limits.messages * (1 if self._selection.selects_all else _FILTERED_PIECES)

    def _pull(self, piece: _Piece, connection: PeerConnection, waiting: dict[int, _Piece]) -> None:
        count = min(self._limits.messages, piece.end - piece.position)
        request = pull_request(self.stretch.queue, piece.position, count, self._group, self._selection)
        waiting[connection.send_later(request)] = piece

    def _receive(self, connection: PeerConnection, waiting: dict[int, _Piece]) -> None:
        """Receive the next answer, and pull again if its piece is not complete."""
        answer = connection.receive()
        piece = waiting.get(answer.opaque)
        if piece is None:
            return
        self._take(piece, answer, connection.address)
        del waiting[answer.opaque]
        if piece.position < piece.end:
            self._pull(piece, connection, waiting)

    def _take(self, piece: _Piece, answer: RemotingCommand, address: str) -> None:
        """Store the messages of an answer, and the next offset of its piece."""
        if answer.code in BUSY_CODES:
            raise PeerSilent(address, f"is busy: {answer.remark}")
        if answer.code not in PULL_STATUSES:
            raise RequestRefused(
                address, f"a pull of {self.stretch}", answer.code, answer.remark or "", socket.gethostname()
            )
        header = _read_header(answer)
        if answer.code == ResponseCode.SUCCESS and answer.body:
            piece.bodies.append(answer.body)
        if answer.code == ResponseCode.PULL_OFFSET_MOVED:
            piece.position = self._moved(piece, header, address)
        elif header.next_begin_offset > piece.position:
            piece.position = header.next_begin_offset
        else:
            raise Behind(address, str(self.stretch), piece.position, header.max_offset)

    def _moved(self, piece: _Piece, header: PullMessageResponseHeader, address: str) -> int:
        """Return the next offset after the broker returned another one. Raises Behind, OffsetsLost."""
        wanted = piece.position
        if header.min_offset <= wanted < header.max_offset and piece.resets < _RESETS:
            piece.resets += 1
            return wanted
        if wanted >= header.min_offset:
            raise Behind(address, str(self.stretch), wanted, header.max_offset)
        self.note(OffsetsLost(str(self.stretch), wanted, header.min_offset, "deleted since the read was planned"))
        return header.min_offset

    def note(self, loss: OffsetsLost) -> None:
        """Store the loss, or raise it with `fail_on_data_loss`."""
        if self._fail:
            raise loss
        self.lost.append(loss)
