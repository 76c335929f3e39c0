"""Messages of live queues in stores: each offset is returned once, from a file or as one to ask brokers for."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.spark.stores import BORN_MS, StoreWriter
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.layouts.queue_entry import ENTRY_BYTES, FILLER_ENTRY
from twisted_mq.spark.errors import NoCommitLog
from twisted_mq.spark.live.pulling import PullSelection, Stretch
from twisted_mq.spark.source.held_queues import HeldQueues
from twisted_mq.spark.source.stores import Store

QUEUE = MessageQueue("Orders", "broker-a", 0)
ROWS = 600
EVERYTHING = PullSelection()


@pytest.fixture
def writer(tmp_path: Path) -> StoreWriter:
    """Queue 0 of Orders in several log files, between others' messages; stored 10 ms after one another."""
    writer = StoreWriter(tmp_path / "store", file_size=1 << 16)
    for number in range(ROWS):
        tags = {"TAGS": "even" if number % 2 == 0 else "odd"}
        writer.append(body=b"x" * (number % 400), properties=tags, born_timestamp=BORN_MS + 10 * number)
        writer.append("Others", queue_id=number % 3, born_timestamp=BORN_MS + 10 * number)
    return writer


def held(*paths: str, broker_name: str = "broker-a") -> HeldQueues:
    return HeldQueues(tuple(Store(path, broker_name) for path in paths))


def pieces(
    found: HeldQueues, start: int, end: int, selection: PullSelection = EVERYTHING
) -> list[int | tuple[int, int]]:
    """Offsets that files gave, and (start, end) of what brokers are asked for, in their order."""
    listed: list[int | tuple[int, int]] = []
    for piece in found.pieces(Stretch(QUEUE, start, end), selection):
        if isinstance(piece, Stretch):
            assert piece.queue == QUEUE
            listed.append((piece.start, piece.end))
        else:
            listed += piece.records.numbers("queue_offset").tolist()
    return listed


def log_files(path: str) -> list[Path]:
    return sorted((Path(path) / "commitlog").iterdir())


def first_in(writer: StoreWriter, log_file: Path) -> int:
    """The first offset of the queue whose record lies in this log file or behind."""
    return sum(place < int(log_file.name) for place in writer.positions[::2])


def test_files_give_what_they_hold_and_leave_the_rest(writer: StoreWriter) -> None:
    path = writer.write()
    assert len(log_files(path)) > 2
    assert pieces(held(path), 0, ROWS) == list(range(ROWS))
    assert pieces(held(path), 17, 18) == [17]
    assert pieces(held(path), 590, 650) == [*range(590, ROWS), (ROWS, 650)]
    assert pieces(held(path), 700, 800) == [(700, 800)]


def test_only_the_stores_of_a_queues_own_broker_are_looked_into(writer: StoreWriter) -> None:
    path = writer.write()
    assert pieces(held(path, broker_name="broker-b"), 0, 5) == [(0, 5)]
    assert held(path, broker_name="broker-b").first_offset(QUEUE) is None


def test_a_store_that_is_gone_leaves_all(tmp_path: Path) -> None:
    nowhere = held(str(tmp_path / "gone"))
    assert pieces(nowhere, 0, 9) == [(0, 9)]
    assert (nowhere.first_offset(QUEUE), nowhere.offset_at(QUEUE, 0)) == (None, None)
    with pytest.raises(NoCommitLog, match="no such directory"):
        nowhere.check()


def test_log_files_that_are_gone_are_left_out(writer: StoreWriter) -> None:
    path = writer.write()
    first, second, third = log_files(path)[:3]
    second.unlink()
    hole = first_in(writer, second), first_in(writer, third)
    assert pieces(held(path), 0, ROWS) == [*range(hole[0]), hole, *range(hole[1], ROWS)]
    first.unlink()
    assert held(path).first_offset(QUEUE) == hole[1]
    assert pieces(held(path), 0, ROWS) == [(0, hole[1]), *range(hole[1], ROWS)]


def test_several_stores_of_one_broker_complete_each_other(writer: StoreWriter, tmp_path: Path) -> None:
    path, copy = writer.write(), str(tmp_path / "copy")
    shutil.copytree(path, copy)
    for number, file in enumerate(log_files(path)):
        (file if number % 2 else Path(copy) / "commitlog" / file.name).unlink()
    assert pieces(held(path, copy), 0, ROWS) == list(range(ROWS))
    assert held(path, copy).first_offset(QUEUE) == 0


def test_what_does_not_prove_itself_is_left_alone(writer: StoreWriter) -> None:
    writer.overwrite(writer.positions[2 * 40] + 4, b"\xff")
    path = writer.write()
    assert pieces(held(path), 30, 50) == [*range(30, 40), (40, 41), *range(41, 50)]


def test_entries_that_lead_to_another_offsets_record_are_left_alone(writer: StoreWriter) -> None:
    path = writer.write()
    (entries,) = (Path(path) / "consumequeue" / "Orders" / "0").iterdir()
    data = bytearray(entries.read_bytes())
    del data[100 * ENTRY_BYTES : 101 * ENTRY_BYTES]
    entries.write_bytes(bytes(data))
    assert pieces(held(path), 0, ROWS) == [(0, ROWS)]


def test_fillers_and_entries_of_nonsense_are_left_out(writer: StoreWriter) -> None:
    path = writer.write()
    (entries,) = (Path(path) / "consumequeue" / "Orders" / "0").iterdir()
    data = bytearray(entries.read_bytes())
    data[: 5 * ENTRY_BYTES] = FILLER_ENTRY * 5
    data[20 * ENTRY_BYTES : 21 * ENTRY_BYTES] = b"\x7f" * ENTRY_BYTES
    entries.write_bytes(bytes(data))
    assert held(path).first_offset(QUEUE) == 5
    assert pieces(held(path), 0, ROWS) == [(0, 5), *range(5, 20), (20, 21), *range(21, ROWS)]


def test_tags_are_selected_by_the_entries(writer: StoreWriter) -> None:
    path = writer.write()
    assert pieces(held(path), 10, 20, PullSelection("odd || other")) == [11, 13, 15, 17, 19]
    assert pieces(held(path), ROWS - 4, ROWS + 9, PullSelection("odd")) == [ROWS - 3, ROWS - 1, (ROWS, ROWS + 9)]


def test_offsets_of_times(writer: StoreWriter) -> None:
    path = writer.write()
    assert held(path).offset_at(QUEUE, 0) == 0
    assert held(path).offset_at(QUEUE, BORN_MS + 2 + 10 * 123) == 123
    assert held(path).offset_at(QUEUE, BORN_MS + 3 + 10 * 123) == 124
    assert held(path).offset_at(QUEUE, BORN_MS + 10 * ROWS) is None
    second = log_files(path)[1]
    log_files(path)[0].unlink()
    assert held(path).offset_at(QUEUE, 0) == first_in(writer, second)


def test_mean_sizes_are_those_of_the_entries(writer: StoreWriter, tmp_path: Path) -> None:
    path = writer.write()
    sizes = [writer.positions[2 * number + 1] - writer.positions[2 * number] for number in range(7, 39)]
    assert held(str(tmp_path / "gone"), path).mean_size(QUEUE, 7) == sum(sizes) / 32
    assert held(path).mean_size(QUEUE, ROWS) is None
    assert held(path, broker_name="broker-b").mean_size(QUEUE, 7) is None
