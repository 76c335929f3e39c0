"""Another content for a small file, in one step."""

from __future__ import annotations

import contextlib
import os

from twisted_mq.storage.files.directory import make_directory, sync_directory
from twisted_mq.storage.files.system_calls import fsync

NEW_FILE_MODE = 0o640
"""Less what the umask takes away: daemons have 077 (config.startup)."""


def replace_file(path: str, data: bytes) -> None:
    """Write aside, replace in one step, all of it on disk at the end. Mode and owner stay, and links lead where they did.

    Raises OSError, also where the owner could not stay; then the file is as it was.
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
    """Give a new file the owner and mode of the one whose place it takes."""
    try:
        before = os.stat(path)
    except FileNotFoundError:
        return
    now = os.fstat(descriptor)
    if (before.st_uid, before.st_gid) != (now.st_uid, now.st_gid):
        os.fchown(descriptor, before.st_uid, before.st_gid)
    os.fchmod(descriptor, before.st_mode & 0o7777)
