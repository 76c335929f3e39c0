"""System calls that differ between Linux, macOS and other systems, with replacements for those that are missing.

Everything else that a store uses is POSIX. On Windows files at rest can be read, but a store cannot be opened.
"""

from __future__ import annotations

import errno
import mmap
import os
import re
import struct
import sys
from collections.abc import Callable, Collection, Iterator

try:
    import fcntl
    import resource
except ImportError:
    UNIX = False
else:
    UNIX = True

Allocate = Callable[[int, int, int], None]
"""Takes disk blocks: file descriptor, first byte, count; raises OSError. `posix_fallocate` outside tests."""

Sync = Callable[[int], None]
"""Puts a file's data on disk: file descriptor; raises OSError. `fdatasync` outside tests."""

SyncFileSystems = Callable[[Collection[str]], bool]
"""Puts everything in the file systems of some directories on disk, data and names; returns False if the system cannot
prove that; raises OSError. `sync_file_systems` outside tests."""

LINUX = sys.platform == "linux"
_NOT_SUPPORTED = frozenset({errno.ENOTSUP, errno.ENOTTY, errno.EINVAL})
"""The errors of F_FULLFSYNC on file systems that do not support it, such as network file systems."""

MADV_POPULATE_WRITE = 23
"""Linux 5.14; Python has no name for it."""

_SYNCFS_TELLS_ERRORS = (5, 8)

OPEN_MAX = 10240
"""macOS allows no more descriptors, although it calls its hard limit infinite."""
USUAL_DESCRIPTORS = 1024
"""The limit assumed if the system does not tell it."""

_FLOCK = struct.Struct("@hhqqi4x" if LINUX else "@qqihhi4x")
_FLOCK_FIELDS = ("type", "whence", "start", "length", "process")
if not LINUX:
    _FLOCK_FIELDS = (*_FLOCK_FIELDS[2:], *_FLOCK_FIELDS[:2])
"""struct flock; on macOS and BSD the lock's range comes first."""


def write_blocks(descriptor: int, first: int, count: int) -> None:
    """Take the disk blocks of a range by rewriting a byte of each; no other writer may be active there meanwhile.

    The file has its full size already. A copy-on-write file system may still lack space later.
    """
    step = os.fstat(descriptor).st_blksize
    for position in (first, *range(first - first % step + step, first + count, step)):
        os.pwrite(descriptor, os.pread(descriptor, 1, position) or b"\0", position)


def fsync(descriptor: int) -> None:
    """Put a file or the names in a directory on disk, on macOS also out of the drive's cache. Raises OSError."""
    beyond = getattr(fcntl, "F_FULLFSYNC", None)
    if beyond is not None:
        try:
            fcntl.fcntl(descriptor, beyond)
            return
        except OSError as error:
            if error.errno not in _NOT_SUPPORTED:
                raise
    os.fsync(descriptor)


def _fdatasync(descriptor: int) -> None:
    os.fdatasync(descriptor)


posix_fallocate: Allocate = getattr(os, "posix_fallocate", write_blocks)
fdatasync: Sync = _fdatasync if hasattr(os, "fdatasync") else fsync


def sync_file_systems(directories: Collection[str]) -> bool:
    """Call syncfs, which Linux has. Before 5.8 it returned no errors, so it proved nothing."""
    if not LINUX or _kernel() < _SYNCFS_TELLS_ERRORS:
        return False
    import ctypes

    syncfs = ctypes.CDLL(None, use_errno=True).syncfs
    for path in {os.stat(path).st_dev: path for path in directories}.values():
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            if syncfs(descriptor):
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        finally:
            os.close(descriptor)
    return True


def _kernel() -> tuple[int, ...]:
    """Return the first two numbers of the kernel's version."""
    return tuple(int(number) for number in re.findall(r"\d+", _release())[:2])


def _release() -> str:
    return os.uname().release


def data_ranges(descriptor: int, start: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of the runs of blocks after `start` that hold data; outside Linux one run of everything."""
    if not LINUX and start < size:
        yield start, size
        return
    while start < size:
        try:
            first = max(start, os.lseek(descriptor, start, os.SEEK_DATA))
        except OSError as error:
            if error.errno == errno.ENXIO:
                return
            raise
        start = os.lseek(descriptor, first, os.SEEK_HOLE)
        yield first, min(start, size)


def touch(view: memoryview, start: int, end: int) -> None:
    """Map the pages of a new, empty file for writing; `start` is the start of a page."""
    mapping = view.obj
    assert isinstance(mapping, mmap.mmap)
    if LINUX:
        try:
            mapping.madvise(MADV_POPULATE_WRITE, start, end - start)
            return
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
    view[start : end : mmap.PAGESIZE] = bytes(-(-(end - start) // mmap.PAGESIZE))


def read_at_random(view: memoryview, at_random: bool) -> None:
    """Switch the kernel's read-ahead of a mapping off or on again; does nothing on other systems."""
    advice = getattr(mmap, "MADV_RANDOM" if at_random else "MADV_NORMAL", None)
    if advice is not None:
        mapping = view.obj
        assert isinstance(mapping, mmap.mmap)
        mapping.madvise(advice)


def descriptor_limit() -> int:
    """Return how many descriptors this process may open now."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0] if UNIX else USUAL_DESCRIPTORS


def raise_descriptor_limit() -> None:
    """Raise the limit of descriptors as far as the process may (ulimit -Hn)."""
    if not UNIX:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = OPEN_MAX if hard == resource.RLIM_INFINITY else hard
    if soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def hold(descriptor: int) -> None:
    """Lock the file's first byte for this process. Raises OSError, with EACCES or EAGAIN if another process has the lock."""
    fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0, os.SEEK_SET)


def is_held(descriptor: int) -> bool:
    """Return whether another process has a lock on the file's first byte."""
    numbers = {"type": fcntl.F_WRLCK, "whence": os.SEEK_SET, "start": 0, "length": 1, "process": 0}
    asked = _FLOCK.pack(*map(numbers.__getitem__, _FLOCK_FIELDS))
    told = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_GETLK, asked))
    return bool(told[_FLOCK_FIELDS.index("type")] != fcntl.F_UNLCK)
