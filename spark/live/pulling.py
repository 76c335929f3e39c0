"""Pulls a stretch of one queue with several pulls under way.

The stretch's end is known, so it is cut into pieces of as many offsets as one pull brings, and the pieces are pulled at
the same time; a piece of which a pull brought less is pulled on from where the broker says. Bodies are given in the order
of the queue. Where a filter or an inner batch makes a pull reach beyond its piece, messages come twice: whoever takes the
bodies keeps those whose offsets ascend.
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
from twisted_mq.spark.live.connection import BUSY_CODES, Connection
from twisted_mq.spark.live.errors import Behind, OffsetsLost, PeerSilent, Refused

_STATUSES = frozenset(
    {
        ResponseCode.SUCCESS,
        ResponseCode.PULL_NOT_FOUND,
        ResponseCode.PULL_RETRY_IMMEDIATELY,
        ResponseCode.PULL_OFFSET_MOVED,
    }
)
_FILTERED_PIECES = 16
"""A broker looks at more entries than it brings messages where it selects."""
_RESETS = 2
"""So often a broker may send a reader elsewhere although it has the offset: as it does once after a group's reset."""
_read_header = fast_header(PullMessageResponseHeader)


@attrs.frozen
class Selection:
    """What is wanted of a topic: all, tags (`a || b`), or what an SQL92 expression says."""

    expression: str = SUB_ALL
    kind: str = TAG

    @property
    def selects_all(self) -> bool:
        return is_tag_type(self.kind) and self.expression == SUB_ALL


@attrs.frozen
class PullLimits:
    """`in_flight` pulls of at most `messages` each; brokers bring 32 at once unless they are told otherwise."""

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
    """A queue, in words for errors."""
    return f"queue {queue.queue_id} of {queue.topic} at {queue.broker_name}"


def pull_request(queue: MessageQueue, offset: int, count: int, group: str, selection: Selection) -> RemotingCommand:
    """For at most `count` messages, answered at once."""
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
    """A part of a stretch: `position` is the offset that is pulled next."""

    position: int
    end: int
    bodies: list[bytes] = attrs.field(factory=list)
    resets: int = 0


class StretchPull:
    """One stretch over one connection after another: `position` is where a new one goes on.

    `lost` is what was not there any more, with `fail_on_data_loss` False.
    """

    def __init__(
        self,
        stretch: Stretch,
        group: str,
        selection: Selection,
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

    def bodies(self, connection: Connection) -> Iterator[bytes]:
        """Pull from `position` to the end. Records lie in each body back to back.

        Raises PeerSilent, after which another connection may go on; Refused, OffsetsLost.
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
            if waiting:  # answers to come that nobody waits for
                connection.close()

    @property
    def _piece_offsets(self) -> int:
        return self._limits.messages * (1 if self._selection.selects_all else _FILTERED_PIECES)

    def _pull(self, piece: _Piece, connection: Connection, waiting: dict[int, _Piece]) -> None:
        count = min(self._limits.messages, piece.end - piece.position)
        request = pull_request(self.stretch.queue, piece.position, count, self._group, self._selection)
        waiting[connection.send_later(request)] = piece

    def _receive(self, connection: Connection, waiting: dict[int, _Piece]) -> None:
        """Take the next answer, and pull on where its piece is not whole."""
        answer = connection.receive()
        piece = waiting.get(answer.opaque)
        if piece is None:
            return
        self._take(piece, answer, connection.address)
        del waiting[answer.opaque]
        if piece.position < piece.end:
            self._pull(piece, connection, waiting)

    def _take(self, piece: _Piece, answer: RemotingCommand, address: str) -> None:
        """Note what an answer brought, and where its piece goes on."""
        if answer.code in BUSY_CODES:
            raise PeerSilent(address, f"is busy: {answer.remark}")
        if answer.code not in _STATUSES:
            raise Refused(address, f"a pull of {self.stretch}", answer.code, answer.remark or "", socket.gethostname())
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
        """Where to go on after the broker named another offset. Raises Behind, OffsetsLost."""
        wanted = piece.position
        if header.min_offset <= wanted < header.max_offset and piece.resets < _RESETS:
            piece.resets += 1
            return wanted
        if wanted >= header.min_offset:
            raise Behind(address, str(self.stretch), wanted, header.max_offset)
        self.note(OffsetsLost(str(self.stretch), wanted, header.min_offset, "deleted since the read was planned"))
        return header.min_offset

    def note(self, loss: OffsetsLost) -> None:
        """Raises it with `fail_on_data_loss`."""
        if self._fail:
            raise loss
        self.lost.append(loss)
