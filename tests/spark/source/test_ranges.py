"""Gathered reads: each record in one range, fewer requests than a scan makes, and blocks that come ahead."""

from __future__ import annotations

import itertools
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twisted_mq.spark.source.ranges import (
    LOCAL,
    MORE_REQUESTS,
    READS_AT_ONCE,
    REMOTE,
    Gathering,
    ReadAhead,
    first_ranges,
    ranges,
    read_all,
)

MIB = 1 << 20
GAPS_AND_SIZES = st.lists(
    st.tuples(st.one_of(st.just(0), st.integers(0, 6 * MIB)), st.integers(100, 5 * MIB)), min_size=1, max_size=60
)


@given(GAPS_AND_SIZES, st.sampled_from([LOCAL, REMOTE]))
def test_each_record_is_in_one_range_and_ranges_are_not_many(
    records: list[tuple[int, int]], gathering: Gathering
) -> None:
    positions, end = [], 0
    for gap, size in records:
        positions.append(end + gap)
        end = positions[-1] + size
    starts, sizes = np.array(positions), np.array([size for _, size in records])
    found = ranges(starts, sizes, gathering)
    assert [row for one in found for row in range(one.start, one.stop)] == list(range(len(records)))
    if gathering is REMOTE:
        scan = -(-(end - positions[0]) // gathering.most)
        assert len(found) <= max(1, MORE_REQUESTS * scan)
    held = first_ranges(found, starts, sizes, gathering)
    assert held and list(held) == found[: len(held)]


def test_ranges_nearer_than_a_mib_are_one_and_far_ones_are_not() -> None:
    positions = np.array([0, MIB, 30 * MIB, 60 * MIB])
    sizes = np.full(4, 1000)
    assert ranges(positions, sizes, REMOTE) == [slice(0, 2), slice(2, 3), slice(3, 4)]
    assert ranges(positions, sizes, LOCAL) == [slice(0, 1), slice(1, 2), slice(2, 3), slice(3, 4)]


def test_many_ranges_become_those_of_a_scan() -> None:
    positions = np.arange(100) * (2 * MIB)
    assert len(ranges(positions, np.full(100, 1000), REMOTE)) == 50


@pytest.mark.parametrize("step", [1, 7, 100, 333, 5000])
def test_reads_ahead_give_the_bytes_once(step: int) -> None:
    data = bytes(number * 7 % 251 for number in range(3000))
    asked: list[tuple[int, int]] = []

    def read(position: int, length: int) -> bytes:
        asked.append((position, length))
        return data[position : position + length]

    ahead = ReadAhead(read, 100, 2900, 256)
    for position in range(100, 2900, step):
        assert ahead.read(position, step + 3) == data[position : min(2900, position + step + 3)]
    assert ahead.read(99, 1) is None
    ahead.close()
    covered = sorted(asked)
    assert covered[0][0] == 100 and sum(length for _, length in covered) == 2800
    assert all(first + length == following for (first, length), (following, _) in itertools.pairwise(covered))


def test_several_reads_are_under_way_at_once() -> None:
    together = threading.Barrier(READS_AT_ONCE, timeout=30)

    def read(position: int, length: int) -> bytes:
        together.wait()
        return b"%d" % position

    wanted = [(number, 1) for number in range(2 * READS_AT_ONCE)]
    assert read_all(read, wanted, REMOTE) == [b"%d" % number for number in range(2 * READS_AT_ONCE)]
