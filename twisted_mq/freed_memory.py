"""Lets a process keep memory that it frees and needs again."""

from __future__ import annotations

import functools
import sys

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""Parameters of glibc's mallopt(3)."""
_KEPT_BYTES = 64 << 20
_LARGEST_BLOCK_BYTES = 32 << 20
"""The maximum that glibc allows."""


@functools.cache
def keep_freed_memory() -> None:
    """Let glibc keep 64 MiB of freed memory for this process. Other C libraries and systems are not changed.

    Bodies of 1 MiB and windows of a log are allocated and freed again and again, and the system would clear each one.
    """
    if sys.platform != "linux":
        return
    import ctypes

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
        mallopt(_M_MMAP_THRESHOLD, _LARGEST_BLOCK_BYTES)
