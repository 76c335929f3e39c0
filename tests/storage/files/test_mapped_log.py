"""Finding records in a mapped log file; tests/spark/source/test_log_bytes.py also tests how damage is recognized."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.storage.conftest import OpenFileStore, message, put
from twisted_mq.protocol.errors import RecordError
from twisted_mq.storage.files.mapped_log import MappedLog

RECORD = 91 + 6 + 100


@pytest.fixture
def log(open_store: OpenFileStore, tmp_path: Path) -> MappedLog:
    put(open_store(), *[message(body=bytes([number]) * 100) for number in range(3)])
    return MappedLog(str(tmp_path / "store" / "commitlog" / f"{0:020d}"), 0)


def test_a_record_is_one_only_where_it_says_it_lies(log: MappedLog) -> None:
    assert log.record_at(RECORD).queue_offset == 1
    with pytest.raises(RecordError, match=r"the record says it is at 197, not at 1197"):
        MappedLog(log.path, 1000).record_at(RECORD)


def test_marks_are_where_a_magic_follows(log: MappedLog) -> None:
    assert list(log.marks(0, log.size)) == [0, RECORD, 2 * RECORD]
    assert list(log.marks(1, 2 * RECORD)) == [RECORD]
    assert log.next_record(1, log.size) == RECORD
    assert MappedLog(log.path, 1000).next_record(0, log.size) is None


def test_written_bytes_end_before_the_zeros(log: MappedLog) -> None:
    assert log.written_end(0, log.size) == 3 * RECORD - 2
    assert log.fault_at(3 * RECORD) == "magic 0x00000000 is not a message's"


def test_missing_and_empty_files_are_no_logs(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        MappedLog(str(tmp_path / "none"), 0)
    (tmp_path / "empty").touch()
    with pytest.raises(ValueError, match="empty"):
        MappedLog(str(tmp_path / "empty"), 0)
