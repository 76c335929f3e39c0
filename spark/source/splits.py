"""Cutting stores into splits, one task each, by the names and sizes of their files alone: nothing is read for it.

A cut inside a file is blind: it is at some byte, and the tasks on both sides of it find the same first record behind it by one
rule, `log_stretch.first_record`. So each record is in one split only. Cuts between files need no search. A log without
consume queues is cut between files only, because there the way to a record begins at its file's start.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

import attrs
from pyspark.sql.datasource import InputPartition

from twisted_mq.spark.source.stores import LogFile, Store

DEFAULT_PART_BYTES = 64 * 1024 * 1024
"""A 1 GiB file (Apache's default) gives 16 tasks."""
SMALLEST_PART_BYTES = 4096
MOST_PARTS = 20_000
"""Unless more are asked for. Spark's driver keeps some KiB for each."""


@attrs.frozen
class StoreRange:
    """What is read of a store: records that begin in [begin, end), in files whose log ends at `log_end`.

    Without `cut_inside` each file is read by one task.
    """

    store: Store
    files: Sequence[LogFile]
    begin: int
    end: int
    log_end: int
    cut_inside: bool = True

    def pieces(self) -> Iterator[tuple[LogFile, int, int]]:
        """(file, first and last physical offset) of what lies in each file."""
        for file in self.files:
            begin, end = max(self.begin, file.first_offset), min(self.end, file.end, self.log_end)
            if begin < end:
                yield file, begin, end

    @property
    def size_bytes(self) -> int:
        """The length of all pieces."""
        return sum(end - begin for _, begin, end in self.pieces())


class LogSplit(InputPartition):
    """What one task reads of one store."""

    def __init__(self, part: StoreRange) -> None:
        super().__init__(part)
        self.part = part

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LogSplit) and self.part == other.part

    __hash__ = None  # type: ignore[assignment]


def plan_splits(ranges: Iterable[StoreRange], part_bytes: int | None = None, min_parts: int = 1) -> list[LogSplit]:
    """The splits of stores, of each in physical order; none where there is nothing to read.

    A split has about `part_bytes`, fewer where `min_parts` needs it: small files share one, large ones are cut.
    """
    ranges = list(ranges)
    total = sum(one.size_bytes for one in ranges)
    most = part_bytes or max(DEFAULT_PART_BYTES, 2 * total // MOST_PARTS + 1)
    most = max(SMALLEST_PART_BYTES, min(most, total // max(1, min_parts)))
    return [LogSplit(part) for one in ranges for part in _cut(one, most)]


def _cut(whole: StoreRange, most: int) -> Iterator[StoreRange]:
    """The parts of a range, each of at most `most` bytes."""
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
    """The pieces of a range, large ones cut into equal ones."""
    for file, begin, end in whole.pieces():
        count = -(-(end - begin) // most) if whole.cut_inside else 1
        cuts = [begin + (end - begin) * number // count for number in range(count + 1)]
        yield from ((file, first, last) for first, last in itertools.pairwise(cuts))
