"""All index files of a store, oldest first: new keys go into the last one, searches from the last to the first.

Apache: IndexService. Files are named by the local time of their creation, yyyyMMddHHmmssSSS. A full file is put on disk
by the flush thread, and then recorded in the checkpoint; the last file only when the store is closed. So after a crash
only full files up to the checkpoint's time are trusted, and the rest is built again from the log.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Sequence

from twisted_mq.protocol.layouts.index import IndexSizes, index_key, key_hash
from twisted_mq.protocol.layouts.index_columns import Keys
from twisted_mq.storage.errors import StoreFull
from twisted_mq.storage.files.directory import sync_directory
from twisted_mq.storage.files.mapped_file import NO_SPACE
from twisted_mq.storage.files.system_calls import Allocate, posix_fallocate
from twisted_mq.storage.index.index_file import KeyEntry
from twisted_mq.storage.index.index_writer import IndexFile
from twisted_mq.storage.log.commit_log import CommitLog

Report = Callable[[str, int, str], None]
"""Called for each finding of a start: path, physical offset, what was done."""


def time_name(timestamp_ms: int) -> str:
    """Return a file's name: 20261120231855001 (Apache: UtilAll.timeMillisToHumanString)."""
    return f"{time.strftime('%Y%m%d%H%M%S', time.localtime(timestamp_ms // 1000))}{timestamp_ms % 1000:03d}"


