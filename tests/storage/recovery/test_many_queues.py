"""The start of a store with many queues: what it opens, maps, and puts on disk."""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.storage.conftest import OpenFileStore, SettableClock, message, put
from twisted_mq.storage.errors import DiskFailed
from twisted_mq.storage.message_store import FileMessageStore
from twisted_mq.storage.queues.queue_reader import QueueReader
from twisted_mq.storage.recovery.recovery import SYNCED_ONE_BY_ONE

RECORD = 91 + 6 + 5
"""Bytes of a record of `message()`."""
QUEUES = SYNCED_ONE_BY_ONE + 1


@attrs.define
class Disk:
    """Notes the files that are put on disk one by one, and the calls for whole file systems, which give `answer`."""

    root: Path
    answer: bool = True
    error: OSError | None = None
    files: Counter[str] = attrs.field(factory=Counter)
    calls: list[list[str]] = attrs.field(factory=list)

    def sync(self, descriptor: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        self.files[path.relative_to(self.root).parts[0]] += 1

    def sync_file_systems(self, directories: Collection[str]) -> bool:
        self.calls.append([os.path.basename(path) for path in directories])
        if self.error is not None:
            raise self.error
        return self.answer

    @property
    def keywords(self) -> dict[str, Any]:
        return {"sync": self.sync, "sync_file_systems": self.sync_file_systems}


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path / "store")


Open = Callable[..., FileMessageStore]


@pytest.fixture
def open_on(open_store: OpenFileStore, disk: Disk) -> Open:
    return lambda **fields: open_store(keywords=disk.keywords, **fields)


@pytest.fixture
def left(open_on: Open, disk: Disk, clock: SettableClock) -> Path:
    """A store of many queues, closed; each message came a second after the one before it."""
    store = open_on()
    for number in range(3 * QUEUES):
        put(store, message(queue_id=number % QUEUES))
        clock.now += 1000
    store.close()
    disk.files.clear()
    return disk.root


@pytest.fixture
def killed(left: Path) -> Path:
    """The same, of a process that was killed."""
    (left / "abort").touch()
    return left


def maxima(store: FileMessageStore) -> set[int]:
    return {store.max_offset_in_queue("TopicA", number) for number in range(QUEUES)}


def test_each_queue_is_opened_once_and_only_those_that_the_walk_reaches_are_mapped(
    left: Path, open_on: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: Counter[str] = Counter()
    real = os.open

    def count(path: str, *arguments: Any, **named: Any) -> int:
        if f"{os.sep}consumequeue{os.sep}" in str(path):
            opened[path] += 1
        return real(path, *arguments, **named)

    monkeypatch.setattr(os, "open", count)
    store = open_on(recovery_scan_bytes=2 * RECORD)
    walked = store.recovery_report.records_checked
    assert (walked, len(store._queues._mappings)) == (2, 2)
    assert (len(opened), sorted(opened.values())) == (QUEUES, [1] * (QUEUES - walked) + [2] * walked)
    assert maxima(store) == {3}


def test_a_clean_store_is_not_put_on_disk_again(left: Path, open_on: Open, disk: Disk) -> None:
    store = open_on()
    put(store, message(queue_id=7))
    store.close()
    assert (disk.files["consumequeue"], disk.calls) == (1, [])


def test_after_a_kill_one_call_puts_all_queues_on_disk(killed: Path, open_on: Open, disk: Disk) -> None:
    store = open_on()
    assert (store.recovery_report.clean, disk.calls) == (False, [["consumequeue"]])
    assert (disk.files["consumequeue"], disk.files["commitlog"] > 0) == (0, True)
    store.close()
    assert (disk.files["consumequeue"], maxima(open_on())) == (0, {3})


def test_where_the_system_has_no_such_call_each_file_is_put_on_disk(killed: Path, open_on: Open, disk: Disk) -> None:
    disk.answer = False
    open_on()
    assert (disk.files["consumequeue"], len(disk.calls)) == (QUEUES, 1)


def test_a_disk_that_fails_then_ends_the_start(killed: Path, open_on: Open, disk: Disk) -> None:
    disk.error = OSError(errno.EIO, "bad disk")
    with pytest.raises(DiskFailed):
        open_on()
    disk.error = None
    assert not open_on().recovery_report.clean


def test_few_queues_are_put_on_disk_one_by_one(open_on: Open, disk: Disk) -> None:
    store = open_on()
    put(store, *[message(queue_id=number) for number in range(3)])
    store.close()
    (disk.root / "abort").touch()
    disk.files.clear()
    open_on()
    assert (disk.files["consumequeue"], disk.calls) == (3, [])


def test_only_queues_that_reach_the_end_are_searched_for_the_start_of_the_walk(
    killed: Path, open_on: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checkpoint vouches for all but the last three seconds."""
    searched: list[int] = []
    real = QueueReader.offset_by_time

    def count(self: QueueReader, queue: Any, *arguments: Any) -> int:
        searched.append(queue.queue_id)
        return real(self, queue, *arguments)

    monkeypatch.setattr(QueueReader, "offset_by_time", count)
    store = open_on(recovery_scan_bytes=1)
    assert searched == [QUEUES - 1, QUEUES - 2, QUEUES - 3, QUEUES - 4]
    assert maxima(store) == {3}
