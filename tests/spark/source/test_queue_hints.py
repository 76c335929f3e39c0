"""What consume queues say of places near an offset."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.spark.stores import StoreWriter
from twisted_mq.protocol.layouts.queue_entry import BATCH_ENTRY, ENTRY_BYTES, FILLER_ENTRY, pack_entry
from twisted_mq.spark.source.log_file import LogFile, list_log_files
from twisted_mq.spark.source.queue_hints import QUEUES_ASKED, QueueHints
from twisted_mq.storage.queues.queue_files import BEYOND, QueueFiles


def test_an_entry_is_found_between_fillers_and_unwritten_ones(tmp_path: Path) -> None:
    entries = [pack_entry(offset, 100, 0) for offset in (500, 700, 900)]
    (tmp_path / f"{0:020d}").write_bytes(FILLER_ENTRY * 4 + b"".join(entries) + bytes(20 * 9))
    queue = QueueFiles("Orders", 0, str(tmp_path))
    asked = (-1, 0, 500, 501, 900, 901)
    assert [queue.record_from(offset) for offset in asked] == [-1, 500, 500, 700, 900, BEYOND]


def test_batch_queues_name_their_records_too(tmp_path: Path) -> None:
    directory = tmp_path / "batchconsumequeue" / "Batches" / "0"
    directory.mkdir(parents=True)
    entries = [BATCH_ENTRY.pack(number * 100, 100, 0, 5, number * 3, 3, -1, 0) for number in range(4)]
    (directory / f"{0:020d}").write_bytes(b"".join(entries) + bytes(46))
    hints = QueueHints(str(tmp_path))
    assert [list(hints.records_near(offset, 1000)) for offset in (0, 101, 300, 301)] == [[0], [200], [300], []]


def test_empty_and_missing_files_have_no_entries(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / f"{0:020d}").write_bytes(b"")
    for name in ("empty", "missing"):
        assert QueueFiles("Orders", 0, str(tmp_path / name)).record_from(0) == BEYOND


def test_a_queue_whose_file_is_deleted_meanwhile_gives_no_hint(tmp_path: Path) -> None:
    for queue_id, offsets in (("0", (0, 200, 300, 400)), ("1", (100, 500))):
        directory = tmp_path / "consumequeue" / "Orders" / queue_id
        directory.mkdir(parents=True)
        for first in range(0, len(offsets), 2):
            entries = (pack_entry(offset, 100, 0) for offset in offsets[first : first + 2])
            (directory / f"{first * ENTRY_BYTES:020d}").write_bytes(b"".join(entries))
    hints = QueueHints(str(tmp_path))
    assert list(hints.records_near(1, 1 << 40)) == [200, 100]
    hints = QueueHints(str(tmp_path))
    (tmp_path / "consumequeue" / "Orders" / "0" / f"{0:020d}").unlink()
    assert list(hints.records_near(1, 1 << 40)) == [100]


def test_each_queue_names_its_next_record(writer: StoreWriter) -> None:
    for number in range(9):
        writer.append(queue_id=number % 3)
    hints = QueueHints(writer.write())
    assert sorted(hints.records_near(writer.positions[4], 1 << 40)) == writer.positions[4:7]
    assert sorted(hints.records_near(writer.positions[4], writer.positions[6])) == writer.positions[4:6]
    assert list(hints.records_near(writer.position, 1 << 40)) == []


def test_only_some_queues_are_asked(writer: StoreWriter) -> None:
    for number in range(2 * QUEUES_ASKED):
        writer.append(queue_id=number)
    assert len(list(QueueHints(writer.write()).records_near(0, 1 << 40))) == QUEUES_ASKED


def test_a_store_without_queues_has_no_hints(tmp_path: Path) -> None:
    assert list(QueueHints(str(tmp_path)).records_near(0, 1 << 40)) == []


@pytest.mark.parametrize("store", ["st", "livecopy", "cut_tail"])
def test_hints_of_recorded_stores_name_records(captured: Callable[[str], str], store: str) -> None:
    hints = QueueHints(captured(store))
    files = list_log_files(captured(store))
    for file in files[:-1]:
        log = LogFile(file.path, file.first_offset)
        middle = file.first_offset + file.size // 2
        found = list(hints.records_near(middle, file.first_offset + file.size))
        assert found
        assert all(log.is_record(offset - file.first_offset) for offset in found)
