"""A mapped file: sparse, reserved in advance, never shorter, with views that outlive it."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

from tests.support.faulty_disk import FaultyDisk
from twisted_mq.storage.errors import StoreFull
from twisted_mq.storage.files.mapped_file import MappedFile

SIZE = 64 * 1024


def create(tmp_path: Path) -> MappedFile:
    return MappedFile.create(str(tmp_path / "file"), 0, SIZE)


def test_new_file_has_its_size_and_takes_no_space(tmp_path: Path) -> None:
    create(tmp_path)
    status = (tmp_path / "file").stat()
    assert (status.st_size, status.st_blocks) == (SIZE, 0)


def test_existing_file_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"kept")
    with pytest.raises(FileExistsError):
        create(tmp_path)
    assert (tmp_path / "file").read_bytes() == b"kept"


def test_empty_file_that_a_full_disk_left_is_taken_when_there_is_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = FaultyDisk(tmp_path, monkeypatch)
    disk.fill()
    with pytest.raises(StoreFull):
        MappedFile.create(str(tmp_path / "00"), 0, 4096)
    assert (tmp_path / "00").stat().st_size == 0
    disk.heal()
    assert MappedFile.create(str(tmp_path / "00"), 0, 4096).reserve(1, 1) == 1
    assert (tmp_path / "00").stat().st_size == 4096


def test_space_is_taken_in_steps(tmp_path: Path) -> None:
    calls: list[tuple[int, int]] = []
    file = MappedFile.create(str(tmp_path / "file"), 0, 10_000, lambda _, start, count: calls.append((start, count)))
    assert [file.reserve(needed, 4096) for needed in (1, 4096, 4097, 9000, 10_000)] == [
        4096,
        4096,
        8192,
        10_000,
        10_000,
    ]
    assert calls == [(0, 4096), (4096, 4096), (8192, 1808)]


def test_space_behind_a_position_is_taken_anew(tmp_path: Path) -> None:
    calls: list[tuple[int, int]] = []
    file = MappedFile.create(str(tmp_path / "file"), 0, 10_000, lambda _, start, count: calls.append((start, count)))
    file.set_position(500)
    assert (file.reserve(501, 1000), calls, file.end_offset) == (1500, [(500, 1000)], 500)


def test_reserved_space_is_real(tmp_path: Path) -> None:
    file = create(tmp_path)
    file.reserve(1, 16 * 1024)
    assert (tmp_path / "file").stat().st_blocks * 512 >= 16 * 1024


def test_views_outlive_release_and_deletion(tmp_path: Path) -> None:
    file = create(tmp_path)
    file.reserve(5, 4096)
    file.view[:5] = b"alive"
    kept = file.readable[:5]
    file.release()
    file.delete()
    file.delete()
    gc.collect()
    assert (bytes(kept), kept.readonly, (tmp_path / "file").exists()) == (b"alive", True, False)


def test_file_is_mapped_again_after_release(tmp_path: Path) -> None:
    file = create(tmp_path)
    file.reserve(5, 4096)
    file.view[:5] = b"again"
    file.release()
    file.release()
    assert bytes(file.readable[:5]) == b"again"


def test_clearing_zeroes_the_rest_and_keeps_the_beginning(tmp_path: Path) -> None:
    file = create(tmp_path)
    file.reserve(SIZE, SIZE)
    file.view[10:20] = b"x" * 10
    file.view[50_000:50_003] = b"abc"
    assert file.has_data()
    assert file.clear_from(15) == 5 + (50_003 - 15 - 5 - (50_000 - 20)) + (50_000 - 20)
    assert bytes(file.readable) == bytes(10) + b"x" * 5 + bytes(SIZE - 15)
    assert (file.clear_from(15), file.clear_from(SIZE)) == (0, 0)
    assert file.clear_from(0) == 15
    assert not file.has_data()


def test_clearing_a_sparse_file_takes_no_space(tmp_path: Path) -> None:
    file = create(tmp_path)
    assert (file.clear_from(0), file.first_data(), os.stat(file.path).st_blocks) == (0, (b"", True), 0)


def test_bytes_are_found_past_holes(tmp_path: Path) -> None:
    file = create(tmp_path)
    file.reserve(SIZE, SIZE)
    for position in (100, 101, 40_000):
        file.view[position : position + 2] = b"\xaa\xaa"
    assert list(file.find_all(b"\xaa\xaa", 0)) == [100, 101, 40_000]
    assert list(file.find_all(b"\xaa\xaa", 101)) == [101, 40_000]


def test_sync_uses_a_descriptor_of_its_own_and_forgives_deletion(tmp_path: Path) -> None:
    synced: list[int] = []
    file = create(tmp_path)
    file.sync(synced.append)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(synced[0])
    file.delete()
    file.sync(synced.append)
    assert len(synced) == 1


def test_first_sync_puts_the_names_on_disk_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    monkeypatch.setattr("twisted_mq.storage.files.mapped_file.sync_directory", synced.append)
    path = tmp_path / "topic" / "0" / "file"
    path.parent.mkdir(parents=True)
    file = MappedFile.create(str(path), 0, 4096)
    file.unsafe_names = 3
    file.sync()
    file.sync()
    assert synced == [str(tmp_path / "topic" / "0"), str(tmp_path / "topic"), str(tmp_path)]
