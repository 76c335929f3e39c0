"""Combined reads of a file: near records in one read, and on remote file systems several reads at a time.

A request to S3 takes as long as the transfer of some MiB. So ranges that are less than 1 MiB apart are one request there, and
none is much larger than a request of a scan. If there would still be more requests than in a scan of the same stretch, they grow
to the size of a scan.
"""

from __future__ import annotations

import collections
import itertools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import attrs
import numpy as np

from twisted_mq.protocol.columns import Numbers, Positions

READS_AT_ONCE = 4
Read = Callable[[int, int], bytes]
"""(position, length) -> bytes."""


@attrs.frozen
class Gathering:
    """Settings for combined reads: records that begin within `most` bytes are read together, with gaps of at most `near`
    bytes."""

    near: int
    most: int
    bytes_at_once: int | None = None
    """Approximate number of bytes in memory; None: all reads, one after the other."""


LOCAL = Gathering(4096, 4 << 20)
REMOTE = Gathering(1 << 20, 4 << 20, 16 << 20)
MORE_REQUESTS = 1.2
"""Allowed ratio to the number of requests of a scan, to read fewer bytes."""


def ranges(positions: Positions, sizes: Numbers, gathering: Gathering) -> list[slice]:
    """Return the ranges of these records, in ascending order, that are read together."""
    found = _ranges(positions, sizes, gathering.near, gathering.most)
    if gathering.bytes_at_once is None or len(found) < 2:
        return found
    scan = -(-int(positions[-1] + sizes[-1] - positions[0]) // gathering.most)
    if len(found) <= MORE_REQUESTS * scan:
        return found
    return _ranges(positions, sizes, gathering.most, gathering.most)


def _ranges(positions: Positions, sizes: Numbers, near: int, most: int) -> list[slice]:
    breaks = np.append(np.flatnonzero(positions[1:] - (positions + sizes)[:-1] > near) + 1, len(positions))
    found, begin = [], 0
    while begin < len(positions):
        far = int(np.searchsorted(positions, positions[begin] + most))
        end = min(int(breaks[np.searchsorted(breaks, begin, "right")]), max(begin + 1, far))
        found.append(slice(begin, end))
        begin = end
    return found


def first_ranges(found: Sequence[slice], positions: Positions, sizes: Numbers, gathering: Gathering) -> Sequence[slice]:
    """Return the first of these ranges, as many as fit in memory."""
    if gathering.bytes_at_once is None:
        return found
    lengths = (int(positions[one.stop - 1] + sizes[one.stop - 1] - positions[one.start]) for one in found)
    inside = itertools.takewhile(lambda total: total <= gathering.bytes_at_once, itertools.accumulate(lengths))  # type: ignore[operator]
    return found[: max(1, sum(1 for _ in inside))]


def read_all(read: Read, wanted: Sequence[tuple[int, int]], gathering: Gathering) -> list[bytes]:
    """Read these (position, length), with several reads at a time if that is faster."""
    if gathering.bytes_at_once is None or len(wanted) < 2:
        return [read(*one) for one in wanted]
    with ThreadPoolExecutor(READS_AT_ONCE) as threads:
        return list(threads.map(lambda one: read(*one), wanted))


class ReadAhead:
    """A stretch of a file in blocks; the next blocks are read while one is decoded. Reads must go forward."""

    def __init__(self, read: Read, begin: int, end: int, block_bytes: int) -> None:
        self._read = read
        self._blocks = _blocks(begin, end, block_bytes)
        self._threads = ThreadPoolExecutor(READS_AT_ONCE)
        self._coming: collections.deque[tuple[int, int, Future[bytes]]] = collections.deque()
        self._position, self._held = begin, b""
        self._fill()

    def _fill(self) -> None:
        while len(self._coming) < READS_AT_ONCE and (block := next(self._blocks, None)) is not None:
            self._coming.append((*block, self._threads.submit(self._read, *block)))

    def read(self, position: int, length: int) -> bytes | None:
        """Return the bytes from there on, fewer at the stretch's end; None for bytes that are not read ahead."""
        if position < self._position:
            return None
        self._drop(position)
        while self._coming and self._position + len(self._held) < position + length:
            self._held += self._coming.popleft()[2].result()
            self._fill()
            self._drop(position)
        begin = position - self._position
        return self._held[begin : begin + length] or None

    def _drop(self, position: int) -> None:
        passed = min(position - self._position, len(self._held))
        self._held = self._held[passed:]
        self._position += passed

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def _blocks(begin: int, end: int, size: int) -> Iterator[tuple[int, int]]:
    """Return (position, length) of equal blocks; a small rest is part of the last one."""
    position = begin
    while position < end:
        length = size if end - position > size + size // 16 else end - position
        yield position, length
        position += length
