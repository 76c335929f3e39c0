"""A disk that is full, read-only, or fails: a layer over the calls of `os` that write below one directory."""

from __future__ import annotations

import builtins
import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from twisted_mq.storage.files.system_calls import fdatasync, posix_fallocate

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class FaultyDisk:
    """Set `making`, `removing`, `opening`, `allocating`, `syncing` to an errno: calls of that kind below `root` fail with it."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch) -> None:
        self._root = str(root)
        self.heal()
        for name in ("ftruncate", "mkdir", "replace", "link"):
            patch.setattr(os, name, self._guarded(getattr(os, name), "making"))
        patch.setattr(os, "unlink", self._guarded(os.unlink, "removing"))
        patch.setattr(os, "fsync", self._guarded(os.fsync, "syncing"))
        self.sync = self._guarded(fdatasync, "syncing")
        self.allocate = self._guarded(posix_fallocate, "allocating")
        self._os_open, self._open = os.open, builtins.open
        patch.setattr(os, "open", self._guarded_os_open)
        patch.setattr(builtins, "open", self._guarded_open)

    def heal(self) -> None:
        """No more faults."""
        self.making = self.removing = self.opening = self.allocating = self.syncing = 0

    def fill(self) -> None:
        """No space: ENOSPC for new blocks and new names; not all file systems let names go either."""
        self.making = self.removing = self.allocating = errno.ENOSPC

    def make_read_only(self) -> None:
        """Make the disk read-only, as Linux does with a file system with errors."""
        self.making = self.removing = self.opening = self.allocating = errno.EROFS

    def _here(self, target: Any) -> bool:
        path = os.readlink(f"/proc/self/fd/{target}") if isinstance(target, int) else os.fspath(target)
        return str(path).startswith(self._root)

    def _fail(self, kind: str, target: Any) -> None:
        code = getattr(self, kind)
        if code and self._here(target):
            raise OSError(code, os.strerror(code), target)

    def _guarded(self, call: Callable[..., Any], kind: str) -> Callable[..., Any]:
        def guarded(target: Any, *arguments: Any, **keywords: Any) -> Any:
            self._fail(kind, target)
            return call(target, *arguments, **keywords)

        return guarded

    def _guarded_os_open(self, path: Any, flags: int, *arguments: Any, **keywords: Any) -> int:
        if flags & _WRITES:
            self._fail("opening", path)
        return self._os_open(path, flags, *arguments, **keywords)

    def _guarded_open(self, path: Any, mode: str = "r", *arguments: Any, **keywords: Any) -> Any:
        if isinstance(path, (str, os.PathLike)) and set(mode) & set("wax+"):
            self._fail("opening", path)
            self._fail("making", path)
        return self._open(path, mode, *arguments, **keywords)
