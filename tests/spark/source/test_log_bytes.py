"""Records at a position of a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark.stores import StoreWriter
from twisted_mq.protocol.errors import RecordError
from twisted_mq.spark.source.stores import Store, list_log_files
from twisted_mq.storage.files import mapped_log
from twisted_mq.storage.files.mapped_log import MappedLog


def open_first(store: str, number: int = 0) -> MappedLog:
    file = list_log_files(Store(store))[number]
    return MappedLog(file.path, file.first_offset)


def test_a_record_proves_itself_by_its_own_offset(writer: StoreWriter) -> None:
    first = writer.append(body=b"one")
    second = writer.append(body=b"two")
    log = open_first(writer.write())
    assert (log.record_at(first).physical_offset, log.record_at(second).physical_offset) == (first, second)
    moved = MappedLog(log.path, 4096)
    with pytest.raises(RecordError, match="says it is at 0, not at 4096"):
        moved.record_at(0)
    assert moved.fault_at(0) == "the record says it is at 0, not at 4096"
    assert log.fault_at(first) == "no fault"


def test_next_record_passes_over_magic_that_is_none(writer: StoreWriter) -> None:
    fake = b"\xda\xa3\x20\xa7" * 20
    writer.append(body=fake)
    second = writer.append(topic="t" * 200)
    log = open_first(writer.write())
    assert log.next_record(1, log.size) == second
    assert log.next_record(second, log.size) == second
    assert log.next_record(second + 1, log.size) is None
    assert log.next_record(1, second) is None
    assert log.next_record(1, second + 1) == second


def test_blank_and_unwritten_bytes(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "store", file_size=512)
    writer.append(body=b"x" * 200)
    end = writer.position
    writer.append(body=b"y" * 200)
    path = writer.write()
    log = open_first(path)
    assert (log.is_blank(end), log.is_blank(0), log.is_blank(511)) == (True, False, False)
    second = open_first(path, 1)
    used = writer.position - 512
    assert second.written_end(0, 512) <= used
    assert second.written_end(used, 512) == used
    assert second.written_end(0, 100) == 100


def test_records_are_found_across_the_chunks_of_a_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = StoreWriter(tmp_path / "store", file_size=8192)
    for _ in range(5):
        writer.append()
    log = open_first(writer.write())
    for chunk in range(1, 120):
        monkeypatch.setattr(mapped_log, "_CHUNK_BYTES", chunk)
        assert log.next_record(1, log.size) == writer.positions[1]
        assert log.written_end(0, log.size) == writer.position - len(b"\0\0")


def test_a_hole_at_the_end_is_known(tmp_path: Path) -> None:
    path = tmp_path / f"{0:020d}"
    path.write_bytes(b"x" * 100)
    assert MappedLog(str(path), 0).data_end == 100
    with open(path, "r+b") as file:
        file.truncate(1 << 24)
    sparse = MappedLog(str(path), 0)
    assert 100 <= sparse.data_end <= 1 << 24
    assert sparse.written_end(0, 1 << 24) == 100
