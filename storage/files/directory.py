"""Locks a store directory and tells whether the last broker closed it: DefaultMessageStore's `lock` and `abort` files.

Java's FileChannel.tryLock is a POSIX record lock, so this lock excludes Apache's broker and the other way round. Such locks
belong to a process and vanish when the process closes any descriptor of the file. So the stores of one process exclude
each other by the table here, before they touch the file.
"""

from __future__ import annotations

import errno
import os

from twisted_mq.storage.errors import StoreLocked, StoreUnwritable
from twisted_mq.storage.files import system_calls
from twisted_mq.storage.files.paths import StorePaths
from twisted_mq.storage.files.system_calls import fsync, hold, is_held

_CONTENT = b"lock"
_held_here: set[str] = set()
"""Real paths of the lock files that this process holds."""


class DirectoryLock:
    """The lock on a store directory; call `acquire` and `release` in turn."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._descriptor = -1
        self._key = ""

    def acquire(self) -> None:
        """Take the lock without waiting. Raises StoreLocked, StoreUnwritable."""
        key = os.path.realpath(self.path)
        if key in _held_here:
            raise StoreLocked(self.path)
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StoreUnwritable(self.path, error) from error
        try:
            self._lock(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor, self._key = descriptor, key
        _held_here.add(key)

    def _lock(self, descriptor: int) -> None:
        try:
            hold(descriptor)
            os.pwrite(descriptor, _CONTENT, 0)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EAGAIN):
                raise StoreLocked(self.path) from error
            raise StoreUnwritable(self.path, error) from error

    def release(self) -> None:
        """Free the lock; does nothing if it is not held."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
            _held_here.discard(self._key)


class StoreDirectory:
    """A store's directory, locked from `open` to `close`."""

    def __init__(self, paths: StorePaths) -> None:
        self._paths = paths
        self._lock = DirectoryLock(paths.lock)

    def open(self) -> bool:
        """Create and lock the directory; return whether the last broker closed it. Raises StoreLocked, StoreUnwritable."""
        for path in (self._paths.root, self._paths.commit_log, self._paths.consume_queues, self._paths.config):
            try:
                make_directory(path)
            except OSError as error:
                raise StoreUnwritable(path, error) from error
        self._lock.acquire()
        return not os.path.exists(self._paths.abort)

    def mark_running(self) -> None:
        """Create the abort file, on disk before any message is taken; it holds the process id, as in Apache."""
        try:
            with open(self._paths.abort, "w", encoding="ascii") as file:
                file.write(str(os.getpid()))
                file.flush()
                fsync(file.fileno())
            sync_directory(self._paths.root)
        except OSError as error:
            raise StoreUnwritable(self._paths.abort, error) from error

    def close(self, *, clean: bool) -> None:
        """Free the lock; remove the abort file only if everything is on disk."""
        if clean and os.path.exists(self._paths.abort):
            os.unlink(self._paths.abort)
            sync_directory(self._paths.root)
        self._lock.release()


def make_directory(path: str) -> None:
    """Create a directory and its missing parents, with their names on disk. Raises OSError."""
    missing, above = [], os.path.abspath(path)
    while not os.path.exists(above):
        missing.append(above)
        above = os.path.dirname(above)
    os.makedirs(path, exist_ok=True)
    for made in reversed(missing):
        sync_directory(os.path.dirname(made))


def sync_directory(path: str) -> None:
    """Put the names in a directory on disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(root: str) -> None:
    """Put all files below a directory on disk, and their names."""
    for folder, _, names in os.walk(root):
        for name in names:
            descriptor = os.open(os.path.join(folder, name), os.O_RDONLY | os.O_CLOEXEC)
            try:
                system_calls.fdatasync(descriptor)
            finally:
                os.close(descriptor)
        sync_directory(folder)


def is_locked(path: str) -> bool:
    """Return whether any process runs a store in the directory of this lock file; nothing is locked or written."""
    if os.path.realpath(path) in _held_here:
        return True
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        return is_held(descriptor)
    finally:
        os.close(descriptor)
