"""A disk of 2 MiB that is really full. It is a file system in memory, which only root may mount."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.storage.conftest import START_MS, OpenFileStore, message, put
from twisted_mq.storage.files.disk_space import used_ratio
from twisted_mq.storage.interfaces import GetStatus, PutStatus
from twisted_mq.storage.message_store import FileMessageStore
from twisted_mq.storage.retention import DiskUsage, Needed, Space, remove_file

SIZES = {"mapped_file_size_commit_log": 128 << 10, "mapped_file_size_consume_queue": 20 * 200}
BODY = bytes(2000)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"no file system may be mounted here: {mounted.stderr.strip()}")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


@pytest.fixture
def store(small_disk: Path, open_store: OpenFileStore) -> FileMessageStore:
    return open_store(small_disk / "store", **SIZES, delete_when="")


def fill(store: FileMessageStore) -> int:
    """Put messages until the disk takes no more. Return how many were taken."""
    for taken in range(10_000):
        if store.put_message(message(body=BODY)).status is not PutStatus.PUT_OK:
            store.dispatch()
            return taken
    raise AssertionError("the disk never was full")


def turn(store: FileMessageStore, needed: list[Needed]) -> list[str]:
    """Run one turn of retention, with the disk as it is."""
    ratio = used_ratio(store.config.store_path_root_dir)
    paths = store.retention.expire_log(START_MS, 12, DiskUsage(ratio, ratio), needed)
    paths += [path for step in store.retention.trim() for path in step]
    for path in paths:
        remove_file(path)
    return paths


def first_needed(store: FileMessageStore) -> Needed:
    return Needed("TopicA", 0, 0, store.queue_entries("TopicA", 0, 0, 1)[0][0])


def readable(store: FileMessageStore, first: int, count: int) -> int:
    """Return the number of messages that can be read from an offset on, one after the other."""
    found = 0
    while found < count:
        result = store.get_message("TopicA", 0, first + found, 32, 1 << 20, None)
        if result.status is not GetStatus.FOUND:
            break
        found += len(result.records)
    return found


def test_what_was_taken_before_the_disk_was_full_is_there_and_stays_over_a_start(
    store: FileMessageStore, small_disk: Path, open_store: OpenFileStore
) -> None:
    taken = fill(store)
    assert taken > 500 and readable(store, 0, taken) == taken
    store.close()
    again = open_store(small_disk / "store", **SIZES)
    assert again.max_offset_in_queue("TopicA", 0) == readable(again, 0, taken) == taken


def test_full_disk_takes_what_an_ordered_queue_needs_and_that_is_counted_and_said(
    store: FileMessageStore, caplog: pytest.LogCaptureFixture
) -> None:
    taken = fill(store)
    needed = [first_needed(store)]
    assert turn(store, needed)
    assert store.retention.space in (Space.CRITICAL, Space.FULL)
    minimum = store.min_offset_in_queue("TopicA", 0)
    assert store.deleted_unconsumed() == {("TopicA", 0): minimum} and minimum > 0
    lines = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert any(line.endswith(f"deleted: topic=TopicA queue=0 first=0 messages={minimum}") for line in lines), lines
    assert store.get_message("TopicA", 0, 0, 32, 1 << 20, None).next_begin_offset == minimum
    assert readable(store, minimum, taken - minimum) == taken - minimum
    assert turn(store, needed) == [] and store.retention.space is Space.PLENTY
    (result,) = put(store, message(body=BODY))
    assert result.queue_offset == taken


def test_disk_that_has_room_keeps_what_an_ordered_queue_needs(store: FileMessageStore) -> None:
    put(store, *[message(body=BODY) for _ in range(400)])
    needed = [first_needed(store)]
    assert turn(store, needed) == [] and store.retention.space in (Space.PLENTY, Space.SCARCE)
    assert (store.min_offset_in_queue("TopicA", 0), store.deleted_unconsumed()) == (0, {})