class IndexService:
    """The index files in `directory`; `load` comes first. `full_files` wait for the flush thread."""

    def __init__(
        self, directory: str, sizes: IndexSizes, now_ms: Callable[[], int], allocate: Allocate = posix_fallocate
    ) -> None:
        self.directory = directory
        self.sizes = sizes
        self.files: list[IndexFile] = []
        self.full_files: deque[IndexFile] = deque()
        self._now_ms = now_ms
        self._allocate = allocate

    @property
    def end_physical_offset(self) -> int:
        """The physical offset of the newest record that has a key here; -1 without any."""
        return self.files[-1].end_physical_offset if self.files else -1

    @property
    def end_timestamp(self) -> int:
        """The store time of that record in ms; 0 without any."""
        return self.files[-1].end_timestamp if self.files else 0

    @property
    def size_bytes(self) -> int:
        """The total size of all files, holes included (Apache: getTotalSize)."""
        return len(self.files) * self.sizes.file_bytes

    # Start

    def load(self, log: CommitLog, safe_timestamp: int | None, report: Report) -> None:
        """Take the files that can be trusted and delete the others, whose keys are rebuilt from the log's records.

        `safe_timestamp` is the checkpoint's after a crash, None after a clean stop. The files after a deleted one are deleted
        too: keys are written in the log's order. The newest goes first, so that an interruption leaves no hole.
        """
        names = self._names()
        for position, name in enumerate(names):
            path = os.path.join(self.directory, name)
            offset, fault = self._take(path, log, safe_timestamp)
            if fault:
                more = f", with {len(names) - position - 1} newer files" if position + 1 < len(names) else ""
                report(path, offset, f"{fault}; the index is rebuilt from here on{more}")
                for doomed in reversed(names[position:]):
                    os.unlink(os.path.join(self.directory, doomed))
                    sync_directory(self.directory)
                return

    def _names(self) -> list[str]:
        try:
            return sorted(name for name in os.listdir(self.directory) if name.isascii() and name.isdigit())
        except FileNotFoundError:
            return []

    def _take(self, path: str, log: CommitLog, safe_timestamp: int | None) -> tuple[int, str]:
        """Open one file; return where it begins in the log, and why it cannot be kept."""
        size = os.stat(path).st_size
        if size != self.sizes.file_bytes:
            expected = f"maxHashSlotNum and maxIndexNum mean {self.sizes.file_bytes}"
            return max(0, self.end_physical_offset), f"has {size} bytes, {expected}"
        file = IndexFile.open(path, self.sizes, self._allocate)
        fault = file.fault() or self._misfit(file, log)
        if not fault and safe_timestamp is not None and not self._is_on_disk(file, safe_timestamp):
            fault = "may not be on disk whole after the crash"
        if fault:
            file.release()
            return max(0, file.begin_physical_offset), fault
        self.files.append(file)
        return 0, ""

    def _misfit(self, file: IndexFile, log: CommitLog) -> str:
        """Return why the file does not fit the log or the file before it; empty if it fits."""
        if file.begin_physical_offset < self.end_physical_offset:
            return f"begins before {self.end_physical_offset}, where the file before it ends"
        end = file.end_physical_offset
        if end >= log.max_offset and file.index_count > 1:
            return f"leads to {end}, past the end of the log at {log.max_offset}"
        if end >= log.min_offset and file.index_count > 1 and log.record_at(end) is None:
            return f"ends with {end}, where no record begins"
        return ""

    def _is_on_disk(self, file: IndexFile, safe_timestamp: int) -> bool:
        """Return whether a full file was flushed before the checkpoint said so; with equal end times only the first counts."""
        before = self.files[-1].end_timestamp if self.files else -1
        return file.is_full and before < file.end_timestamp <= safe_timestamp

    # Writing

    def put(self, keys: Keys | Sequence[KeyEntry]) -> None:
        """Write keys in the log's order. Raises StoreFull; then keys of the last record may be missing."""
        while len(keys):
            keys = keys[self._open_file().put(keys) :]

    def _open_file(self) -> IndexFile:
        """Return the file that takes the next key."""
        last = self.files[-1] if self.files else None
        if last is not None and not last.is_full:
            return last
        path = os.path.join(self.directory, self._new_name())
        try:
            os.makedirs(self.directory, exist_ok=True)
            created = IndexFile.create(path, self.sizes, last, self._allocate)
        except OSError as error:
            if error.errno in NO_SPACE:
                raise StoreFull(path, error) from error
            raise
        self.files.append(created)
        if last is not None:
            self.full_files.append(last)
        return created

    def _new_name(self) -> str:
        """Return a name from the clock that is always later than the last file's: names give the files' order."""
        name = time_name(self._now_ms())
        last = os.path.basename(self.files[-1].path) if self.files else ""
        return name if name > last else str(int(last) + 1)

    def without_known(self, keys: Keys) -> Keys:
        """Return the keys that are missing here because a start or a full disk interrupted the writing."""
        last = self.end_physical_offset
        new = keys["physical_offset"] > last
        for row in (keys["physical_offset"] == last).nonzero()[0].tolist():
            new[row] = not self._has(keys[row].tolist())
        return keys[new]

    def _has(self, key: KeyEntry) -> bool:
        """Return whether a key of the last record is here; the files that end with that record are searched."""
        for file in reversed(self.files):
            if file.end_physical_offset < key[1]:
                break
            for entry in file.chain(key[0]):
                if entry.physical_offset < key[1]:
                    break
                if (entry.key_hash, entry.physical_offset) == key[:2]:
                    return True
        return False

    # Searching

    def query_offset(self, topic: str, key: str, max_count: int, begin: int, end: int) -> list[int]:
        """Return the physical offsets of records with that key's hash, stored from `begin` to `end` ms, newest first."""
        found: list[int] = []
        wanted = key_hash(index_key(topic, key))
        for file in reversed(self.files):
            if file.is_time_matched(begin, end):
                file.select(found, wanted, max_count, begin, end)
            if file.begin_timestamp < begin or len(found) >= max_count:
                break
        return found

    # Life

    def trim(self, min_offset: int) -> list[str]:
        """Forget the files that only lead to before `min_offset`, but never the last; return their paths for removal."""
        expired = []
        while len(self.files) > 1 and self.files[0].end_physical_offset < min_offset:
            file = self.files.pop(0)
            file.release()
            expired.append(file.path)
        return expired

    def release(self) -> None:
        """Release all files."""
        for file in self.files:
            file.release()
        self.files.clear()
        self.full_files.clear()
