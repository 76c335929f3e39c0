"""Translates the offsets of a logical queue to those of its pieces (Apache: LogicQueueMappingItem, TopicQueueMappingUtils).

A logical queue of a static topic is a row of pieces, oldest first; each is a queue of some broker. The last one takes the
writes. A piece begins at a logical offset, -1 while that is unknown.

    piece   broker    queue   logic_offset   holds the logical offsets
    gen 0   broker-a  0       0              0 and on
    gen 1   broker-b  3       10000          10000 and on; broker-a's end before that
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TypeAlias

from twisted_mq.protocol.bodies import LogicQueueMappingItem

Piece: TypeAlias = LogicQueueMappingItem
Pieces: TypeAlias = Sequence[LogicQueueMappingItem]


def is_placed(piece: Piece) -> bool:
    """Return True if it is known where the piece begins."""
    return piece.logic_offset >= 0


def is_closed(piece: Piece) -> bool:
    """Return True if it is known where the piece ends."""
    return piece.end_offset > piece.start_offset


def logical_offset(piece: Piece, physical: int) -> int:
    """Return the logical offset of an offset in the piece's queue, as if the piece had no end."""
    return piece.logic_offset + max(0, physical - piece.start_offset)


def bounded_offset(piece: Piece, physical: int) -> int:
    """Like `logical_offset`, but no further than the piece's end; -1 if the piece has no known start yet."""
    if not is_placed(piece):
        return -1
    if piece.end_offset >= piece.start_offset:
        physical = min(physical, piece.end_offset)
    return logical_offset(piece, physical)


def physical_offset(piece: Piece, logical: int) -> int:
    """Return the offset in the piece's queue; below the queue's start for offsets before the piece."""
    return logical - piece.logic_offset + piece.start_offset


def last_known_offset(piece: Piece) -> int:
    """Return the end of a closed piece, or else its begin (computeMaxStaticQueueOffset)."""
    return piece.logic_offset + max(0, piece.end_offset - piece.start_offset)


def piece_at(pieces: Pieces, logical: int) -> Piece | None:
    """Return the piece of a logical offset; the first piece for offsets before it, None while no piece is placed."""
    placed = [piece for piece in pieces if is_placed(piece)]
    found = [piece for piece in placed if piece.logic_offset <= logical]
    if found:
        return found[-1]
    return placed[0] if placed else None


def piece_after(pieces: Pieces, piece: Piece) -> Piece | None:
    """Return the next piece that is placed."""
    return next((one for one in pieces if one.gen > piece.gen and is_placed(one)), None)


def check_pieces(pieces: Pieces) -> None:
    """Raise ValueError for pieces that do not follow each other (checkLogicQueueMappingItemOffset)."""
    if any(min(piece.gen, piece.queue_id, piece.start_offset) < 0 or not piece.bname for piece in pieces):
        raise ValueError("The field is illegal, should not be negative")
    if any(piece.end_offset != -1 and piece.end_offset < piece.start_offset for piece in pieces):
        raise ValueError("The endOffset is smaller than the start offset")
    for older, newer in itertools.pairwise(pieces):
        if newer.gen <= older.gen:
            raise ValueError("The gen does not increase")
        if not is_placed(older):
            raise ValueError("The non-last item has negative logic offset")
        if is_placed(newer) and newer.logic_offset <= last_known_offset(older):
            raise ValueError("The logic offset does not increase")


def check_kept(old: Pieces, new: Pieces, *, same_epoch: bool) -> None:
    """Check that known facts about each piece stay true; the oldest may be gone (makeSureLogicQueueMappingItemImmutable).

    Raises ValueError.
    """
    if not old:
        return
    if not new:
        raise ValueError("The new item list is null or empty")
    before = {piece.gen: piece for piece in old}
    for piece in new:
        known = before.get(piece.gen)
        if known is not None and not _is_same(known, piece):
            raise ValueError(f"The item of generation {piece.gen} is changed")
    if same_epoch and _place(old[-1]) != _place(new[-1]):
        raise ValueError("The new leader is different but epoch equal")


def _place(piece: Piece) -> tuple[int, str | None, int, int]:
    return piece.gen, piece.bname, piece.queue_id, piece.start_offset


def _is_same(old: Piece, new: Piece) -> bool:
    return _place(old) == _place(new) and old.logic_offset in (-1, new.logic_offset)
