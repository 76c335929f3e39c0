"""Which files a store has, and what begins at a position of one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark.stores import StoreWriter
from twisted_mq.protocol.errors import RecordError
from twisted_mq.spark.errors import LogFileGone, NoCommitLog
from twisted_mq.spark.source.log_file import LogFile, list_log_files
from twisted_mq.storage.files import mapped_log


def open_first(store: str) -> LogFile:
    file = list_log_files(store)[0]
    return LogFile(file.path, file.first_offset)


def test_files_are_listed_in_order_and_others_are_passed_over(tmp_path: Path) -> None:
    log = tmp_path / "commitlog"
    log.mkdir()
    for name, content in (("00000000000000000100", b"x" * 100), ("00000000000000000000", b"y"), ("notes.txt", b"z")):
        (log / name).write_bytes(content)
    (log / "00000000000000000200").write_bytes(b"")
    expected = [
        (str(log / "00000000000000000000"), 0, 1),
        (str(log / "00000000000000000100"), 100, 100),
    ]
    for path in (tmp_path, log):
        assert [(file.path, file.first_offset, file.size) for file in list_log_files(str(path))] == expected


@pytest.mark.parametrize(("made", "reason"), [([], "no such directory"), (["store"], "holds no commitlog directory")])
def test_a_path_that_is_no_store_says_what_to_give(tmp_path: Path, made: list[str], reason: str) -> None:
    for name in made:
        (tmp_path / name).mkdir()
    path = str(tmp_path / "store")
    with pytest.raises(NoCommitLog) as raised:
        list_log_files(path)
    assert str(raised.value) == (
        f"{path}: {reason}; give the directory that holds commitlog/ (storePathRootDir), or commitlog/ itself"
    )


def test_a_deleted_file_is_named(tmp_path: Path) -> None:
    path = str(tmp_path / "00000000000000000000")
    with pytest.raises(LogFileGone, match="gone since the read was planned"):
        LogFile(path, 0)


def test_a_record_proves_itself_by_its_own_offset(writer: StoreWriter) -> None:
    first = writer.append(body=b"one")
    second = writer.append(body=b"two")
    log = open_first(writer.write())
    assert (log.record_at(first).physical_offset, log.record_at(second).physical_offset) == (first, second)
    moved = LogFile(log.path, 4096)
    with pytest.raises(RecordError, match="says it lies at 0, not at 4096"):
        moved.record_at(0)
    assert moved.fault_at(0) == "the record says it lies at 0, not at 4096"
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
    last = list_log_files(path)[1]
    second = LogFile(last.path, last.first_offset)
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
    assert LogFile(str(path), 0).data_end == 100
    with open(path, "r+b") as file:
        file.truncate(1 << 24)
    sparse = LogFile(str(path), 0)
    assert 100 <= sparse.data_end <= 1 << 24
    assert sparse.written_end(0, 1 << 24) == 100
