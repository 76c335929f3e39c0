"""Locks a store for the tools, so that no broker uses it meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from twisted_mq.storage.errors import StoreError, StoreLocked
from twisted_mq.storage.files.directory import DirectoryLock
from twisted_mq.storage.files.paths import StorePaths


class StoreInUse(StoreError):
    """A broker uses the store that should be changed."""

    def __init__(self, path: str) -> None:
        super().__init__(path, "a broker is running on this store; stop it, then run the command again")


@contextmanager
def exclusively(paths: StorePaths) -> Iterator[None]:
    """Hold the store's lock. Raises StoreInUse, StoreUnwritable; then nothing was changed."""
    lock = DirectoryLock(paths.lock)
    try:
        lock.acquire()
    except StoreLocked as error:
        raise StoreInUse(paths.root) from error
    try:
        yield
    finally:
        lock.release()
