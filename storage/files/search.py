"""Searches for bytes in a mapped file."""

from __future__ import annotations

import mmap
from collections.abc import Iterator


def positions_in(mapped: mmap.mmap | bytes, data: bytes, start: int, end: int) -> Iterator[int]:
    """Yield the positions of these bytes from `start` on, all of them before `end`.

    CPython 3.11.0 to 3.11.4 reads the byte after the end of a search, and crashes if a mapping ends there (gh-105235). So
    the search ends one byte earlier, and the last place is compared separately.
    """
    last = end - len(data)
    if last < start:
        return
    found = mapped.find(data, start, end - 1)
    while found >= 0:
        yield found
        found = mapped.find(data, found + 1, end - 1)
    if mapped[last:end] == data:
        yield last
