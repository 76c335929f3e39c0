"""Splits of stores, one for each task, from the names and sizes of their files: nothing is read.

A cut inside a file is at any byte. The tasks on both sides find the same first record after it with `log_stretch.first_record`,
so each record is in one split only. Cuts between files need no search. A log without consume queues is cut between files only,
because there the search for a record begins at the start of its file.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

import attrs
from pyspark.sql.datasource import InputPartition

from twisted_mq.spark.source.stores import LogFile, Store

DEFAULT_PART_BYTES = 64 * 1024 * 1024
"""Default size of a part: a file of 1 GiB (Apache's default) gives 16 tasks."""
SMALLEST_PART_BYTES = 4096
MOST_PARTS = 20_000
"""Maximum number of parts by default. Spark's driver keeps some KiB for each."""


@attrs.frozen
class StoreRange:
    """Range of a store to read: records that begin in [begin, end), in files whose log ends at `log_end`.

    Without `cut_inside` each file is read by one task.
    """

    store: Store
    files: Sequence[LogFile]
    begin: int
    end: int
    log_end: int
    cut_inside: bool = True
    has_rest_in_copies: bool = False
    """True: other stores of the same broker have what this one lacks."""

    def pieces(self) -> Iterator[tuple[LogFile, int, int]]:
        """Return (file, first and last physical offset) of the part in each file."""
        for file in self.files:
            begin, end = max(self.begin, file.first_offset), min(self.end, file.end, self.log_end)
            if begin < end:
                yield file, begin, end

    @property
    def size_bytes(self) -> int:
        """Return the length of all pieces."""
        return sum(end - begin for _, begin, end in self.pieces())


class LogSplit(InputPartition):
    """Part of one store that one task reads."""

    def __init__(self, part: StoreRange) -> None:
        super().__init__(part)
        self.part = part

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LogSplit) and self.part == other.part

    __hash__ = None  # type: ignore[assignment]


def plan_splits(
    ranges: Iterable[StoreRange], part_bytes: int | None = None, min_parts: int = 1, together: int = 1
) -> list[LogSplit]:
    """Return the splits of stores, in physical order for each store; none if there is nothing to read.

    A split has approximately `together` times `part_bytes`, fewer if `min_parts` requires it: small files share one, large ones
    are cut.
    """
    ranges = list(ranges)
    total = sum(one.size_bytes for one in ranges)
    most = together * (part_bytes or max(DEFAULT_PART_BYTES, 2 * total // MOST_PARTS + 1))
    most = max(SMALLEST_PART_BYTES, min(most, total // max(1, min_parts)))
    return [LogSplit(part) for one in ranges for part in _cut(one, most)]


def _cut(whole: StoreRange, most: int) -> Iterator[StoreRange]:
    """Return the parts of a range, each of at most `most` bytes."""
    files: list[LogFile] = []
    begin = end = size = 0
    for file, first, last in _cut_pieces(whole, most):
        if files and size + last - first > most:
            yield attrs.evolve(whole, files=files, begin=begin, end=end)
            files, size = [], 0
        if not files:
            begin = first
        files = files if files and files[-1] is file else [*files, file]
        end, size = last, size + last - first
    if files:
        yield attrs.evolve(whole, files=files, begin=begin, end=end)


def _cut_pieces(whole: StoreRange, most: int) -> Iterator[tuple[LogFile, int, int]]:
    """Return the pieces of a range, with large ones cut into equal ones."""
    for file, begin, end in whole.pieces():
        count = -(-(end - begin) // most) if whole.cut_inside else 1
        cuts = [begin + (end - begin) * number // count for number in range(count + 1)]
        yield from ((file, first, last) for first, last in itertools.pairwise(cuts))
