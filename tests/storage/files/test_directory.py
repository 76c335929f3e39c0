"""The lock and abort files of a store directory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.storage.conftest import OpenFileStore, message, put
from twisted_mq.storage.errors import StoreLocked, StoreUnwritable
from twisted_mq.storage.files.directory import DirectoryLock, StoreDirectory
from twisted_mq.storage.files.paths import StorePaths

TRY_LOCK = """
import fcntl, sys
with open(sys.argv[1], "r+b") as file:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
    except OSError:
        print("refused")
    else:
        print("locked")
"""


def try_in_another_process(path: Path) -> str:
    """Return the result of another process that locks like Java's FileChannel.tryLock(0, 1, false)."""
    run = subprocess.run([sys.executable, "-c", TRY_LOCK, str(path)], capture_output=True, text=True, check=True)
    return run.stdout.strip()


def test_second_store_in_the_same_process_is_refused(open_store: OpenFileStore, tmp_path: Path) -> None:
    store = open_store()
    put(store, message())
    with pytest.raises(StoreLocked) as caught:
        open_store()
    assert str(caught.value) == (
        f"{tmp_path}/store/lock: locked by a running broker; stop that broker or use another storePathRootDir for this one"
    )
    assert try_in_another_process(tmp_path / "store" / "lock") == "refused"
    store.close()
    assert open_store().max_offset_in_queue("TopicA", 0) == 1


def test_link_to_the_directory_is_the_same_directory(open_store: OpenFileStore, tmp_path: Path) -> None:
    open_store()
    (tmp_path / "link").symlink_to(tmp_path / "store")
    with pytest.raises(StoreLocked):
        open_store(tmp_path / "link")


def test_another_process_is_refused_and_let_in_after_close(open_store: OpenFileStore, tmp_path: Path) -> None:
    store = open_store()
    lock = tmp_path / "store" / "lock"
    assert (try_in_another_process(lock), lock.read_bytes()) == ("refused", b"lock")
    store.close()
    assert try_in_another_process(lock) == "locked"


def test_lock_of_another_process_is_respected(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.write_bytes(b"lock")
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import fcntl,sys; f=open(sys.argv[1],'r+b'); fcntl.lockf(f,fcntl.LOCK_EX,1,0); print(flush=True); input()",
            str(path),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None
    holder.stdout.readline()
    with pytest.raises(StoreLocked):
        DirectoryLock(str(path)).acquire()
    holder.communicate(b"\n")
    lock = DirectoryLock(str(path))
    lock.acquire()
    lock.release()
    lock.release()


def test_directory_that_is_a_file_is_refused_with_advice(tmp_path: Path) -> None:
    (tmp_path / "store").write_bytes(b"")
    with pytest.raises(StoreUnwritable) as caught:
        StoreDirectory(StorePaths(str(tmp_path / "store"))).open()
    assert str(caught.value) == (
        f"{tmp_path}/store: not writable (File exists); check owner and permissions, or set another storePathRootDir"
    )


def test_directory_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StoreUnwritable, match="Not a directory"):
        StoreDirectory(StorePaths(str(tmp_path / "file" / "store"))).open()


def test_lock_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "lock").mkdir()
    with pytest.raises(StoreUnwritable, match="Is a directory"):
        DirectoryLock(str(tmp_path / "lock")).acquire()


def test_failed_write_frees_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: object) -> int:
        raise OSError(30, "Read-only file system")

    lock = DirectoryLock(str(tmp_path / "lock"))
    monkeypatch.setattr(os, "pwrite", refuse)
    with pytest.raises(StoreUnwritable, match="Read-only file system"):
        lock.acquire()
    monkeypatch.undo()
    lock.acquire()
    lock.release()


def test_abort_file_says_whether_the_last_broker_closed(tmp_path: Path) -> None:
    directory = StoreDirectory(StorePaths(str(tmp_path)))
    answers = []
    for clean in (True, False, True):
        answers.append(directory.open())
        directory.mark_running()
        assert (tmp_path / "abort").read_text() == str(os.getpid())
        directory.close(clean=clean)
    assert answers == [True, True, False]
    assert not (tmp_path / "abort").exists()


def test_start_twice_and_close_twice_are_harmless(open_store: OpenFileStore) -> None:
    store = open_store()
    store.start()
    put(store, message())
    store.close()
    store.close()
