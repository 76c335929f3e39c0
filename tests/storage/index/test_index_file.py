"""An index file: chains of equal hashes and of equal slots, times in seconds, limits, damage."""

from __future__ import annotations

import errno
import itertools
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twisted_mq.protocol.layouts.index import HEADER, IndexEntry, IndexSizes, entry_position, slot_position
from twisted_mq.storage.errors import StoreFull
from twisted_mq.storage.files.system_calls import posix_fallocate
from twisted_mq.storage.index.index_file import KeyEntry
from twisted_mq.storage.index.index_writer import IndexFile

SIZES = IndexSizes(slots=5, entries=20)
BEGIN = 1_700_000_000_000
EVER = 1 << 62


def make(tmp_path: Path, sizes: IndexSizes = SIZES, before: IndexFile | None = None, name: str = "1") -> IndexFile:
    return IndexFile.create(str(tmp_path / name), sizes, before, posix_fallocate)


def select(file: IndexFile, key_hash: int, most: int = 64, begin: int = 0, end: int = EVER) -> list[int]:
    found: list[int] = []
    file.select(found, key_hash, most, begin, end)
    return found


def test_new_file_is_empty_and_of_full_size(tmp_path: Path) -> None:
    file = make(tmp_path)
    assert os.stat(file.path).st_size == SIZES.file_bytes == 40 + 5 * 4 + 20 * 20
    assert HEADER.unpack_from(file.view) == (0, 0, 0, 0, 0, 1)
    assert (select(file, 3), file.is_full, file.fault()) == ([], False, "")


def test_entries_are_chained_from_new_to_old(tmp_path: Path) -> None:
    """Hashes 3 and 8 share slot 3."""
    file = make(tmp_path)
    assert file.put([(3, 0, BEGIN), (8, 100, BEGIN + 999), (3, 200, BEGIN + 1000), (4, 300, BEGIN + 5000)]) == 4
    assert [file.entry(index) for index in range(1, 5)] == [
        IndexEntry(3, 0, 0, 0),
        IndexEntry(8, 100, 0, 1),
        IndexEntry(3, 200, 1, 2),
        IndexEntry(4, 300, 5, 0),
    ]
    assert [entry.physical_offset for entry in file.chain(3)] == [200, 100, 0]
    assert (select(file, 3), select(file, 8), select(file, 4), select(file, 9)) == ([200, 0], [100], [300], [])
    assert HEADER.unpack_from(file.view) == (BEGIN, BEGIN + 5000, 0, 300, 2, 5)


def test_first_entry_counts_its_seconds_from_the_file_before(tmp_path: Path) -> None:
    """As Apache's: a new file begins with the old one's end until its first entry is written."""
    first = make(tmp_path)
    first.put([(3, 40, BEGIN)])
    second = make(tmp_path, before=first, name="2")
    assert HEADER.unpack_from(second.view) == (BEGIN, BEGIN, 40, 40, 0, 1)
    second.put([(3, 80, BEGIN + 7000), (3, 120, BEGIN + 9000)])
    assert [second.entry(1), second.entry(2)] == [IndexEntry(3, 80, 7, 0), IndexEntry(3, 120, 2, 1)]
    assert HEADER.unpack_from(second.view) == (BEGIN + 7000, BEGIN + 9000, 80, 120, 1, 3)


@pytest.mark.parametrize(
    ("most", "begin", "end", "found"),
    [
        (64, 0, EVER, [300, 200, 100]),
        (2, 0, EVER, [300, 200]),
        (0, 0, EVER, []),
        (64, BEGIN + 1000, EVER, [300, 200]),
        (64, BEGIN + 1001, EVER, [300]),
        (64, 0, BEGIN + 1000, [200, 100]),
        (64, 0, BEGIN + 999, [100]),
        (64, BEGIN + 2000, BEGIN + 2000, [300]),
    ],
)
def test_selection_by_number_and_time(tmp_path: Path, most: int, begin: int, end: int, found: list[int]) -> None:
    """Times are whole seconds from the file's first record: what was stored at 1,900 ms counts as at 1,000."""
    file = make(tmp_path)
    file.put([(3, 100, BEGIN), (3, 200, BEGIN + 1900), (3, 300, BEGIN + 2000)])
    assert select(file, 3, most, begin, end) == found


@pytest.mark.parametrize(
    ("begin", "end", "matched"),
    [
        (0, BEGIN - 1, False),
        (0, BEGIN, True),
        (0, EVER, True),
        (BEGIN, EVER, True),
        (BEGIN + 1, BEGIN + 2, True),
        (BEGIN + 3000, EVER, True),
        (BEGIN + 3001, EVER, False),
    ],
)
def test_time_ranges_that_touch_the_file(tmp_path: Path, begin: int, end: int, matched: bool) -> None:
    file = make(tmp_path)
    file.put([(3, 0, BEGIN), (3, 10, BEGIN + 3000)])
    assert file.is_time_matched(begin, end) is matched


