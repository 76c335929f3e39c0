"""Keeps the data that repair and rebuild remove: <root>/damaged/<name>/ with a manifest.json.

The manifest lists each piece: its original file, its physical offset and length, the SHA-256 of its bytes, the file of
this folder that contains it, and the reason. It is on disk before the store is changed.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from typing import BinaryIO

import attrs

from twisted_mq.storage.errors import StoreUnwritable
from twisted_mq.storage.files import system_calls
from twisted_mq.storage.files.directory import sync_directory
from twisted_mq.storage.files.paths import StorePaths
from twisted_mq.storage.tools.json_files import json_bytes

MANIFEST = "manifest.json"
_CHUNK = 1 << 20


@attrs.define
class Quarantine:
    """A quarantine folder; `name` distinguishes repairs, for example by the time. Raises StoreUnwritable."""

    paths: StorePaths
    name: str
    command: str
    pieces: list[dict[str, str | int]] = attrs.field(factory=list)

    @property
    def directory(self) -> str:
        """The path of the folder."""
        return os.path.join(self.paths.damaged, self.name)

    def open(self) -> None:
        """Create the folder; it must not exist."""
        try:
            os.makedirs(self.directory)
        except OSError as error:
            raise StoreUnwritable(self.directory, error) from error

    def keep_bytes(self, path: str, position: int, length: int, *, offset: int, reason: str) -> str:
        """Copy a part of a file, with holes for runs of zeros; return the copy's path."""
        saved_as = f"{os.path.basename(path)}.{offset}-{offset + length}"
        copy_path = os.path.join(self.directory, saved_as)
        digest = hashlib.sha256()
        try:
            with open(path, "rb") as source, open(copy_path, "xb") as copy:
                source.seek(position)
                for chunk in _chunks(source, length):
                    digest.update(chunk)
                    copy.seek(len(chunk), os.SEEK_CUR) if chunk.count(0) == len(chunk) else copy.write(chunk)
                copy.truncate(length)
                copy.flush()
                system_calls.fsync(copy.fileno())
        except OSError as error:
            raise StoreUnwritable(copy_path, error) from error
        self.pieces.append(
            {
                "file": os.path.relpath(path, self.paths.root),
                "offset": offset,
                "length": length,
                "sha256": digest.hexdigest(),
                "savedAs": saved_as,
                "reason": reason,
            }
        )
        return copy_path

    def keep_path(self, path: str, reason: str) -> None:
        """Move a file or directory of the store into the folder."""
        saved_as = os.path.basename(path)
        os.rename(path, os.path.join(self.directory, saved_as))
        self.pieces.append({"file": os.path.relpath(path, self.paths.root), "savedAs": saved_as, "reason": reason})

    def write_manifest(self, **more: object) -> None:
        """Write and flush the manifest; an older one is replaced."""
        path = os.path.join(self.directory, MANIFEST)
        content = {"command": self.command, "store": self.paths.root, "pieces": self.pieces, **more}
        try:
            with open(path + ".tmp", "wb") as file:
                file.write(json_bytes(content))
                file.flush()
                system_calls.fsync(file.fileno())
            os.replace(path + ".tmp", path)
            sync_directory(self.directory)
        except OSError as error:
            raise StoreUnwritable(path, error) from error


def _chunks(source: BinaryIO, length: int) -> Iterator[bytes]:
    """Yield at most `length` bytes from the file's current position on."""
    while length > 0:
        chunk = source.read(min(_CHUNK, length))
        if not chunk:
            return
        length -= len(chunk)
        yield chunk
