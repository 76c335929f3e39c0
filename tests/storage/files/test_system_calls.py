"""Replacements of calls that only Linux has, and the store's tests without them, as on macOS."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.other_systems import MACOS
from twisted_mq.storage.files import system_calls
from twisted_mq.storage.files.system_calls import (
    data_ranges,
    fsync,
    raise_descriptor_limit,
    sync_file_systems,
    write_blocks,
)

ROOT = Path(__file__).parent.parent.parent.parent
F_FULLFSYNC = 51
BLOCK = 4096

RUN_TESTS = f"{MACOS}\nimport pytest, sys; sys.exit(pytest.main(sys.argv[1:]))"


@pytest.fixture
def descriptor(tmp_path: Path) -> Iterator[int]:
    """Open a sparse file of 64 blocks."""
    opened = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    os.ftruncate(opened, 64 * BLOCK)
    yield opened
    os.close(opened)


def blocks(descriptor: int) -> int:
    return os.fstat(descriptor).st_blocks * 512 // BLOCK


@pytest.mark.parametrize(
    ("first", "count", "taken"),
    [(0, 1, 1), (0, 4 * BLOCK, 4), (BLOCK - 1, 2, 2), (3 * BLOCK, BLOCK, 1), (100, 2 * BLOCK, 3)],
)
def test_blocks_are_taken_by_writing(descriptor: int, first: int, count: int, taken: int) -> None:
    write_blocks(descriptor, first, count)
    assert (blocks(descriptor), os.fstat(descriptor).st_size) == (taken, 64 * BLOCK)


def test_what_is_in_the_blocks_stays(descriptor: int) -> None:
    data = os.urandom(5 * BLOCK)
    os.pwrite(descriptor, data, BLOCK)
    write_blocks(descriptor, 10, 8 * BLOCK)
    assert os.pread(descriptor, 7 * BLOCK, 0) == bytes(BLOCK) + data + bytes(BLOCK)


def test_fsync_goes_past_the_drives_cache_where_the_system_has_that(
    descriptor: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[str, int]] = []
    monkeypatch.setattr(os, "fsync", lambda _: calls.append(("fsync", 0)))
    fsync(descriptor)
    monkeypatch.setattr(fcntl, "F_FULLFSYNC", F_FULLFSYNC, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", lambda _, command: calls.append(("fcntl", command)))
    fsync(descriptor)
    assert calls == [("fsync", 0), ("fcntl", F_FULLFSYNC)]


@pytest.mark.parametrize(("code", "expected"), [(errno.ENOTSUP, ["fsync"]), (errno.EIO, [])])
def test_a_file_system_without_it_gets_plain_fsync_and_other_errors_are_raised(
    descriptor: int, monkeypatch: pytest.MonkeyPatch, code: int, expected: list[str]
) -> None:
    def refuse(*_: int) -> None:
        raise OSError(code, os.strerror(code))

    calls: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda _: calls.append("fsync"))
    monkeypatch.setattr(fcntl, "F_FULLFSYNC", F_FULLFSYNC, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", refuse)
    if expected:
        fsync(descriptor)
    else:
        with pytest.raises(OSError, match=os.strerror(code)):
            fsync(descriptor)
    assert calls == expected


def test_runs_of_data_are_told_by_linux_alone(descriptor: int, monkeypatch: pytest.MonkeyPatch) -> None:
    os.pwrite(descriptor, b"x", 2 * BLOCK)
    os.pwrite(descriptor, b"x", 9 * BLOCK)
    size = 64 * BLOCK
    assert list(data_ranges(descriptor, 0, size)) == [(2 * BLOCK, 3 * BLOCK), (9 * BLOCK, 10 * BLOCK)]
    monkeypatch.setattr(system_calls, "LINUX", False)
    assert list(data_ranges(descriptor, 5, size)) == [(5, size)]
    assert list(data_ranges(descriptor, size, size)) == []


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ((1024, 4096), [(4096, 4096)]),
        ((4096, 4096), []),
        ((256, resource.RLIM_INFINITY), [(10240, resource.RLIM_INFINITY)]),
        ((20000, resource.RLIM_INFINITY), []),
    ],
)
def test_descriptor_limit_is_raised_as_far_as_the_system_lets_it(
    monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int], expected: list[tuple[int, int]]
) -> None:
    set_to: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits)
    monkeypatch.setattr(resource, "setrlimit", lambda _, both: set_to.append(both))
    raise_descriptor_limit()
    assert set_to == expected


def test_store_works_where_the_system_lacks_them() -> None:
    tests = ["tests/storage/test_store_contract.py", "tests/storage/recovery", "tests/storage/log"]
    done = subprocess.run([sys.executable, "-c", RUN_TESTS, *tests], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_file_system_is_put_on_disk_once_for_all_its_directories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").mkdir()
    opened: list[str] = []
    real = os.open
    monkeypatch.setattr(os, "open", lambda path, *rest: opened.append(str(path)) or real(path, *rest))  # type: ignore[func-returns-value]
    assert sync_file_systems([str(tmp_path), str(tmp_path / "a")])
    assert opened == [str(tmp_path / "a")]


def test_a_failure_of_the_file_system_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, close = os.open, os.close

    def closed(*arguments: Any) -> int:
        descriptor = real(*arguments)
        close(descriptor)
        return descriptor

    monkeypatch.setattr(os, "open", closed)
    monkeypatch.setattr(os, "close", lambda descriptor: None)
    with pytest.raises(OSError, match="Bad file descriptor"):
        sync_file_systems([str(tmp_path)])


@pytest.mark.parametrize(("release", "proved"), [("5.7.19-generic", False), ("5.8.0", True), ("6.18.44-fc", True)])
def test_kernels_whose_call_returns_no_errors_prove_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, release: str, proved: bool
) -> None:
    monkeypatch.setattr(system_calls, "_release", lambda: release)
    assert sync_file_systems([str(tmp_path)]) is proved
