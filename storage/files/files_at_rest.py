"""Reads files of a store without its lock: they are mapped at first use and never changed.

A broker may be writing at the same time; bytes that are not written yet are not read. File sizes are taken from the
files, so no configuration is needed. Views stay valid as long as they are referenced.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator

from twisted_mq.storage.files.paths import file_offset
from twisted_mq.storage.files.search import positions_in


class FileAtRest:
    """A file of a run of files, mapped for reading at first use; `first_offset` is the offset in its name."""

    def __init__(self, path: str, first_offset: int, size: int) -> None:
        self.path = path
        self.first_offset = first_offset
        self.size = size
        self._readable: memoryview | None = None

    @property
    def readable(self) -> memoryview:
        """The whole file. Raises FileNotFoundError if it was removed since it was listed."""
        if self._readable is None:
            with open(self.path, "rb") as file:
                mapped = mmap.mmap(file.fileno(), self.size, access=mmap.ACCESS_READ) if self.size else b""
                self._readable = memoryview(mapped)
        return self._readable

    def find_all(self, data: bytes, position: int) -> Iterator[int]:
        """Yield the positions of these bytes from `position` on."""
        mapped = self.readable.obj
        assert isinstance(mapped, mmap.mmap | bytes)
        return positions_in(mapped, data, position, self.size)


def files_in(directory: str) -> list[FileAtRest]:
    """Return the files whose names are offsets, in order, without empty ones. A missing directory has no files."""
    files = []
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                first_offset = file_offset(entry.name)
                if first_offset is not None:
                    files.append(FileAtRest(entry.path, first_offset, _size_of(entry)))
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted((file for file in files if file.size), key=lambda file: file.first_offset)


def _size_of(entry: os.DirEntry[str]) -> int:
    """Return the file's size; 0 if it was removed while the directory was read."""
    try:
        return entry.stat().st_size
    except FileNotFoundError:
        return 0
