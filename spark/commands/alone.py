"""A lock on the directory of a job: two jobs that write it at once would add messages twice."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator

from twisted_mq.spark.errors import StoreReadError
from twisted_mq.spark.file_systems import local_path


@contextlib.contextmanager
def alone(out: str) -> Iterator[None]:
    """Lock a local directory, which is created if missing. The lock ends with the process. URIs of other systems are not locked.

    Raises StoreReadError if another process has the lock.
    """
    path = local_path(out)
    if "://" in path:
        yield
        return
    os.makedirs(path, exist_ok=True)
    with open(os.path.join(path, "_export.lock"), "a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise StoreReadError(f"{out}: another export writes there") from error
        yield
