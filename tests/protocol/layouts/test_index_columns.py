"""Columns over an index file, against its construct declarations and the readable twins."""

from __future__ import annotations

import mmap

import construct
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from twisted_mq.protocol.layouts.index import (
    HEADER_BYTES,
    INDEX_ENTRY,
    INDEX_HEADER,
    INDEX_SLOT,
    IndexEntry,
    IndexSizes,
    entry_position,
    positive_hash,
    time_diff_seconds,
    unpack_begin_offset,
)
from twisted_mq.protocol.layouts.index_columns import (
    entries_in,
    first_offsets,
    positive_hashes,
    slots_in,
    times_diff_seconds,
)

SIZES = IndexSizes(slots=7, entries=5)
FILE = construct.Struct(
    "header" / INDEX_HEADER,
    "slots" / INDEX_SLOT[SIZES.slots],
    "entries" / INDEX_ENTRY[SIZES.entries],
    construct.Terminated,
)


@given(st.binary(min_size=SIZES.file_bytes, max_size=SIZES.file_bytes))
def test_any_file_reads_as_construct_reads_it(raw: bytes) -> None:
    parsed = FILE.parse(raw)
    data = memoryview(raw)
    assert slots_in(data, SIZES).tolist() == [slot.newest_index for slot in parsed.slots]
    entries = [tuple(entry[name] for name in IndexEntry._fields) for entry in parsed.entries]
    assert entries_in(data, SIZES, 0, SIZES.entries).tolist() == entries
    assert entries_in(data, SIZES, 2, 3).tolist() == entries[2:]
    assert unpack_begin_offset(data) == (parsed.header.begin_physical_offset,)


def test_an_entry_s_names_are_the_layout_s() -> None:
    assert IndexEntry._fields == tuple(subcon.name for subcon in INDEX_ENTRY.subcons)


@given(st.binary(min_size=200, max_size=200), st.lists(st.integers(1, 30), min_size=1))
def test_first_offsets_are_those_of_entry_1(raw: bytes, slots: list[int]) -> None:
    data = mmap.mmap(-1, len(raw))
    data[:] = raw
    expected = [INDEX_ENTRY.parse(raw[entry_position(1, count) :]).physical_offset for count in slots]
    assert first_offsets(data, np.array(slots, np.int64)).tolist() == expected


@given(st.lists(st.integers(0, 2**32 - 1) | st.just(1 << 31)))
def test_positive_hashes_are_those_of_each(bits: list[int]) -> None:
    expected = [positive_hash(one) for one in bits]
    assert positive_hashes(np.array(bits, np.uint32)).tolist() == expected
    assert positive_hashes(np.array(bits, np.int64)).tolist() == expected


@given(st.integers(-1, 2**50), st.lists(st.integers(0, 2**52)))
def test_times_are_those_of_each(begin: int, stored: list[int]) -> None:
    expected = [time_diff_seconds(begin, one) for one in stored]
    assert times_diff_seconds(begin, np.array(stored, np.int64)).tolist() == expected


def test_entries_lie_behind_header_and_slots() -> None:
    assert entry_position(0, 7) == HEADER_BYTES + 28
