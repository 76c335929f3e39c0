"""Keeping what a recovery cuts off."""

from __future__ import annotations

from pathlib import Path

import pytest

from twisted_mq.storage.errors import StoreUnwritable
from twisted_mq.storage.files.mapped_file import MappedFile
from twisted_mq.storage.files.salvage import set_aside


def make(tmp_path: Path, first_offset: int, data: bytes) -> MappedFile:
    file = MappedFile.create(str(tmp_path / str(first_offset)), first_offset, 1000)
    file.reserve(1000, 1000)
    file.view[: len(data)] = data
    return file


def test_bytes_from_an_offset_are_copied_up_to_the_last_that_is_not_zero(tmp_path: Path) -> None:
    files = [
        make(tmp_path, 0, b"a" * 1000),
        make(tmp_path, 1000, b"b" * 50 + bytes(5) + b"c"),
        make(tmp_path, 2000, b""),
    ]
    directory = tmp_path / "damaged"
    assert set_aside(str(directory), files, 1010) == str(directory / f"{1010:020d}")
    assert {path.name: path.read_bytes() for path in directory.iterdir()} == {
        f"{1010:020d}": b"b" * 40 + bytes(5) + b"c",
        f"{2000:020d}": b"",
    }


def test_older_copy_of_the_same_place_is_replaced(tmp_path: Path) -> None:
    directory = tmp_path / "damaged"
    set_aside(str(directory), [make(tmp_path, 0, b"old")], 0)
    set_aside(str(directory), [make(tmp_path, 1, b"new")], 1)
    assert sorted(path.read_bytes() for path in directory.iterdir()) == [b"new", b"old"]


def test_directory_that_cannot_be_made_is_an_error_with_advice(tmp_path: Path) -> None:
    (tmp_path / "damaged").write_bytes(b"")
    with pytest.raises(StoreUnwritable, match="check owner and permissions"):
        set_aside(str(tmp_path / "damaged"), [make(tmp_path, 0, b"x")], 0)
