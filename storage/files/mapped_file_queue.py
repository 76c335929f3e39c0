"""The files of a directory as one run of bytes, with equal sizes and offsets as names (Apache: MappedFileQueue)."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator

import attrs

from twisted_mq.storage.errors import StoreFull
from twisted_mq.storage.files.descriptors import MappedFiles
from twisted_mq.storage.files.mapped_file import MappedFile
from twisted_mq.storage.files.paths import file_name, file_offset
from twisted_mq.storage.files.system_calls import Allocate, posix_fallocate


@attrs.frozen
class OddFile:
    """A file that does not fit into the run of files: it has another size, or its offset is no multiple of the size."""

    path: str
    actual_bytes: int


@attrs.frozen
class Truncation:
    """The losses of a truncation: deleted files with data, and bytes of data in the file that was cut.

    Files without data (made ahead by Apache's AllocateMappedFileService) are deleted too but not reported.
    """

    deleted_files: tuple[str, ...] = ()
    cleared_bytes: int = 0

    def __bool__(self) -> bool:
        return bool(self.deleted_files or self.cleared_bytes)


def _nothing() -> None:
    """Do nothing: the default for `before_loss`."""


class MappedFileQueue:
    """Mapped files in the order of their offsets. The directory is created with the first file.

    `name_depth` is how many directories above a file may be created with it. `before_loss` is called before `load` or
    `truncate` removes data, or an empty file that may once have had data.
    """

    def __init__(
        self,
        directory: str,
        file_size: int,
        allocate: Allocate = posix_fallocate,
        name_depth: int = 2,
        mappings: MappedFiles | None = None,
    ) -> None:
        self.directory = directory
        self.name_depth = name_depth
        self.file_size = file_size
        self.files: list[MappedFile] = []
        self.dropped_empty: str | None = None
        self.before_loss: Callable[[], None] = _nothing
        self._allocate = allocate
        self._mappings = mappings

    def load(self) -> list[OddFile]:
        """Find the files on disk; all count as full until recovery decides otherwise. Returns the files left out.

        A crash between creating and sizing a file leaves an empty last file: it is deleted, as in Apache.
        """
        self.release()
        self.files, odd = [], []
        self.dropped_empty = None
        found = self._on_disk()
        for index, (offset, path, size) in enumerate(found):
            if size == 0 and index == len(found) - 1:
                self.before_loss()
                os.unlink(path)
                self.dropped_empty = path
            elif size != self.file_size or offset % self.file_size:
                odd.append(OddFile(path, size))
            else:
                loaded = MappedFile(path, offset, self.file_size, self._allocate, self._mappings)
                loaded.set_position(self.file_size)
                loaded.unsafe_names = self.name_depth
                self.files.append(loaded)
        return odd

    def lengthen_last(self, odd: OddFile) -> bool:
        """Fill up a file that is too short with zeros if it follows the last loaded one; return whether it does."""
        expected = os.path.join(self.directory, file_name(self.max_offset))
        if not self.files or odd.path != expected or odd.actual_bytes > self.file_size:
            return False
        os.truncate(odd.path, self.file_size)
        lengthened = MappedFile(odd.path, self.max_offset, self.file_size, self._allocate, self._mappings)
        lengthened.set_position(self.file_size)
        lengthened.unsafe_names = self.name_depth
        self.files.append(lengthened)
        return True

    def _on_disk(self) -> list[tuple[int, str, int]]:
        """Return (offset, path, size) of every file whose name is an offset, in order."""
        found = []
        try:
            with os.scandir(self.directory) as entries:
                for entry in entries:
                    offset = file_offset(entry.name)
                    if offset is not None and entry.is_file(follow_symlinks=False):
                        found.append((offset, entry.path, entry.stat().st_size))
        except FileNotFoundError:
            return []
        return sorted(found)

    def missing(self) -> str | None:
        """Return the path of the first file that is missing between two others; None without a hole."""
        for before, after in zip(self.files, self.files[1:], strict=False):
            expected = before.first_offset + self.file_size
            if after.first_offset != expected:
                return os.path.join(self.directory, file_name(expected))
        return None

    @property
    def min_offset(self) -> int:
        """The offset of the first byte; 0 without files."""
        return self.files[0].first_offset if self.files else 0

    @property
    def max_offset(self) -> int:
        """The offset after the last byte written; 0 without files."""
        return self.files[-1].end_offset if self.files else 0

    def find(self, offset: int) -> MappedFile | None:
        """Return the file that contains an offset."""
        files = self.files
        if not files:
            return None
        index = (offset - files[0].first_offset) // self.file_size
        if 0 <= index < len(files):
            return files[index]
        return None

    def append_file(self, offset: int) -> MappedFile:
        """Create the file that contains `offset`, after all others. Raises StoreFull."""
        first = offset - offset % self.file_size
        path = os.path.join(self.directory, file_name(first))
        try:
            os.makedirs(self.directory, exist_ok=True)
            created = MappedFile.create(path, first, self.file_size, self._allocate, self._mappings)
        except OSError as error:
            raise StoreFull(path, error) from error
        created.unsafe_names = self.name_depth
        self.files.append(created)
        return created

    def from_offset(self, offset: int) -> Iterator[MappedFile]:
        """Yield the files from the one that contains `offset` on."""
        for file in self.files:
            if file.first_offset + self.file_size > offset:
                yield file

    def drop_first(self, count: int) -> list[str]:
        """Forget the first `count` files; return their paths, oldest first, for the caller to delete."""
        dropped = self.files[:count]
        del self.files[:count]
        for file in dropped:
            file.release()
        return [file.path for file in dropped]

    def truncate(self, offset: int) -> Truncation:
        """Forget everything from `offset` on: later files are deleted, the rest of its file is zeroed.

        Later files go first, so that a crash meanwhile never leaves a hole.
        """
        deleted = []
        while self.files and self.files[-1].first_offset > offset:
            last = self.files.pop()
            if last.has_data():
                self.before_loss()
                deleted.append(last.path)
            last.delete()
        cleared = 0
        if self.files and offset < self.files[-1].first_offset + self.file_size:
            last = self.files[-1]
            cleared = last.clear_from(offset - last.first_offset, self.before_loss)
            last.set_position(offset - last.first_offset)
        return Truncation(tuple(deleted), cleared)

    def release(self) -> None:
        """Release the mappings of all files."""
        for file in self.files:
            file.release()

    def destroy(self) -> None:
        """Delete all files, and the directory if it is empty then."""
        while self.files:
            self.files.pop().delete()
        try:
            os.rmdir(self.directory)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTEMPTY, errno.EEXIST):
                raise

    def destroy_all(self) -> None:
        """Delete every file of the directory whose name is an offset, whatever its size."""
        self.release()
        self.files = []
        for _, path, _ in reversed(self._on_disk()):
            os.unlink(path)
