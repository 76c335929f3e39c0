"""Records in buffers: readers see what is committed, the files get every byte once, an exhausted pool says so."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.storage.conftest import OpenFileStore, config, message, put
from tests.support.batches import batched
from twisted_mq.protocol.layouts.record import BLANK_BYTES
from twisted_mq.storage.config import FlushDiskType
from twisted_mq.storage.errors import PoolExhausted, StoreFull
from twisted_mq.storage.files.system_calls import posix_fallocate
from twisted_mq.storage.flushing.commit_service import CommitService
from twisted_mq.storage.interfaces import GetStatus, PutStatus
from twisted_mq.storage.log.transient_pool import BufferedCommitLog, TransientStorePool

SIZE = 4096
POOLED: dict[str, Any] = {"transient_store_pool_enable": True, "commit_interval_commit_log_ms": 3_600_000}
RECORD = 91 + 6 + 100


def small(**fields: Any) -> Any:
    return message(body=bytes(100), **fields)


def log_at(root: Path, buffers: int = 3, *, fast_fail: bool = False, allocate: Any = posix_fallocate) -> Any:
    pool = TransientStorePool(buffers, SIZE)
    log = BufferedCommitLog(str(root / "log"), SIZE, SIZE, pool, fast_fail=fast_fail, allocate=allocate)
    log.load()
    return log, pool


def write(log: BufferedCommitLog, data: bytes) -> int:
    offset = log.max_offset
    if offset + len(data) > log.limit:
        log.make_room(len(data))
        offset = log.max_offset
    log.view[offset - log.base : offset - log.base + len(data)] = data
    log.max_offset = offset + len(data)
    return offset


def on_disk(root: Path, offset: int, size: int) -> bytes:
    with open(root / "log" / f"{offset - offset % SIZE:020d}", "rb") as file:
        file.seek(offset % SIZE)
        return file.read(size)


def test_nothing_is_in_the_file_or_read_before_its_commit(tmp_path: Path) -> None:
    log, pool = log_at(tmp_path)
    write(log, b"a" * 100)
    assert (log.read(0, 100), on_disk(tmp_path, 0, 100), pool.available) == (None, bytes(100), 2)
    assert log.read_bytes(0, 100) == b""
    assert log.commit() == 100
    assert (bytes(log.read(0, 100)), on_disk(tmp_path, 0, 101)) == (b"a" * 100, b"a" * 100 + b"\0")
    write(log, b"b" * 50)
    assert (log.read(100, 50), bytes(log.read(50, 50)), log.read_bytes(120, 9)) == (None, b"a" * 50, None)
    assert log.read_many((0, 100), (100, 50)) is None
    assert [bytes(one) for one in log.read_many((0, 60), (50, 40)) or ()] == [b"a" * 50, b"a" * 40]
    assert bytes(log.read_bytes(90, 1000)) == b"a" * 10
    assert (log.commit(), log.commit()) == (150, 150)
    assert on_disk(tmp_path, 0, 150) == b"a" * 100 + b"b" * 50


def test_full_files_give_their_buffers_back_without_what_those_held_before(tmp_path: Path) -> None:
    log, pool = log_at(tmp_path)
    for letter in b"abc":
        write(log, bytes([letter]) * 3000)
    assert pool.available == 0
    assert log.commit() == 2 * SIZE + 3000
    assert pool.available == 2
    write(log, b"d" * 2000)
    log.commit()
    assert on_disk(tmp_path, 3 * SIZE, SIZE) == b"d" * 2000 + bytes(SIZE - 2000)
    end = on_disk(tmp_path, SIZE, SIZE)[3000:]
    assert end[:BLANK_BYTES] == (SIZE - 3000).to_bytes(4, "big") + b"\xcb\xd4\x31\x94"
    assert end[BLANK_BYTES:] == bytes(len(end) - BLANK_BYTES)


def test_without_a_buffer_a_file_is_written_through_its_mapping(tmp_path: Path) -> None:
    log, pool = log_at(tmp_path, 1)
    write(log, b"a" * 3000)
    write(log, b"b" * 3000)
    assert (pool.available, on_disk(tmp_path, SIZE, 1), log.read(SIZE, 3000)) == (0, b"b", None)
    write(log, b"c" * 100)
    assert log.commit() == SIZE + 3100
    assert (bytes(log.read(SIZE, 3)), bytes(log.read(SIZE + 3000, 3)), pool.available) == (b"bbb", b"ccc", 1)


def test_fast_failure_lasts_until_a_commit(tmp_path: Path) -> None:
    log, pool = log_at(tmp_path, 1, fast_fail=True)
    write(log, b"a" * 3000)
    for _ in range(2):
        with pytest.raises(PoolExhausted):
            write(log, b"b" * 3000)
    assert (log.commit(), pool.available) == (SIZE, 1)
    assert write(log, b"b" * 3000) == SIZE
    assert (log.commit(), on_disk(tmp_path, SIZE, 3000)) == (SIZE + 3000, b"b" * 3000)


def test_full_disk_gives_the_buffer_back(tmp_path: Path) -> None:
    full: list[bool] = []

    def allocate(descriptor: int, start: int, count: int) -> None:
        if full:
            raise OSError(28, "No space left on device")
        posix_fallocate(descriptor, start, count)

    log, pool = log_at(tmp_path, 2, allocate=allocate)
    write(log, b"a" * 3000)
    full.append(True)
    with pytest.raises(StoreFull):
        write(log, b"b" * 3000)
    assert pool.available == 1
    full.clear()
    assert write(log, b"b" * 3000) == SIZE


def test_file_that_expired_before_its_commit_is_passed_over(tmp_path: Path) -> None:
    log, pool = log_at(tmp_path)
    for letter in b"abc":
        write(log, bytes([letter]) * 3000)
    (path,) = log.files.drop_first(1)
    os.unlink(path)
    os.unlink(log.files.files[0].path)
    assert (log.commit(), pool.available) == (2 * SIZE + 3000, 2)


# In a store


def test_messages_are_visible_with_their_commit(open_store: OpenFileStore) -> None:
    store = open_store(**POOLED)
    put(store, small(), small())
    assert store.get_message("TopicA", 0, 0, 32, 1 << 20, None).status is GetStatus.NO_MESSAGE_IN_QUEUE
    assert store.look_message(0) is None
    assert store.check() == []
    store.dispatch()
    found = store.get_message("TopicA", 0, 0, 32, 1 << 20, None)
    assert (found.status, len(found.records)) == (GetStatus.FOUND, 2)


def test_commit_thread_tells_the_listener(open_store: OpenFileStore) -> None:
    told = threading.Event()
    store = open_store(keywords={"committed": told.set}, **POOLED | {"commit_interval_commit_log_ms": 1})
    put(store, small())
    assert told.wait(10)
    store.dispatch()
    assert store.max_offset_in_queue("TopicA", 0) == 1


def test_synchronous_flush_commits_first(open_store: OpenFileStore) -> None:
    store = open_store(**POOLED, flush_disk_type=FlushDiskType.SYNC_FLUSH)
    done, answers = threading.Event(), []
    (result,) = put(store, small())
    store.when_flushed(result.end_offset, lambda ok: (answers.append(ok), done.set()))
    assert done.wait(10)
    store.dispatch()
    assert (answers, store.max_offset_in_queue("TopicA", 0)) == ([True], 1)


def test_store_closes_with_everything_committed_and_goes_on_in_the_same_file(open_store: OpenFileStore) -> None:
    store = open_store(**POOLED)
    put(store, *[small() for _ in range(30)])
    store.close()
    again = open_store(**POOLED)
    assert (again.recovery_report.actions, again.max_offset_in_queue("TopicA", 0)) == ([], 30)
    put(again, *[small() for _ in range(30)])
    assert again.check() == []
    again.dispatch()
    bodies = again.get_message("TopicA", 0, 25, 5, 1 << 20, None)
    assert (again.max_offset_in_queue("TopicA", 0), len(bodies.records)) == (60, 5)
    again.close()
    plain = open_store()
    assert (plain.recovery_report.actions, plain.max_offset_in_queue("TopicA", 0)) == ([], 60)


def test_exhausted_pool_is_busy_and_recovers(open_store: OpenFileStore) -> None:
    store = open_store(**POOLED, transient_store_pool_size=1, fast_fail_if_no_buffer_in_store_pool=True)
    results = [store.put_message(small()).status for _ in range(25)]
    assert results == [PutStatus.PUT_OK] * 20 + [PutStatus.OS_PAGE_CACHE_BUSY] * 5
    assert store.put_messages(batched([small(), small()])).status is PutStatus.OS_PAGE_CACHE_BUSY
    assert store.check() == []
    (result,) = put(store, small())
    assert (result.queue_offset, result.physical_offset) == (20, SIZE)


def test_kill_before_the_commit_loses_only_what_nobody_saw(open_store: OpenFileStore, tmp_path: Path) -> None:
    store = open_store(**POOLED)
    put(store, small())
    store.check()
    store.dispatch()
    put(store, small(), small())
    copied = (tmp_path / "store" / "commitlog" / ("0" * 20)).read_bytes()
    assert (copied[:RECORD] != bytes(RECORD), copied[RECORD:]) == (True, bytes(SIZE - RECORD))


def test_key_index_waits_for_the_commit(open_store: OpenFileStore) -> None:
    store = open_store(**POOLED)
    put(store, small(properties=b"KEYS\x01k", property_map={"KEYS": "k"}))
    assert list(store.query_message("TopicA", "k", 10, 0, 1 << 60).records) == []
    store.check()
    store.dispatch()
    assert len(store.query_message("TopicA", "k", 10, 0, 1 << 60).records) == 1


# The service


def service(log: BufferedCommitLog, root: Path, now: list[float], **fields: Any) -> tuple[CommitService, list[Any]]:
    events: list[Any] = []
    made = CommitService(
        config(root, **fields), log, events.append, lambda: events.append("committed"), monotonic=lambda: now[0]
    )
    return made, events


def test_commit_waits_for_pages_or_time(tmp_path: Path) -> None:
    log, _ = log_at(tmp_path)
    now = [0.0]
    made, events = service(log, tmp_path, now, commit_commit_log_least_pages=1)
    write(log, b"a" * 3000)
    assert (made.turn(), log.committed_offset, events) == (True, 0, [])
    now[0] = 0.2
    assert (made.turn(), log.committed_offset, events) == (True, 3000, ["committed"])
    write(log, b"b" * 3000)
    assert (made.turn(), log.committed_offset, events) == (True, SIZE + 3000, ["committed"] * 2)
    write(log, b"c")
    log.commit()
    assert (made.turn(), events) == (True, ["committed"] * 3)


def test_failed_commit_ends_the_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, _ = log_at(tmp_path)
    made, events = service(log, tmp_path, [1.0])
    error = OSError(5, "Input/output error")

    def fail(*_: Any) -> int:
        raise error

    write(log, b"a" * 3000)
    monkeypatch.setattr(os, "pwrite", fail)
    made._last_commit = 0.0
    assert (made.turn(), events) == (False, [error])
    made.start()
    made.stop()
