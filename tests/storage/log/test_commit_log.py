"""The log: room for records, rolling with a blank record, reading by offset."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.mappings import read_at_random
from twisted_mq.protocol.layouts.record import read_mark
from twisted_mq.protocol.layouts.record_codec import encode_record
from twisted_mq.storage.files.system_calls import LINUX
from twisted_mq.storage.log.commit_log import CommitLog

SIZE = 1000
HOST = bytes(8)


@pytest.fixture
def log(tmp_path: Path) -> CommitLog:
    log = CommitLog(str(tmp_path / "log"), SIZE, 4096)
    log.load()
    return log


def record(offset: int, size: int) -> bytes:
    return encode_record(
        b"T",
        bytes(size - 92),
        b"",
        queue_id=0,
        queue_offset=0,
        physical_offset=offset,
        born_timestamp=0,
        born_host=HOST,
        store_timestamp=1,
        store_host=HOST,
    )


def append(log: CommitLog, size: int) -> int:
    """Append like the store's hot path."""
    if log.max_offset + size > log.limit:
        log.make_room(size)
    offset = log.max_offset
    log.view[offset - log.base : offset - log.base + size] = record(offset, size)
    log.max_offset = offset + size
    return offset


def test_records_follow_each_other(log: CommitLog) -> None:
    assert [append(log, size) for size in (100, 200, 300)] == [0, 100, 300]
    assert (log.min_offset, log.max_offset) == (0, 600)


@pytest.mark.parametrize(
    ("sizes", "offsets"),
    [
        pytest.param((892, 100), [0, 892], id="fits with room for the blank record"),
        pytest.param((893, 100), [0, 1000], id="one byte too long"),
        pytest.param((992, 992, 992), [0, 1000, 2000], id="largest records"),
        pytest.param((500, 500, 500), [0, 1000, 2000], id="halves"),
    ],
)
def test_log_rolls_where_record_and_blank_do_not_fit(
    log: CommitLog, sizes: tuple[int, ...], offsets: list[int]
) -> None:
    assert [append(log, size) for size in sizes] == offsets


def test_blank_record_fills_the_file(log: CommitLog) -> None:
    append(log, 600)
    append(log, 600)
    blank = log.read(600, 400)
    assert blank is not None
    assert read_mark(blank) == (400, -875286124)
    assert bytes(blank[8:]) == bytes(392)


def test_reading(log: CommitLog) -> None:
    append(log, 600)
    append(log, 600)
    found = {place: log.read(*place) is not None for place in READS}
    assert found == READS


READS = {
    (0, 600): True,
    (0, 1000): True,
    (0, 1001): False,
    (1000, 600): True,
    (1000, 601): False,
    (1599, 1): True,
    (1600, 1): False,
    (-1, 1): False,
    (0, -1): False,
    (1 << 40, 1): False,
}


def test_records_are_found_by_their_own_offset(log: CommitLog) -> None:
    append(log, 600)
    append(log, 600)
    assert [log.record_at(offset) is not None for offset in (0, 1, 600, 1000, 1001, 1600)] == [
        True,
        False,
        False,
        True,
        False,
        False,
    ]


def test_next_file(log: CommitLog) -> None:
    assert [log.next_file_offset(offset) for offset in (0, 999, 1000)] == [1000, 1000, 2000]


def test_log_goes_on_behind_a_cut(log: CommitLog, tmp_path: Path) -> None:
    for _ in range(3):
        append(log, 600)
    log.release()
    again = CommitLog(str(tmp_path / "log"), SIZE, 4096)
    again.load()
    assert again.max_offset == 3000
    assert again.truncate(1600).deleted_files == (str(tmp_path / "log" / f"{2000:020d}"),)
    assert [append(again, 300), append(again, 300)] == [1600, 2000]


def test_log_cut_at_a_file_end_makes_the_next_file(log: CommitLog) -> None:
    append(log, 992)
    log.truncate(1000)
    assert append(log, 100) == 1000


def test_empty_log_begins_at_zero(log: CommitLog) -> None:
    assert (log.min_offset, log.max_offset, log.largest_record, log.read(0, 1)) == (0, 0, 992, None)
    log.truncate(0)
    assert append(log, 100) == 0


@pytest.mark.skipif(not LINUX, reason="only Linux says what it was told of a mapping")
def test_log_is_read_at_random_where_that_is_asked_for_also_in_files_to_come(tmp_path: Path, log: CommitLog) -> None:
    for _ in range(2):
        append(log, 900)
    assert read_at_random(tmp_path) == [False, False]
    log.read_at_random(True)
    append(log, 900)
    assert read_at_random(tmp_path) == [True, True, True]
    log.files.files[0].release()
    assert log.read(0, 900) == record(0, 900)
    assert read_at_random(tmp_path) == [True, True, True]
    log.read_at_random(False)
    assert read_at_random(tmp_path) == [False, False, False]
