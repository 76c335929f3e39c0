"""Reading a store's files without its lock, and checking them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.storage.conftest import OpenFileStore, message, put
from twisted_mq.storage.check import check_store
from twisted_mq.storage.errors import NoStore
from twisted_mq.storage.interfaces import Inconsistency
from twisted_mq.storage.store_reader import StoreReader

RECORD = 91 + 6 + 100
PER_FILE = 4096 // RECORD


@pytest.fixture
def root(open_store: OpenFileStore, tmp_path: Path) -> Path:
    store = open_store()
    put(store, *[message(body=bytes([number]) * 100) for number in range(2 * PER_FILE + 3)])
    return tmp_path / "store"


def numbers(reader: StoreReader) -> list[int]:
    return [one.body[0] for one in reader.messages()]


def overwrite(path: Path, position: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        file.write(data)


def test_store_is_read_while_a_broker_writes(root: Path, open_store: OpenFileStore) -> None:
    reader = StoreReader(str(root))
    assert numbers(reader) == list(range(2 * PER_FILE + 3))
    assert (reader.min_offset, reader.problems) == (0, [])
    (queue,) = reader.queues()
    assert (queue.topic, queue.queue_id, queue.min_offset, queue.max_offset) == ("TopicA", 0, 0, 2 * PER_FILE + 3)
    assert next(iter(queue.entries())) == (0, (0, RECORD, 0))
    assert [queue.entry(offset) for offset in (-1, 2 * PER_FILE + 3)] == [None, None]


def test_stored_bytes_are_given_whole(root: Path) -> None:
    found = list(StoreReader(str(root)).records())
    assert [(offset, len(record)) for offset, record in found[:2]] == [(0, RECORD), (RECORD, RECORD)]
    assert all(record.readonly for _, record in found)


def test_nothing_is_changed_or_locked(root: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(root, copy)
    for directory, _, names in os.walk(copy):
        for name in names:
            os.chmod(os.path.join(directory, name), 0o444)
    before = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    numbers(StoreReader(str(copy)))
    assert check_store(str(copy)) == []
    assert {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()} == before


def test_reading_goes_on_behind_damage(root: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(root, copy)
    overwrite(copy / "commitlog" / f"{0:020d}", 3 * RECORD + 120, b"\xff")
    overwrite(copy / "commitlog" / f"{0:020d}", 7 * RECORD, bytes(RECORD))
    overwrite(copy / "commitlog" / f"{4096:020d}", 4, b"\0")
    reader = StoreReader(str(copy))
    assert numbers(reader) == [n for n in range(2 * PER_FILE + 3) if n not in (3, 7, PER_FILE)]
    log = str(copy / "commitlog")
    assert [(problem.path, problem.offset) for problem in reader.problems] == [
        (log, 3 * RECORD),
        (log, 7 * RECORD),
        (log, 4096),
    ]
    assert reader.problems[0].problem.startswith("the body's CRC is ")
    assert reader.problems[1].problem == f"nothing is written here, the next record is at {8 * RECORD}"
    assert [problem.problem.split(" ")[0] for problem in check_store(str(copy))] == [
        "damaged",
        "nothing",
        "damaged",
        *["leads"] * 3,
    ]


def test_directory_without_a_store(tmp_path: Path) -> None:
    with pytest.raises(NoStore) as caught:
        StoreReader(str(tmp_path))
    assert str(caught.value) == (
        f"{tmp_path}: has no store: the directory commitlog is missing; use the storePathRootDir of a broker"
    )


def test_empty_store(tmp_path: Path) -> None:
    (tmp_path / "commitlog").mkdir()
    assert (numbers(StoreReader(str(tmp_path))), check_store(str(tmp_path))) == ([], [])


def test_missing_and_odd_files_are_named(root: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(root, copy)
    log, queue = copy / "commitlog", copy / "consumequeue" / "TopicA" / "0"
    (log / f"{4096:020d}").unlink()
    with (queue / f"{200:020d}").open("ab") as file:
        file.write(b"x")
    found = check_store(str(copy))
    assert Inconsistency(str(log / f"{8192:020d}"), 8192, "the file before it is missing, at 4096") in found
    assert Inconsistency(str(queue / f"{200:020d}"), 200, "is 201 bytes long, not 200") in found


def test_lost_queue_of_a_known_topic_is_named(root: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(root, copy)
    shutil.rmtree(copy / "consumequeue")
    found = check_store(str(copy))
    assert (len(found), found[0]) == (
        2 * PER_FILE + 3,
        Inconsistency("TopicA/0", 0, "no entry leads to the record at 0"),
    )
    (copy / "config" / "topics.json").write_text('{"topicConfigTable":{}}')
    assert check_store(str(copy)) == []


def test_inconsistency_reads_as_one_line() -> None:
    assert str(Inconsistency("/log", 12, "is odd")) == "/log at 12: is odd"
