"""A JSON file with a backup: read with a fallback, replaced in one step (Apache: ConfigManager, MixAll.string2File)."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable
from typing import Generic, TypeVar

import attrs

from twisted_mq.protocol.errors import BodyError
from twisted_mq.storage.files.directory import make_directory, sync_directory
from twisted_mq.storage.files.system_calls import fsync

logger = logging.getLogger(__name__)

BACKUP = ".bak"
DAMAGED = ".damaged"
_NEW = ".tmp"

OWNER_ONLY = 0o600
"""The mode of a file with secrets."""

Value = TypeVar("Value")


@attrs.frozen
class LoadAction:
    """A file that was not read as it should be, with the reason and what was done instead."""

    path: str
    problem: str
    done: str

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}; {self.done}"


class JsonFile(Generic[Value]):
    """A file that holds one value; the previous version is kept beside it as `.bak`.

    `decode` turns bytes into the value and raises BodyError. If the file is damaged, the backup is read; if that is damaged
    too, there is no value. A damaged file is kept as `.damaged`, and never becomes the backup.
    """

    def __init__(self, path: str, decode: Callable[[bytes], Value], mode: int = 0o666) -> None:
        """Set the path and the decoder; `mode` is that of the file, less the umask."""
        self.path = path
        self._decode = decode
        self._mode = mode
        self._on_disk: bytes | None = None

    def load(self) -> tuple[Value | None, list[LoadAction]]:
        """Return the value, or None without one, and the problems. Raises OSError for a file that cannot be opened."""
        data = _read(self.path)
        if data:
            try:
                value = self._decode(data)
            except BodyError as error:
                problem = str(error)
            else:
                self._on_disk = data
                return value, []
        else:
            problem = "is missing" if data is None else "is empty"
        return self._load_backup(problem, data)

    def _load_backup(self, problem: str, damaged: bytes | None) -> tuple[Value | None, list[LoadAction]]:
        backup = _read(self.path + BACKUP)
        if damaged is None and not backup:
            return None, []
        kept = ""
        if damaged is not None:
            os.replace(self.path, self.path + DAMAGED)
            kept = f", the damaged file is kept as {os.path.basename(self.path)}{DAMAGED}"
        if not backup:
            return None, [self._told(problem, f"without a backup; the table starts empty{kept}")]
        try:
            value = self._decode(backup)
        except BodyError as error:
            return None, [self._told(problem, f"its backup is damaged too ({error}); the table starts empty{kept}")]
        return value, [self._told(problem, f"its backup was read{kept}")]

    def _told(self, problem: str, done: str) -> LoadAction:
        action = LoadAction(self.path, problem, done)
        logger.warning("table: %s", action)
        return action

    def save(self, data: bytes) -> bool:
        """Replace the file by `data`, which is on disk when this returns; the previous file becomes the backup.

        Returns False if the file already has this content. Raises OSError; then the file is unchanged.
        """
        if data == self._on_disk:
            return False
        make_directory(os.path.dirname(self.path))
        with open(self.path + _NEW, "wb", opener=self._open) as file:
            file.write(data)
            file.flush()
            fsync(file.fileno())
        self.back_up()
        os.replace(self.path + _NEW, self.path)
        sync_directory(os.path.dirname(self.path))
        self._on_disk = data
        return True

    def _open(self, path: str, flags: int) -> int:
        return os.open(path, flags, self._mode)

    def back_up(self) -> None:
        """Make the current file the backup; at every moment one of the names has a whole file. Raises OSError."""
        link = self.path + BACKUP + _NEW
        with contextlib.suppress(FileNotFoundError):
            os.unlink(link)
        try:
            os.link(self.path, link)
        except FileNotFoundError:
            return
        except OSError:  # a file system without hard links
            with open(self.path, "rb") as present, open(link, "wb", opener=self._open) as copy:
                copy.write(present.read())
        os.replace(link, self.path + BACKUP)


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):  # the store's start reports the second
        return None
