"""The log's next file, created in advance: used by a roll, deleted if it is not used, never in the way."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.storage.conftest import OpenFileStore, message, put
from twisted_mq.storage.files.next_file import NextFile
from twisted_mq.storage.files.system_calls import posix_fallocate, touch

SIZE = 1 << 20
STEP = 1 << 16
AHEAD: dict[str, Any] = {
    "mapped_file_size_commit_log": SIZE,
    "commit_log_allocation_step": STEP,
    "commit_log_prepare_bytes": 4 * STEP,
}


def make(root: Path, **fields: Any) -> NextFile:
    return NextFile(str(root), SIZE, STEP, **({"pause_seconds": 0.0} | fields))


def names(root: Path) -> list[int]:
    return sorted(int(path.name) for path in root.iterdir())


def blocks(path: Path) -> int:
    return path.stat().st_blocks * 512


def test_file_is_made_with_its_first_blocks_and_taken_once(tmp_path: Path) -> None:
    ahead = make(tmp_path)
    ahead.request(SIZE)
    ahead.request(SIZE)
    made = ahead.take(SIZE)
    assert made is not None
    assert (made.first_offset, made.size, made.allocated, made.wrote) == (SIZE, SIZE, STEP, 0)
    assert (names(tmp_path), blocks(Path(made.path))) == ([SIZE], STEP)
    assert ahead.take(SIZE) is None
    ahead.discard()
    assert names(tmp_path) == [SIZE]


def test_file_that_nobody_takes_is_deleted(tmp_path: Path) -> None:
    ahead = make(tmp_path)
    ahead.request(SIZE)
    ahead.discard()
    ahead.discard()
    assert names(tmp_path) == []
    ahead.request(SIZE)
    assert ahead.take(2 * SIZE) is None
    assert names(tmp_path) == []


def test_full_disk_leaves_it_to_the_roll(tmp_path: Path) -> None:
    def refuse(*_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    ahead = make(tmp_path, allocate=refuse)
    ahead.request(SIZE)
    assert (ahead.take(SIZE), names(tmp_path)) == (None, [])


def test_file_in_the_way_leaves_it_to_the_roll(tmp_path: Path) -> None:
    (tmp_path / f"{SIZE:020d}").write_bytes(b"x")
    ahead = make(tmp_path)
    ahead.request(SIZE)
    assert (ahead.take(SIZE), names(tmp_path)) == (None, [SIZE])


def test_warm_file_has_all_its_blocks(tmp_path: Path) -> None:
    synced: list[int] = []
    done = threading.Event()

    def sync(descriptor: int) -> None:
        synced.append(descriptor)
        if len(synced) == 2:
            done.set()

    ahead = make(tmp_path, warm_pages=128, sync=sync)
    ahead.request(0)
    assert done.wait(10)
    made = ahead.take(0)
    assert made is not None
    assert (made.allocated, blocks(Path(made.path)), bytes(made.view[:8])) == (SIZE, SIZE, bytes(8))


def test_warming_ends_where_the_file_is_needed_now(tmp_path: Path) -> None:
    ahead = make(tmp_path, warm_pages=0, pause_seconds=3600)
    ahead.request(0)
    made = ahead.take(0)
    assert made is not None
    assert made.allocated in (STEP, SIZE)


def test_pages_are_touched_by_hand_where_the_kernel_is_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twisted_mq.storage.files.system_calls.MADV_POPULATE_WRITE", 0x7FFF)
    ahead = make(tmp_path)
    ahead.request(0)
    made = ahead.take(0)
    assert made is not None
    made.reserve(SIZE, SIZE)
    touch(made.view, 0, SIZE)
    assert bytes(made.view) == bytes(SIZE)


# In a store


def test_roll_takes_the_file_made_ahead(open_store: OpenFileStore, tmp_path: Path) -> None:
    beginners: list[str] = []

    def allocate(descriptor: int, start: int, count: int) -> None:
        if start == 0 and count == STEP:
            beginners.append(threading.current_thread().name)
        posix_fallocate(descriptor, start, count)

    store = open_store(**AHEAD, keywords={"allocate": allocate}, consume_queue_allocation_step=20)
    put(store, *[message(body=bytes(10_000)) for _ in range(60)])
    assert names(tmp_path / "store" / "commitlog") == [0]
    results = put(store, *[message(body=bytes(10_000)) for _ in range(60)])
    assert results[-1].physical_offset > SIZE
    assert names(tmp_path / "store" / "commitlog") == [0, SIZE]
    assert beginners == ["MainThread", "store-next-file"]


def test_clean_stop_deletes_the_file_made_ahead(open_store: OpenFileStore, tmp_path: Path) -> None:
    store = open_store(**AHEAD)
    put(store, *[message(body=bytes(10_000)) for _ in range(90)])
    store.close()
    assert names(tmp_path / "store" / "commitlog") == [0]
    assert open_store(**AHEAD).recovery_report.actions == []


def test_file_made_ahead_is_no_finding_after_a_kill(open_store: OpenFileStore, tmp_path: Path) -> None:
    store = open_store(**AHEAD)
    put(store, *[message(body=bytes(10_000)) for _ in range(90)])
    end = store.max_physical_offset()
    store.close()
    log = tmp_path / "store" / "commitlog"
    (tmp_path / "store" / "abort").write_text("1")
    with open(log / f"{SIZE:020d}", "wb") as file:
        file.truncate(SIZE)
    again = open_store(**AHEAD)
    assert (again.recovery_report.actions, again.max_physical_offset(), names(log)) == ([], end, [0])


def test_short_files_are_not_made_ahead(open_store: OpenFileStore, tmp_path: Path) -> None:
    store = open_store()
    put(store, message(body=bytes(3000)))
    assert names(tmp_path / "store" / "commitlog") == [0]


def test_warm_store_makes_the_next_file_from_the_start(open_store: OpenFileStore, tmp_path: Path) -> None:
    store = open_store(**AHEAD, warm_mapped_file_enable=True)
    put(store, message())
    store.close()
    assert names(tmp_path / "store" / "commitlog") == [0]
