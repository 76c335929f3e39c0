"""Settings of a Python worker of Spark, made once for all of its tasks."""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import socket
import stat
from collections.abc import Iterator

from twisted_mq.freed_memory import keep_freed_memory

_FIRST_DESCRIPTOR, _LAST_DESCRIPTOR = 3, 63
"""Range of descriptors that contains a worker's connection, which is opened before any task opens a file."""
_TCP_FAMILIES = (socket.AF_INET, socket.AF_INET6)


@contextlib.contextmanager
def settled() -> Iterator[None]:
    """Apply the settings at the start of a task's work."""
    keep_freed_memory()
    _send_at_once()
    try:
        yield
    finally:
        _keep_what_is_loaded()


@functools.cache
def _send_at_once() -> None:
    """Let the worker's TCP connection to Java send without waiting for acknowledgements.

    Spark leaves Nagle's algorithm on: the end of a task's answer waited up to 40 ms, which took a third of the time of one column
    in parts of 16 MiB. Spark does not pass on the connection, so it is searched among the open descriptors.
    """
    for descriptor in range(_FIRST_DESCRIPTOR, _LAST_DESCRIPTOR + 1):
        with contextlib.suppress(OSError):  # it is not open, or not connected
            if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                continue
            with socket.socket(fileno=os.dup(descriptor)) as connection:
                if connection.family in _TCP_FAMILIES and connection.type == socket.SOCK_STREAM:
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


@functools.cache
def _keep_what_is_loaded() -> None:
    """Keep the modules that are loaded by now out of garbage collection.

    Spark collects garbage in a worker after each task, which takes some 35 ms for these modules alone. The first task loads more:
    Arrow imports pandas when it creates its first array.
    """
    gc.freeze()
