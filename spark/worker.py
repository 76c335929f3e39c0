"""What a Python worker of Spark does once, however many tasks it gets."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import os
import socket
import stat
from collections.abc import Iterator

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""Of glibc's mallopt(3)."""
_KEPT_BYTES = 64 << 20
_LARGEST_BLOCK_BYTES = 32 << 20
"""The most that glibc allows."""
_FIRST_DESCRIPTOR, _LAST_DESCRIPTOR = 3, 63
"""Among which a worker's connection is: it is there before any task opens a file."""
_TCP_FAMILIES = (socket.AF_INET, socket.AF_INET6)


@contextlib.contextmanager
def settled() -> Iterator[None]:
    """Around the work of each task."""
    _keep_freed_memory()
    _send_at_once()
    try:
        yield
    finally:
        _keep_what_is_loaded()


@functools.cache
def _keep_freed_memory() -> None:
    """Let glibc keep 64 MiB of what is freed: windows of 4 MiB come and go, and the system would clear each one anew.

    That took a fourth of the time of reading one column. Other C libraries are left as they are.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
        mallopt(_M_MMAP_THRESHOLD, _LARGEST_BLOCK_BYTES)


@functools.cache
def _send_at_once() -> None:
    """Have the worker's connection to Java, where that is TCP, wait for no acknowledgement before it sends.

    Spark leaves Nagle's algorithm on: the end of a task's answer waited up to 40 ms, which took a third of the time of one
    column in parts of 16 MiB. The connection is among the open descriptors, and Spark hands it to nobody.
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

    Spark collects garbage in a worker after each task, which takes some 35 ms for these modules alone. The first task loads
    more: Arrow asks for pandas when it makes its first array.
    """
    gc.freeze()
