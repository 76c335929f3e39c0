"""Keeps the folder of a test's servers, which is removed when they stop, at the latest when their process ends."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

import attrs

_left: dict[str, int] = {}
"""Folders that are not removed yet -> the process that created them; its forked children leave them alone."""


@attrs.define(eq=False)
class TemporaryFolder:
    """A folder that is created at its first use."""

    prefix: str
    _path: str | None = None

    @property
    def path(self) -> str:
        """Return its path. Raises OSError if it cannot be made."""
        if self._path is None:
            self._path = tempfile.mkdtemp(prefix=self.prefix)
            _left[self._path] = os.getpid()
        return self._path

    @property
    def is_made(self) -> bool:
        """Return whether there is something to remove."""
        return self._path is not None

    def remove(self) -> None:
        """Remove the folder with its content, as far as possible. The next use creates another one."""
        path, self._path = self.path, None
        shutil.rmtree(path, True)
        del _left[path]


@atexit.register
def _remove_what_is_left() -> None:
    for path, process in list(_left.items()):  # a loop's thread may still use it
        if process == os.getpid():
            shutil.rmtree(path, True)
