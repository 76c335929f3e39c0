"""System calls that Linux has and macOS and other systems have not, or not alike; what stands for them there.

All else that a store asks of the system is POSIX. On Windows files at rest can be read, a store cannot be opened.
"""

from __future__ import annotations

import errno
import mmap
import os
import struct
import sys
from collections.abc import Callable, Iterator

try:
    import fcntl
    import resource
except ImportError:
    UNIX = False
else:
    UNIX = True

Allocate = Callable[[int, int, int], None]
"""Take disk blocks: file descriptor, first byte, count; raises OSError. `posix_fallocate` outside tests."""

Sync = Callable[[int], None]
"""Put a file's data on disk: file descriptor; raises OSError. `fdatasync` outside tests."""

LINUX = sys.platform == "linux"
_NOT_SUPPORTED = frozenset({errno.ENOTSUP, errno.ENOTTY, errno.EINVAL})
"""What F_FULLFSYNC answers on file systems that cannot, such as those of a network."""

MADV_POPULATE_WRITE = 23
"""Linux 5.14; Python has no name for it."""

OPEN_MAX = 10240
"""macOS allows no more descriptors, and calls its hard limit infinite."""
USUAL_DESCRIPTORS = 1024
"""Where the system does not tell."""

_FLOCK = struct.Struct("@hhqqi4x" if LINUX else "@qqihhi4x")
_FLOCK_FIELDS = ("type", "whence", "start", "length", "process")
if not LINUX:
    _FLOCK_FIELDS = (*_FLOCK_FIELDS[2:], *_FLOCK_FIELDS[:2])
"""struct flock; on macOS and BSD the lock's range comes first."""


def write_blocks(descriptor: int, first: int, count: int) -> None:
    """Take the disk blocks of a range by writing a byte of each as it is; nobody else may write there meanwhile.

    The file has its full size already. A file system that copies on each write may still lack space later.
    """
    step = os.fstat(descriptor).st_blksize
    for position in (first, *range(first - first % step + step, first + count, step)):
        os.pwrite(descriptor, os.pread(descriptor, 1, position) or b"\0", position)


def fsync(descriptor: int) -> None:
    """Put a file or the names in a directory on disk, on macOS past the drive's own cache too. Raises OSError."""
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


def data_ranges(descriptor: int, start: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of the runs of blocks behind `start` that hold data; outside Linux one run of all."""
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
    """Map the pages of a new, empty file writable; `start` is at a page's beginning."""
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
    """Have the kernel read no more of a mapping than is looked at, or ahead again; on other systems nothing."""
    advice = getattr(mmap, "MADV_RANDOM" if at_random else "MADV_NORMAL", None)
    if advice is not None:
        mapping = view.obj
        assert isinstance(mapping, mmap.mmap)
        mapping.madvise(advice)


def descriptor_limit() -> int:
    """Return how many descriptors this process may have now."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0] if UNIX else USUAL_DESCRIPTORS


def raise_descriptor_limit() -> None:
    """Take as many descriptors as the process may have (ulimit -Hn)."""
    if not UNIX:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = OPEN_MAX if hard == resource.RLIM_INFINITY else hard
    if soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def hold(descriptor: int) -> None:
    """Lock the file's first byte, for this process. Raises OSError, with EACCES or EAGAIN where another process has it."""
    fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0, os.SEEK_SET)


def is_held(descriptor: int) -> bool:
    """Return whether another process has a lock on the file's first byte."""
    numbers = {"type": fcntl.F_WRLCK, "whence": os.SEEK_SET, "start": 0, "length": 1, "process": 0}
    asked = _FLOCK.pack(*map(numbers.__getitem__, _FLOCK_FIELDS))
    told = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_GETLK, asked))
    return bool(told[_FLOCK_FIELDS.index("type")] != fcntl.F_UNLCK)
