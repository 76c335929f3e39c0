"""Replaces the content of a small file in one step."""

from __future__ import annotations

import contextlib
import os

from twisted_mq.storage.files.directory import make_directory, sync_directory
from twisted_mq.storage.files.system_calls import fsync

NEW_FILE_MODE = 0o640
"""The mode before the umask is applied; daemons have the umask 077 (config.startup)."""


def replace_file(path: str, data: bytes) -> None:
    """Write a new file and replace the old one in one step, on disk at the end. Mode, owner and links are kept.

    Raises OSError, also if the owner could not be kept; then the file is unchanged.
    """
    path = os.path.realpath(path)
    make_directory(os.path.dirname(path))
    temporary = f"{path}.tmp"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary)
    try:
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, NEW_FILE_MODE), "wb") as file:
            _keep_access(path, file.fileno())
            file.write(data)
            file.flush()
            fsync(file.fileno())
        os.replace(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    sync_directory(os.path.dirname(path))


def _keep_access(path: str, descriptor: int) -> None:
    """Give a new file the owner and mode of the file that it replaces."""
    try:
        before = os.stat(path)
    except FileNotFoundError:
        return
    now = os.fstat(descriptor)
    if (before.st_uid, before.st_gid) != (now.st_uid, now.st_gid):
        os.fchown(descriptor, before.st_uid, before.st_gid)
    os.fchmod(descriptor, before.st_mode & 0o7777)
