"""Files of one directory as one run of bytes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from twisted_mq.storage.files.mapped_file_queue import MappedFileQueue, OddFile, Truncation

SIZE = 100


@pytest.fixture
def queue(tmp_path: Path) -> MappedFileQueue:
    return MappedFileQueue(str(tmp_path / "files"), SIZE)


def fill(queue: MappedFileQueue, count: int) -> None:
    for number in range(count):
        file = queue.append_file(number * SIZE)
        file.reserve(SIZE, SIZE)
        file.view[:] = bytes([number + 1]) * SIZE
        file.wrote = SIZE


def test_missing_directory_is_an_empty_queue(queue: MappedFileQueue) -> None:
    assert (queue.load(), queue.files, queue.min_offset, queue.max_offset) == ([], [], 0, 0)
    assert queue.find(0) is None
    queue.destroy()
    queue.destroy_all()


def test_files_are_named_by_their_first_offset(queue: MappedFileQueue, tmp_path: Path) -> None:
    queue.append_file(0)
    queue.append_file(150)
    assert sorted(os.listdir(tmp_path / "files")) == [f"{0:020d}", f"{100:020d}"]


def test_loading_finds_files_in_order_and_passes_over_others(queue: MappedFileQueue, tmp_path: Path) -> None:
    fill(queue, 3)
    directory = tmp_path / "files"
    (directory / "notes.txt").write_text("x")
    (directory / f"{300:020d}").mkdir()
    (directory / f"{400:020d}").symlink_to(directory / f"{0:020d}")
    again = MappedFileQueue(str(directory), SIZE)
    assert again.load() == []
    assert [(file.first_offset, file.wrote) for file in again.files] == [(0, SIZE), (100, SIZE), (200, SIZE)]
    assert (again.min_offset, again.max_offset) == (0, 300)


def test_files_that_do_not_fit_are_named(queue: MappedFileQueue, tmp_path: Path) -> None:
    fill(queue, 3)
    directory = tmp_path / "files"
    (directory / f"{100:020d}").write_bytes(bytes(99))
    (directory / f"{250:020d}").write_bytes(bytes(100))
    assert queue.load() == [OddFile(str(directory / f"{100:020d}"), 99), OddFile(str(directory / f"{250:020d}"), 100)]


def test_hole_between_files_is_named(queue: MappedFileQueue, tmp_path: Path) -> None:
    fill(queue, 4)
    assert queue.missing() is None
    (tmp_path / "files" / f"{200:020d}").unlink()
    queue.load()
    assert queue.missing() == str(tmp_path / "files" / f"{200:020d}")


@pytest.mark.parametrize(
    ("offset", "first"), [(-1, None), (0, 0), (99, 0), (100, 100), (299, 200), (300, None)], ids=str
)
def test_find(queue: MappedFileQueue, offset: int, first: int | None) -> None:
    fill(queue, 3)
    found = queue.find(offset)
    assert (found.first_offset if found is not None else None) == first


def test_find_after_the_first_files_are_gone(queue: MappedFileQueue, tmp_path: Path) -> None:
    fill(queue, 3)
    (tmp_path / "files" / f"{0:020d}").unlink()
    queue.load()
    found = queue.find(150)
    assert (found is not None and found.first_offset, queue.find(50)) == (100, None)


def test_files_from_an_offset(queue: MappedFileQueue) -> None:
    fill(queue, 3)
    assert [[file.first_offset for file in queue.from_offset(offset)] for offset in (0, 100, 299, 300)] == [
        [0, 100, 200],
        [100, 200],
        [200],
        [],
    ]


def test_truncating_deletes_and_clears(queue: MappedFileQueue, tmp_path: Path) -> None:
    fill(queue, 3)
    queue.append_file(300)
    directory = tmp_path / "files"
    assert queue.truncate(130) == Truncation((str(directory / f"{200:020d}"),), 70)
    assert sorted(os.listdir(directory)) == [f"{0:020d}", f"{100:020d}"]
    assert (queue.max_offset, bytes(queue.files[1].readable)) == (130, b"\2" * 30 + bytes(70))
    assert not queue.truncate(130)


def test_truncating_at_a_file_end_keeps_the_file_whole(queue: MappedFileQueue) -> None:
    fill(queue, 2)
    assert not queue.truncate(200)
    assert queue.max_offset == 200
    queue.truncate(100)
    assert [file.first_offset for file in queue.files] == [0, 100]
    assert queue.max_offset == 100


def test_destroying_removes_files_and_directory(queue: MappedFileQueue, tmp_path: Path) -> None:
    fill(queue, 2)
    queue.destroy()
    assert not (tmp_path / "files").exists()
    fill(queue, 1)
    (tmp_path / "files" / "other").write_bytes(b"")
    queue.destroy()
    assert os.listdir(tmp_path / "files") == ["other"]
