"""Makes the answer to a pull of a logical queue from the answer of the piece that was read.

Apache: PullMessageProcessor.rewriteResponseForStaticTopic. Offsets are those of the piece's queue until `shown`.
"""

from __future__ import annotations

import attrs

from twisted_mq.broker.topics.logic_queues import (
    Piece,
    Pieces,
    is_closed,
    last_known_offset,
    logical_offset,
    piece_after,
    piece_at,
)
from twisted_mq.protocol.codes import ResponseCode


@attrs.frozen
class Pulled:
    """The code and offsets of an answer."""

    code: int
    next_begin_offset: int
    min_offset: int
    max_offset: int


def from_pieces(pulled: Pulled, asked: int, pieces: Pieces, piece: Piece) -> tuple[Pulled, Piece]:
    """Return what the reader of a logical queue does next, and in which piece; `asked` is the offset that was read."""
    if pulled.code == ResponseCode.SUCCESS:
        return pulled, piece
    first = piece_at(pieces, 0)
    is_leader, is_first = piece.gen == pieces[-1].gen, first is not None and piece.gen == first.gen
    if asked < pulled.min_offset:
        code = ResponseCode.PULL_OFFSET_MOVED if is_first else ResponseCode.PULL_RETRY_IMMEDIATELY
        return attrs.evolve(pulled, code=code, next_begin_offset=pulled.min_offset), piece
    if is_leader and asked > pulled.max_offset and pulled.code == ResponseCode.PULL_OFFSET_MOVED:
        pulled = attrs.evolve(pulled, next_begin_offset=pulled.max_offset)
    if asked >= pulled.max_offset and (is_first or not is_leader):
        return _behind_the_end(pulled, piece_after(pieces, piece), piece)
    return pulled, piece


def _behind_the_end(pulled: Pulled, following: Piece | None, piece: Piece) -> tuple[Pulled, Piece]:
    """Return the start of the next piece; while that is unknown, the answer that nothing was found."""
    if following is None:
        return attrs.evolve(pulled, code=ResponseCode.PULL_NOT_FOUND), piece
    begin = following.start_offset
    return Pulled(ResponseCode.PULL_RETRY_IMMEDIATELY, begin, begin, begin), following


def shown(pulled: Pulled, pieces: Pieces, piece: Piece) -> dict[str, str]:
    """Return the answer's fields, with offsets of the logical queue; clients add `offsetDelta` to a message's offset."""
    begin = pulled.next_begin_offset
    if is_closed(piece):
        begin = min(begin, piece.end_offset)
    fields = {
        "nextBeginOffset": logical_offset(piece, begin),
        "minOffset": logical_offset(piece, max(piece.start_offset, pulled.min_offset)),
        "maxOffset": max(logical_offset(piece, pulled.max_offset), last_known_offset(pieces[-1])),
        "offsetDelta": piece.logic_offset - piece.start_offset,
    }
    return {name: str(value) for name, value in fields.items()}
