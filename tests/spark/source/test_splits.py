"""Splits cover stores once, are planned by names and sizes alone, and both sides of a cut agree on it."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from tests.spark.stores import StoreWriter, everything
from tests.support.captures import STORES, expected_messages
from tests.support.forms import each_form as each_form
from twisted_mq.spark.errors import NoCommitLog
from twisted_mq.spark.source.log_stretch import Damage, Missing, read_part
from twisted_mq.spark.source.options import ReadOptions, read_options
from twisted_mq.spark.source.planning import log_ends, plan_ranges
from twisted_mq.spark.source.splits import MOST_PARTS, SMALLEST_PART_BYTES, LogSplit, StoreRange, plan_splits
from twisted_mq.spark.source.stores import LogFile, Store
from twisted_mq.storage.columns.record_columns import RecordColumns

GIBIBYTE = 1 << 30


def planned(store: str, part_bytes: int | None = None, **options: str) -> list[LogSplit]:
    read = read_options({"path": store, **options})
    return plan_splits(plan_ranges(read, log_ends(read)), part_bytes, read.min_parts)


def offsets_of(splits: list[LogSplit]) -> list[list[int]]:
    """Physical offsets of the records of each split."""
    found = []
    for split in splits:
        pieces = [piece for piece in read_part(split.part) if not isinstance(piece, Damage | Missing)]
        found.append([offset for piece in pieces for offset in piece.physical_offsets.tolist()])
    return found


def joined(splits: list[LogSplit]) -> list[int]:
    return [offset for offsets in offsets_of(splits) for offset in offsets]


def imagined(files: int, size: int) -> StoreRange:
    """A log of which only names and sizes are known."""
    listed = [LogFile(f"/none/{number}", number * size, size) for number in range(files)]
    return StoreRange(Store("/none"), listed, 0, files * size, files * size)


@pytest.mark.parametrize("store", STORES)
def test_each_record_of_a_recorded_store_is_in_one_split(captured: Callable[[str], str], store: str) -> None:
    splits = planned(captured(store), SMALLEST_PART_BYTES)
    assert joined(splits) == [message["commitLogOffset"] for message in expected_messages(store)]
    if store in ("st", "livecopy", "cut_tail"):
        assert len(splits) > 20


@pytest.mark.parametrize("part_bytes", [4096, 4097, 5000, 8192, 40_000])
def test_cuts_lie_anywhere_and_lose_nothing(writer: StoreWriter, part_bytes: int) -> None:
    for number in range(300):
        writer.append(queue_id=number % 4, body=b"x" * (number * 37 % 3000))
    splits = planned(writer.write(), part_bytes)
    assert joined(splits) == writer.positions
    assert len(splits) >= writer.position // part_bytes


def test_damage_beside_a_cut_is_reported_once(writer: StoreWriter) -> None:
    for _ in range(100):
        writer.append(body=b"x" * 200)
    for number in (12, 13, 14, 15, 26, 27, 40):
        writer.overwrite(writer.positions[number], b"\xee" * 60)
    whole = [piece for split in planned(writer.write()) for piece in read_part(split.part) if isinstance(piece, Damage)]
    splits = planned(str(writer.root), 4096)
    found = [piece for split in splits for piece in read_part(split.part) if isinstance(piece, Damage)]
    assert sum(one.length for one in found) == sum(one.length for one in whole) == 7 * writer.positions[1]
    assert joined(splits) == [
        offset for offset in writer.positions if writer.positions.index(offset) not in (12, 13, 14, 15, 26, 27, 40)
    ]


def forged(tmp_path: Path, position: int, *sizes: int, **fields: int) -> bytes:
    """Bytes of records that would be right at `position`, one after the other."""
    inner = StoreWriter(tmp_path / f"inner-{position}", file_size=1 << 20)
    inner.position = position
    for size in sizes:
        inner.append(topic="Forged", body=b"f" * size, **fields)
    return bytes(inner._log[0][position : inner.position])


HEAD_BYTES = 88
"""From a record's first byte to its body."""


@pytest.mark.parametrize("queues", [True, False], ids=["queues", "log alone"])
def test_a_body_that_looks_like_records_is_no_cut(tmp_path: Path, queues: bool) -> None:
    """Bodies hold one forged record, several, or a chain whose last one seems to end where the true record does.

    That chain joins the log's.
    """
    writer = StoreWriter(tmp_path / "store", file_size=1 << 20)
    writer.append(body=b"x" * 5000)
    for sizes in ((0,), (10, 10, 300), (70_000,), (0,) * 30):
        writer.append(body=forged(tmp_path, writer.position + HEAD_BYTES, *sizes))
    joins = forged(tmp_path, writer.position + HEAD_BYTES, 40)
    tail = len("Orders") + 1 + 2
    writer.append(body=(len(joins) + tail).to_bytes(4, "big") + joins[4:])
    writer.append(body=b"z" * 5000)
    read = ReadOptions((writer.write(queues),))
    (whole,) = plan_ranges(read, log_ends(read))
    assert whole.end == writer.position
    assert whole.cut_inside is queues
    for cut in range(1, writer.position, 97):
        parts = (attrs.evolve(whole, begin=begin, end=end) for begin, end in ((0, cut), (cut, whole.end)))
        assert joined(list(map(LogSplit, parts))) == writer.positions


