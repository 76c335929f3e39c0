"""What tasks read of many files: small ones together, for a task costs more than a small file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")
PIECES_A_TASK = 256
BYTES_A_TASK = 64 << 20
"""Of what a task reads, so many at most; a larger piece is read alone."""


def grouped(pieces: Iterable[tuple[T, int]], most_bytes: int = BYTES_A_TASK) -> Iterator[tuple[T, ...]]:
    """The pieces of each task, in order; each is given with its bytes."""
    group: list[T] = []
    size = 0
    for piece, length in pieces:
        if group and (size + length > most_bytes or len(group) == PIECES_A_TASK):
            yield tuple(group)
            group, size = [], 0
        group.append(piece)
        size += length
    if group:
        yield tuple(group)
