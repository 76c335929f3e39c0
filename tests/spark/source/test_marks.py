"""Streams and batches tell what is not there any more; a store that was moved goes on where it was."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from tests.spark.source.test_stream_reader import ALL, read, reader
from tests.spark.stores import StoreWriter
from twisted_mq.spark.errors import DataLost
from twisted_mq.spark.source.marks import is_kept, mark_at, parse_mark
from twisted_mq.spark.source.options import read_options
from twisted_mq.spark.source.planning import log_ends, plan_ranges
from twisted_mq.spark.source.store_reader import StoreReader
from twisted_mq.spark.source.stores import Store, list_log_files
from twisted_mq.spark.source.stream_reader import Offset


def filled(root: Path, count: int, body: bytes = b"body", file_size: int = 4096) -> StoreWriter:
    writer = StoreWriter(root, file_size=file_size)
    for _ in range(count):
        writer.append(body=body)
    writer.write()
    return writer


def at_end(*paths: str) -> Offset:
    """The offset of a stream that has read everything, as its checkpoint keeps it."""
    source = reader(*paths)
    return json.loads(json.dumps(source.latestOffset(source.initialOffset(), ALL)))


@pytest.mark.parametrize("queues", [True, False], ids=["queues", "log alone"])
def test_a_mark_has_the_last_record_before_any_byte(tmp_path: Path, queues: bool) -> None:
    writer = StoreWriter(tmp_path / "store", file_size=2048)
    for number in range(12):
        writer.append(body=b"x" * (31 * number))
    store = Store(writer.write(queues))
    files = list_log_files(store)
    for reached in range(1, writer.position, 37):
        mark = mark_at(store, files, reached)
        assert mark.last is not None
        assert mark.last.offset == max(offset for offset in writer.positions if offset < reached)
        assert is_kept(store, files, mark.last) is True
        assert parse_mark(json.loads(json.dumps(mark.as_json()))) == mark
    assert mark_at(store, files, 0).last is None


@pytest.mark.parametrize("more", [0, 10, 40], ids=["shorter", "still shorter", "longer again"])
def test_a_log_that_became_shorter_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture, more: int) -> None:
    old = filled(tmp_path / "store", 100)
    start = at_end(str(old.root))
    writer = StoreWriter(old.root, file_size=4096)
    for number in range(70 + more):
        writer.append(body=b"body" if number < 70 else b"news")
    for file in (old.root / "commitlog").iterdir():
        file.unlink()
    store = writer.write()
    told = f"up to physical offset {old.position}, " + (
        f"the log ends at {writer.position}: {old.position - writer.position} bytes that were read are not there"
        if more < 30
        else f"the record at {old.positions[-1]} has changed"
    )
    with pytest.raises(
        DataLost, match=rf"store {store}: .*{told}; to continue without them, read with failOnDataLoss=false"
    ):
        reader(store).latestOffset(start, ALL)
    source = reader(store, failOnDataLoss="false")
    with caplog.at_level(logging.WARNING):
        end = source.latestOffset(start, ALL)
    assert (read(source, start, end), told in caplog.text) == (writer.positions, True)
    with pytest.raises(DataLost, match=told):
        reader(store).partitions(start, end)


def test_a_batch_that_is_planned_again_needs_the_records_of_its_end(tmp_path: Path) -> None:
    store = str(filled(tmp_path / "store", 20).root)
    start, end = reader(store).initialOffset(), at_end(store)
    filled(tmp_path / "store", 20, b"head")
    with pytest.raises(DataLost, match="has changed"):
        reader(store).partitions(start, end)


def test_a_restored_backup_with_other_records_at_the_same_offsets(tmp_path: Path) -> None:
    writer = filled(tmp_path / "store", 100)
    start = at_end(str(writer.root))
    other = filled(tmp_path / "store", 150, b"news")
    with pytest.raises(DataLost, match=f"the record at {writer.positions[-1]} has changed"):
        reader(str(other.root)).latestOffset(start, ALL)
    source = reader(str(other.root), failOnDataLoss="false")
    assert read(source, start, source.latestOffset(start, ALL)) == other.positions


def test_a_moved_store_goes_on_where_it_was(tmp_path: Path) -> None:
    writer = filled(tmp_path / "old", 46)
    start = at_end(str(writer.root))
    writer.root = writer.root.rename(tmp_path / "new")
    for _ in range(5):
        writer.append()
    source = reader(writer.write())
    end = source.latestOffset(start, ALL)
    assert read(source, start, end) == writer.positions[46:]
    assert list(end) == [str(writer.root)]
    assert source.latestOffset(end, ALL) == end
    writer.root = writer.root.rename(tmp_path / "newer")
    assert read(reader(str(writer.root)), start, end) == writer.positions[46:]


def test_stores_that_changed_places(tmp_path: Path) -> None:
    writers = {name: filled(tmp_path / name / "store", 20, name.encode()) for name in "ab"}
    start = at_end(f"{tmp_path}/*/store")
    (tmp_path / "a").rename(tmp_path / "c")
    (tmp_path / "b").rename(tmp_path / "a")
    (tmp_path / "c").rename(tmp_path / "b")
    writers["a"].root, writers["b"].root = writers["b"].root, writers["a"].root
    for _ in range(3):
        writers["a"].append(body=b"a")
    writers["a"].write()
    source = reader(f"{tmp_path}/*/store")
    assert read(source, start, source.latestOffset(start, ALL)) == writers["a"].positions[20:]


def test_copies_of_one_log_are_read_each(tmp_path: Path) -> None:
    """As a master's and its slave's."""
    for name in "ab":
        filled(tmp_path / name / "store", 10)
    start = at_end(f"{tmp_path}/*/store")
    writer = filled(tmp_path / "b" / "store", 14)
    source = reader(f"{tmp_path}/*/store")
    assert read(source, start, source.latestOffset(start, ALL)) == writer.positions[10:]


def test_names_of_brokers_tell_copies_apart(tmp_path: Path) -> None:
    filled(tmp_path / "a", 10)
    source = reader(str(tmp_path / "a"), brokerName="a")
    start = source.latestOffset(source.initialOffset(), ALL)
    (tmp_path / "a").rename(tmp_path / "b")
    moved = reader(str(tmp_path / "b"), brokerName="a")
    assert read(moved, start, moved.latestOffset(start, ALL)) == []
    with pytest.raises(DataLost, match="and is not there"):
        reader(str(tmp_path / "b"), brokerName="b").latestOffset(start, ALL)


def test_a_store_that_is_gone_is_told(tmp_path: Path) -> None:
    for name in "ab":
        filled(tmp_path / name / "store", 10, name.encode())
    start = at_end(f"{tmp_path}/*/store")
    (tmp_path / "b").rename(tmp_path / "away")
    for file in (tmp_path / "away" / "store" / "commitlog").iterdir():
        file.unlink()
    path = f"{tmp_path}/[ab]/store"
    with pytest.raises(DataLost, match=f"store {tmp_path}/b/store was read up to physical offset .* and is not there"):
        reader(path).latestOffset(start, ALL)
    source = reader(path, failOnDataLoss="false")
    assert source.latestOffset(start, ALL) == start


def test_a_checkpoint_of_an_earlier_release_goes_on(tmp_path: Path) -> None:
    writer = filled(tmp_path / "store", 30)
    store = str(writer.root)
    source = reader(store)
    end = source.latestOffset({store: writer.positions[20]}, ALL)
    assert read(source, {store: writer.positions[20]}, end) == writer.positions[20:]
    assert read(source, {store: 0}, {store: writer.positions[20]}) == writer.positions[:20]
    with pytest.raises(DataLost, match=f"the log ends at {writer.position}"):
        source.latestOffset({store: writer.position + 1}, ALL)


def test_a_store_that_a_pattern_finds_after_load_is_not_part_of_the_batch(tmp_path: Path) -> None:
    filled(tmp_path / "a" / "store", 3)
    options = read_options({"path": f"{tmp_path}/*/store"})
    planned = StoreReader(options, ["physicalOffset"], log_ends(options))
    filled(tmp_path / "b" / "store", 3)
    assert {split.part.store.uri for split in planned.partitions()} == {f"{tmp_path}/a/store"}  # type: ignore[union-attr]
    ends = log_ends(options)
    (tmp_path / "b").rename(tmp_path / "away")
    gone = read_options({"path": f"{tmp_path}/[ab]/store"})
    with pytest.raises(DataLost, match=f"store {tmp_path}/b/store was deleted since the read was planned"):
        plan_ranges(gone, ends)
    lenient = read_options({"path": f"{tmp_path}/[ab]/store", "failOnDataLoss": "false"})
    assert [part.store.uri for part in plan_ranges(lenient, ends)] == [f"{tmp_path}/a/store"]