def test_rows_are_the_same_however_a_log_of_forged_bodies_is_cut(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "store", file_size=1 << 20)
    for number in range(81):
        writer.append(body=forged(tmp_path, writer.position + HEAD_BYTES, *(20,) * (1 + number % 12)))
    store = writer.write()
    for part_bytes in (4096, 5000, 8191, 20_000, 1 << 20):
        assert joined(planned(store, part_bytes)) == writer.positions


def test_a_log_alone_is_cut_between_files_only(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "store", file_size=1 << 16)
    while writer.position < 300_000:
        writer.append(body=b"x" * 1000)
    store = writer.write(queues=False)
    splits = planned(store, 4096)
    assert [len(split.part.files) for split in splits] == [1] * 5
    assert joined(splits) == writer.positions


def test_a_log_that_ends_with_forged_records_ends_behind_its_last_message(tmp_path: Path) -> None:
    """The search for the end met them first, and took the end of the last one for the log's."""
    for queues in (True, False):
        writer = StoreWriter(tmp_path / f"store-{queues}", file_size=1 << 20)
        for _ in range(50):
            writer.append(body=b"x" * 100)
        before = 100_000
        records = forged(tmp_path / str(queues), writer.position + HEAD_BYTES + before, 10, 10)
        writer.append(body=b"x" * before + records + b"x" * 1000)
        read = ReadOptions((writer.write(queues),))
        assert set(log_ends(read).values()) == {writer.position}


def test_what_is_found_behind_damage_counts_where_a_queue_names_it(tmp_path: Path) -> None:
    """The damaged message's body holds forged records; they are part of the damage."""
    writer = StoreWriter(tmp_path / "store", file_size=1 << 20)
    for _ in range(3):
        writer.append(body=b"x" * 100)
    damaged = writer.append(body=forged(tmp_path, writer.position + HEAD_BYTES, 10, 10, 10))
    after = writer.append(body=b"y" * 100)
    writer.overwrite(damaged, b"\xee" * 50)
    store = writer.write()
    pieces = list(everything(store))
    found = [place for one in pieces if isinstance(one, RecordColumns) for place in one.physical_offsets.tolist()]
    assert found == [place for place in writer.positions if place != damaged]
    assert [(one.physical_offset, one.length) for one in pieces if isinstance(one, Damage)] == [
        (damaged, after - damaged)
    ]
    assert joined(planned(store, 4096)) == found


def test_a_range_of_offsets(writer: StoreWriter) -> None:
    for _ in range(20):
        writer.append()
    third, tenth = writer.positions[3], writer.positions[10]
    store = writer.write()
    for start, end in ((third, tenth), (third - 1, tenth), (third - 40, tenth - 40)):
        splits = planned(store, startOffset=str(start), endOffset=str(end))
        assert offsets_of(splits) == [[offset for offset in writer.positions if start <= offset < end]]
    assert planned(store, startOffset="70000") == []
    assert planned(store, startOffset=str(writer.position)) == []


def test_an_empty_log_has_no_splits(tmp_path: Path) -> None:
    (tmp_path / "commitlog").mkdir()
    assert planned(str(tmp_path)) == []
    with pytest.raises(NoCommitLog):
        planned(str(tmp_path / "absent"))


def test_a_sparse_file_of_a_gibibyte_is_planned_by_what_it_holds(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "store", file_size=1 << 20)
    while writer.position < 800_000:
        writer.append(body=b"x" * 1000)
    store = writer.write()
    with open(Path(store, "commitlog", f"{0:020d}"), "r+b") as file:
        file.truncate(GIBIBYTE)
    splits = planned(store, 200_000)
    assert len(splits) == 5
    assert splits[-1].part.end == writer.position
    assert joined(splits) == writer.positions


def test_ten_terabytes_make_few_tasks_and_a_hundred_thousand_files_none_too_many() -> None:
    """The plan uses names and sizes only: these files do not exist."""
    for files, size in ((10 << 10, GIBIBYTE), (100_000, GIBIBYTE), (100_000, 1 << 20), (160_000, 1 << 26)):
        splits = plan_splits([imagined(files, size)])
        assert len(splits) <= MOST_PARTS
        assert sum(split.part.size_bytes for split in splits) == files * size
        assert all(before.part.end == after.part.begin for before, after in itertools.pairwise(splits))


def test_as_many_parts_as_asked_for() -> None:
    whole = imagined(4, GIBIBYTE)
    assert len(plan_splits([whole])) == 64
    assert len(plan_splits([whole], 1 << 28)) == 16
    assert len(plan_splits([whole, imagined(4, GIBIBYTE)], None, 200)) >= 200
    assert len(plan_splits([imagined(64, 1 << 20)])) == 1


def test_splits_travel_to_tasks() -> None:
    (split,) = plan_splits([imagined(1, 4096)])
    assert pickle.loads(pickle.dumps(split)) == split
    assert split != plan_splits([imagined(1, 4097)])[0]
