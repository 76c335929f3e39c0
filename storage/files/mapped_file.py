"""A file of fixed size, mapped into memory (Apache: DefaultMappedFile).

A new file is sparse, as in Apache. Before a byte after `allocated` is written, its disk block is taken with
posix_fallocate: a full disk is an OSError there, while writing to the mapping would kill the process with SIGBUS.

A mapping is never closed explicitly: views of it travel in responses, and Python frees it with the last of them. Nothing
here ever makes a file shorter, because a view after the new end would be a SIGBUS as well. The mapping's file descriptor is
the only one kept open, so the flush thread and the reactor share none. The number of mapped files is bounded, see
`files.descriptors`.
"""

from __future__ import annotations

import errno
import mmap
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from twisted_mq.storage.errors import StoreFull
from twisted_mq.storage.files.descriptors import MappedFiles
from twisted_mq.storage.files.directory import sync_directory
from twisted_mq.storage.files.search import positions_in
from twisted_mq.storage.files.system_calls import (
    Allocate,
    Sync,
    data_ranges,
    fdatasync,
    posix_fallocate,
    read_at_random,
)

NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})
_CLEAR_CHUNK = 1 << 20
_NAME_DEPTH = 2
"""The number of directories above a file that may be as new as the file."""


class MappedFile:
    """A file of `size` bytes that contains the offsets from `first_offset` on.

    `view` is writable, `readable` is not; both are mapped at first use. `open_view` is `view` if that is mapped
    now. `wrote` is the position after the last byte written (for the file in use its owner has the exact value),
    `allocated` the position after the last byte that may be written. `unsafe_names` is how many of the last parts of the path
    may not be on disk: an fdatasync does not sync names. `at_random`: see `read_at_random`.
    """

    __slots__ = (
        "_allocate",
        "_mappings",
        "_readable",
        "allocated",
        "at_random",
        "first_offset",
        "open_view",
        "path",
        "size",
        "unsafe_names",
        "wrote",
    )

    def __init__(
        self,
        path: str,
        first_offset: int,
        size: int,
        allocate: Allocate = posix_fallocate,
        mappings: MappedFiles | None = None,
    ) -> None:
        self.path = path
        self.first_offset = first_offset
        self.size = size
        self.wrote = 0
        self.allocated = 0
        self.unsafe_names = _NAME_DEPTH
        self.at_random = False
        self._allocate = allocate
        self._mappings = mappings
        self.open_view: memoryview | None = None
        self._readable: memoryview | None = None

    @classmethod
    def create(
        cls,
        path: str,
        first_offset: int,
        size: int,
        allocate: Allocate = posix_fallocate,
        mappings: MappedFiles | None = None,
    ) -> MappedFile:
        """Create a new sparse file and return it. Raises StoreFull, OSError.

        After an error there is no file, or an empty one that could not be removed and is used the next time.
        """
        created = cls(path, first_offset, size, allocate, mappings)
        try:
            with created._open(os.O_RDWR | os.O_CREAT) as descriptor:
                if os.fstat(descriptor).st_size:
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
                os.ftruncate(descriptor, size)
        except OSError as error:
            if error.errno in NO_SPACE:
                with suppress(OSError):
                    created.delete()
                raise StoreFull(path, error) from error
            raise
        return created

    @contextmanager
    def _open(self, flags: int = os.O_RDWR) -> Iterator[int]:
        descriptor = os.open(self.path, os.O_CLOEXEC | flags, 0o644)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    @property
    def view(self) -> memoryview:
        """The whole file, writable; only bytes before `allocated` may be written. Raises OSError with the file's name."""
        if self.open_view is None:
            with self._open() as descriptor:
                self.open_view = self._mapped(descriptor)
            self._is_mapped()
        return self.open_view

    def _mapped(self, descriptor: int) -> memoryview:
        try:
            return memoryview(mmap.mmap(descriptor, self.size))
        except OSError as error:  # it names no file, so it would count as a failure of the disk
            raise OSError(error.errno, error.strerror, self.path) from error

    def _is_mapped(self) -> None:
        if self.at_random:
            self._advise()
        if self._mappings is not None:
            self._mappings.add(self)

    def read_at_random(self, at_random: bool) -> None:
        """Switch the kernel's read-ahead off or on again, for this and for later mappings."""
        if at_random != self.at_random:
            self.at_random = at_random
            self._advise()

    def _advise(self) -> None:
        for view in (self.open_view, self._readable):
            if view is not None:
                read_at_random(view, self.at_random)

    @property
    def readable(self) -> memoryview:
        """The whole file, read-only; works too if the disk is no longer writable."""
        if self._readable is None:
            self._readable = self.open_view.toreadonly() if self.open_view is not None else self._map_to_read()
            self._is_mapped()
        return self._readable

    def _map_to_read(self) -> memoryview:
        descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return memoryview(mmap.mmap(descriptor, self.size, access=mmap.ACCESS_READ))
        finally:
            os.close(descriptor)

    @property
    def end_offset(self) -> int:
        """The offset after the last byte written."""
        return self.first_offset + self.wrote

    def reserve(self, needed: int, step: int) -> int:
        """Take disk space up to position `needed` at least, in steps; return `allocated`. Raises StoreFull.

        If less than a step is left on the disk, only the space up to `needed` is tried.
        """
        if needed <= self.allocated:
            return self.allocated
        target = min(self.size, max(needed, self.allocated + step))
        if target > needed and not self._try_to_take(target):
            target = needed
        if target == needed:
            self._take(needed)
        self.allocated = target
        return target

    def _try_to_take(self, end: int) -> bool:
        try:
            self._take(end)
        except StoreFull:
            return False
        return True

    def _take(self, end: int) -> None:
        try:
            with self._open() as descriptor:
                self._allocate(descriptor, self.allocated, end - self.allocated)
        except OSError as error:
            raise StoreFull(self.path, error) from error

    def set_position(self, position: int) -> None:
        """Set where writing continues; the space after it has to be taken again."""
        self.wrote = position
        self.allocated = position

    def peek(self, position: int, size: int) -> bytes | memoryview:
        """Return the same bytes as `readable`, without mapping the file for them."""
        mapped = self._readable or self.open_view
        if mapped is not None:
            return mapped[position : position + size]
        with self._open(os.O_RDONLY) as descriptor:
            return os.pread(descriptor, size, position)

    def first_data(self) -> tuple[bytes, bool]:
        """Return the file's data up to its first hole, and whether that is all of its data."""
        with self._open(os.O_RDONLY) as descriptor:
            ranges = data_ranges(descriptor, 0, self.size)
            start, end = next(ranges, (0, 0))
            return (b"", False) if start else (os.pread(descriptor, end, 0), next(ranges, None) is None)

    def clear_from(self, position: int, before: Callable[[], None] = lambda: None) -> int:
        """Zero everything after `position`, so that no later recovery takes it for data; return the bytes cleared.

        Only blocks with data are written, so no disk space is needed and none is freed. `before` is called
        first if there is a byte that is not zero.
        """
        with self._open() as descriptor:
            ranges = data_ranges(descriptor, position, self.size)
            return sum(self._clear(descriptor, start, end, before) for start, end in ranges)

    def _clear(self, descriptor: int, start: int, end: int, before: Callable[[], None]) -> int:
        cleared = 0
        for data in _chunks(descriptor, start, end):
            if data.count(0) != len(data):
                before()
                self.view[start : start + len(data)] = bytes(len(data))
                cleared += len(data.rstrip(b"\0"))
            start += len(data)
        return cleared

    def has_data(self) -> bool:
        """Return whether any byte of the file is not zero."""
        with self._open(os.O_RDONLY) as descriptor:
            ranges = data_ranges(descriptor, 0, self.size)
            return any(
                chunk.count(0) != len(chunk) for start, end in ranges for chunk in _chunks(descriptor, start, end)
            )

    def find_all(self, data: bytes, position: int) -> Iterator[int]:
        """Yield the positions of these bytes from `position` on; blocks without data are skipped."""
        mapping = self.view.obj
        assert isinstance(mapping, mmap.mmap)
        with self._open() as descriptor:
            ranges = list(data_ranges(descriptor, position, self.size))
        for start, end in ranges:
            yield from positions_in(mapping, data, start, end)

    def sync(self, sync: Sync = fdatasync) -> None:
        """Put everything written on disk, and the first time the names that lead to it. Raises OSError.

        A file that was deleted meanwhile needs no sync.

        Safe in any thread: it uses its own descriptor and releases the interpreter lock meanwhile.
        """
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return
        try:
            sync(descriptor)
        finally:
            os.close(descriptor)
        self._sync_names()

    def _sync_names(self) -> None:
        directory = self.path
        for _ in range(self.unsafe_names):
            directory = os.path.dirname(directory)
            try:
                sync_directory(directory)
            except FileNotFoundError:
                return
        self.unsafe_names = 0

    def release(self) -> None:
        """Release the mapping; views that others hold stay valid. A second call does nothing."""
        self.open_view = self._readable = None
        if self._mappings is not None:
            self._mappings.discard(self)

    def delete(self) -> None:
        """Delete the file and release it; a file that is already gone is no error."""
        self.release()
        try:
            os.unlink(self.path)
        except FileNotFoundError:
            return


def _chunks(descriptor: int, start: int, end: int) -> Iterator[bytes]:
    """Yield the bytes from `start` to `end`, in parts. They are read and not mapped: a start does this with all queues."""
    for first in range(start, end, _CLEAR_CHUNK):
        yield os.pread(descriptor, min(end - first, _CLEAR_CHUNK), first)
