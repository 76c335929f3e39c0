"""Splits cover a store once, begin where records do, and need no full read."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.spark.stores import StoreWriter
from tests.support.captures import STORES, expected_messages
from twisted_mq.spark.errors import NoCommitLog
from twisted_mq.spark.source.log_file import LogFile
from twisted_mq.spark.source.log_stretch import Damage, read_stretch
from twisted_mq.spark.source.options import SMALLEST_SPLIT_BYTES, ReadOptions
from twisted_mq.spark.source.splits import LogSplit, plan_splits


def offsets_of(splits: list[LogSplit]) -> list[list[int]]:
    """Physical offsets of the records of each split."""
    found = []
    for split in splits:
        pieces = read_stretch(LogFile(split.path, split.first_offset), split.start, split.end)
        records = [piece for piece in pieces if not isinstance(piece, Damage)]
        found.append([int(start) + split.first_offset for piece in records for start in piece.spans.starts])
    return found


@pytest.mark.parametrize("store", STORES)
def test_each_record_of_a_recorded_store_is_in_one_split(captured: Callable[[str], str], store: str) -> None:
    splits = plan_splits(ReadOptions(captured(store), split_bytes=SMALLEST_SPLIT_BYTES))
    found = [offset for offsets in offsets_of(splits) for offset in offsets]
    assert found == [message["commitLogOffset"] for message in expected_messages(store)]
    if store in ("st", "livecopy", "cut_tail"):
        assert len(splits) > 20


@pytest.mark.parametrize("queues", [True, False], ids=["with consume queues", "without"])
def test_a_file_is_cut_at_records(writer: StoreWriter, queues: bool) -> None:
    for number in range(100):
        writer.append(queue_id=number % 4, body=b"x" * 200)
    splits = plan_splits(ReadOptions(writer.write(queues), split_bytes=8192))
    assert [split.start for split in splits[1:]] == [split.end for split in splits[:-1]]
    assert (splits[0].start, splits[-1].end) == (0, 65536)
    assert {split.start for split in splits} <= set(writer.positions)
    assert len(splits) == 4
    assert [offset for offsets in offsets_of(splits) for offset in offsets] == writer.positions


def test_a_body_that_looks_like_a_record_is_no_cut_where_queues_are(tmp_path: Path) -> None:
    """Without queues a forged record in a body can be taken for one; with them only what they name is."""
    inner = StoreWriter(tmp_path / "inner")
    writer = StoreWriter(tmp_path / "store")
    writer.append(body=b"x" * 5000)
    head_bytes = 88
    inner.position = writer.position + head_bytes
    inner.append(topic="Forged", body=b"")
    forged = bytes(inner._log[0][writer.position + head_bytes : inner.position])
    writer.append(body=forged)
    writer.append(body=b"z" * 5000)
    splits = plan_splits(ReadOptions(writer.write(), split_bytes=4096))
    assert [offset for offsets in offsets_of(splits) for offset in offsets] == writer.positions


def test_hints_that_are_wrong_are_not_followed(writer: StoreWriter) -> None:
    for _ in range(100):
        writer.append(body=b"x" * 200)
    store = writer.write()
    queue = Path(store, "consumequeue", "Orders", "0", f"{0:020d}")
    entries = bytearray(queue.read_bytes())
    entries[7::20] = bytes(value ^ 1 for value in entries[7::20])
    queue.write_bytes(entries)
    splits = plan_splits(ReadOptions(store, split_bytes=8192))
    assert [offset for offsets in offsets_of(splits) for offset in offsets] == writer.positions


def test_a_range_of_offsets(writer: StoreWriter) -> None:
    for _ in range(20):
        writer.append()
    third, tenth = writer.positions[3], writer.positions[10]
    store = writer.write()
    for start, end in ((third, tenth), (third - 1, tenth), (third - 40, tenth - 40)):
        splits = plan_splits(ReadOptions(store, start_offset=start, end_offset=end))
        assert offsets_of(splits) == [[offset for offset in writer.positions if start <= offset < end]]
    assert plan_splits(ReadOptions(store, start_offset=70000)) == []
    assert plan_splits(ReadOptions(store, start_offset=writer.position)) == []


def test_an_empty_log_has_no_splits(tmp_path: Path) -> None:
    (tmp_path / "commitlog").mkdir()
    assert plan_splits(ReadOptions(str(tmp_path))) == []
    with pytest.raises(NoCommitLog):
        plan_splits(ReadOptions(str(tmp_path / "absent")))


def test_a_sparse_file_of_a_gibibyte_is_planned_by_what_it_holds(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "store", file_size=1 << 20)
    while writer.position < 800_000:
        writer.append(body=b"x" * 1000)
    store = writer.write()
    with open(Path(store, "commitlog", f"{0:020d}"), "r+b") as file:
        file.truncate(1 << 30)
    splits = plan_splits(ReadOptions(store, split_bytes=200_000))
    assert len(splits) == 4
    assert splits[-1].end == 1 << 30
    assert [offset for offsets in offsets_of(splits) for offset in offsets] == writer.positions


def test_splits_travel_to_tasks() -> None:
    split = LogSplit("/data/commitlog/0", 0, 100, 200)
    assert pickle.loads(pickle.dumps(split)) == split
    assert split != LogSplit("/data/commitlog/0", 0, 100, 201)