def test_a_clock_that_went_back_gives_no_negative_seconds(tmp_path: Path) -> None:
    file = make(tmp_path)
    file.put([(3, 0, BEGIN), (3, 10, BEGIN - 5000), (3, 20, BEGIN + (1 << 45))])
    assert [file.entry(index).time_diff_seconds for index in (1, 2, 3)] == [0, 0, 0x7FFFFFFF]


def test_a_full_file_takes_what_fits(tmp_path: Path) -> None:
    file = make(tmp_path, IndexSizes(5, 4))
    assert file.put([(number, number, BEGIN) for number in range(5)]) == 3
    assert (file.is_full, file.index_count, file.put([(1, 9, BEGIN)])) == (True, 4, 0)
    assert file.fault() == ""


def test_an_opened_file_goes_on(tmp_path: Path) -> None:
    file = make(tmp_path)
    file.put([(3, 0, BEGIN)])
    file.release()
    again = IndexFile.open(file.path, SIZES, posix_fallocate)
    again.put([(8, 100, BEGIN + 2000)])
    assert [entry.physical_offset for entry in again.chain(3)] == [100, 0]
    assert (again.begin_physical_offset, again.end_physical_offset, again.hash_slot_count) == (0, 100, 1)


def test_a_full_disk_leaves_no_new_file_and_no_entry(tmp_path: Path) -> None:
    def full(descriptor: int, start: int, count: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(StoreFull):
        IndexFile.create(str(tmp_path / "1"), SIZES, None, full)
    assert list(tmp_path.iterdir()) == []
    path = make(tmp_path).path
    file = IndexFile.open(path, SIZES, full)
    with pytest.raises(StoreFull):
        file.put([(3, 0, BEGIN)])
    assert (file.index_count, select(file, 3)) == (1, [])


@pytest.mark.parametrize(
    ("position", "data", "fault"),
    [
        (36, (21).to_bytes(4, "big"), "the header says 20 entries in 2 slots"),
        (32, (9).to_bytes(4, "big"), "the header says 2 entries in 9 slots"),
        (16, (900).to_bytes(8, "big"), "the header says records from 900 to 200"),
        (24, (900).to_bytes(8, "big"), "the entries begin with 100 and end with 200, the header says otherwise"),
        (entry_position(2, 5) + 4, bytes(8), "the entries begin with 100 and end with 0, the header says otherwise"),
    ],
    ids=["too many entries", "too many slots", "begins behind its end", "other end", "lost entry"],
)
def test_damage_that_can_be_seen_at_once(tmp_path: Path, position: int, data: bytes, fault: str) -> None:
    file = make(tmp_path)
    file.put([(3, 100, BEGIN), (4, 200, BEGIN)])
    file.view[position : position + len(data)] = data
    file.read_header()
    assert file.fault() == fault


def test_damaged_chains_end(tmp_path: Path) -> None:
    """A previous entry that is not older would lead in a circle, a slot behind the end to nothing."""
    file = make(tmp_path)
    file.put([(3, 100, BEGIN), (3, 200, BEGIN)])
    position = entry_position(1, 5) + 16
    file.view[position : position + 4] = (2).to_bytes(4, "big")
    assert select(file, 3) == [200, 100]
    position = slot_position(3, 5)
    file.view[position : position + 4] = (7).to_bytes(4, "big")
    assert select(file, 3) == []


KEYS = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 9_000)), max_size=30)


@given(KEYS, st.integers(0, 12), st.integers(0, 10), st.integers(0, 9_000), st.integers(0, 9_000))
def test_selection_is_that_of_a_list(
    tmp_path_factory: pytest.TempPathFactory, keys: list[tuple[int, int]], wanted: int, most: int, begin: int, end: int
) -> None:
    file = make(tmp_path_factory.mktemp("index"), IndexSizes(3, 40))
    times = sorted(time for _, time in keys)
    entries: list[KeyEntry] = [
        (key_hash, 10 * number, BEGIN + time)
        for number, ((key_hash, _), time) in enumerate(zip(keys, times, strict=True))
    ]
    file.put(entries)
    first = entries[0][2] if entries else 0
    model = [
        offset
        for key_hash, offset, time in reversed(entries)
        if key_hash == wanted and BEGIN + begin <= first + (time - first) // 1000 * 1000 <= BEGIN + end
    ]
    assert select(file, wanted, most, BEGIN + begin, BEGIN + end) == model[:most]


@given(KEYS, st.lists(st.integers(1, 30), max_size=4))
def test_many_keys_at_once_are_as_one_by_one(
    tmp_path_factory: pytest.TempPathFactory, keys: list[tuple[int, int]], cuts: list[int]
) -> None:
    entries = [(key_hash, 10 * number, BEGIN + time) for number, (key_hash, time) in enumerate(keys)]
    folder = tmp_path_factory.mktemp("index")
    single, several = make(folder, IndexSizes(3, 40), name="1"), make(folder, IndexSizes(3, 40), name="2")
    for entry in entries:
        single.put([entry])
    bounds = [0, *sorted(cuts), len(entries)]
    for start, end in itertools.pairwise(bounds):
        several.put(entries[start:end])
    assert bytes(several.view) == bytes(single.view)
