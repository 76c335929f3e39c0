"""Keeps the bytes that a recovery cuts off the log."""

from __future__ import annotations

import filecmp
import os
from collections.abc import Sequence

from twisted_mq.storage.errors import StoreUnwritable
from twisted_mq.storage.files.directory import sync_directory
from twisted_mq.storage.files.mapped_file import MappedFile
from twisted_mq.storage.files.paths import file_name
from twisted_mq.storage.files.system_calls import fsync

_CHUNK = 1 << 20


def set_aside(directory: str, files: Sequence[MappedFile], offset: int) -> str:
    """Copy the log's bytes from `offset` on into `directory`; return the path of the first copy. Raises StoreUnwritable.

    Each copy is named after the physical offset of its first byte and ends with the last byte that is not zero. All are
    on disk when this returns. An older copy of that name is kept if its bytes differ: an interrupted start may already
    have cut off some of them.
    """
    first_path = ""
    try:
        os.makedirs(directory, exist_ok=True)
        for file in files:
            if file.first_offset + file.size > offset:
                start = max(0, offset - file.first_offset)
                path = os.path.join(directory, file_name(file.first_offset + start))
                kept = _copy(file, start, path)
                first_path = first_path or kept
        sync_directory(directory)
        sync_directory(os.path.dirname(directory))
    except OSError as error:
        raise StoreUnwritable(directory, error) from error
    return first_path


def _copy(file: MappedFile, start: int, path: str) -> str:
    """Write a file's bytes from `start` on; return the path, with a number appended if another copy has the name."""
    partial = path + ".tmp"
    with open(partial, "wb") as copy:
        length = start
        for position in range(start, file.size, _CHUNK):
            chunk = bytes(file.readable[position : position + _CHUNK])
            if chunk.count(0) != len(chunk):
                copy.seek(position - start)
                copy.write(chunk)
                length = position + len(chunk.rstrip(b"\0"))
        copy.truncate(length - start)
        copy.flush()
        fsync(copy.fileno())
    number, name = 1, path
    while os.path.exists(name) and not filecmp.cmp(partial, name, shallow=False):
        number, name = number + 1, f"{path}.{number}"
    os.replace(partial, name)
    return name
