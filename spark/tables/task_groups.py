"""Groups of files for tasks: small files together, because a task costs more than a small file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")
PIECES_A_TASK = 256
BYTES_A_TASK = 64 << 20
"""Maximum number of bytes of a task; a larger piece is read alone."""


def grouped(pieces: Iterable[tuple[T, int]], most_bytes: int = BYTES_A_TASK) -> Iterator[tuple[T, ...]]:
    """Return the pieces of each task, in order; each piece is given with its size in bytes."""
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
