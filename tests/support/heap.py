"""Tells how much memory the C library's allocator gave out, for what Python's own figures leave out: protobuf's messages."""

from __future__ import annotations

import ctypes

_FIELDS = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")


class _Mallinfo2(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in _FIELDS]


def heap_bytes() -> int:
    """Return the bytes that glibc's malloc gave out and were not freed (mallinfo2, glibc 2.33 or newer)."""
    told = ctypes.CDLL(None).mallinfo2
    told.restype = _Mallinfo2
    return int(told().uordblks)
