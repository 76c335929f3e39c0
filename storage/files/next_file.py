"""Makes the commit log's next file before it is needed (Apache: AllocateMappedFileService, DefaultMappedFile.warmMappedFile).

A thread creates, sizes and maps the file and takes its first disk blocks, so that the log only has to take it over. A file
made in advance is empty: after a crash, recovery deletes it as it does with Apache's; a clean stop deletes it itself.

Warming takes all of the file's blocks and touches all of its pages, so that no append waits for either. It works in
small pieces, because each of them holds the interpreter lock.
"""

from __future__ import annotations

import logging
import os
import threading

from twisted_mq.storage.errors import StoreFull
from twisted_mq.storage.files.mapped_file import MappedFile
from twisted_mq.storage.files.paths import file_name
from twisted_mq.storage.files.system_calls import Allocate, Sync, fdatasync, posix_fallocate, touch

logger = logging.getLogger(__name__)

PAGE_BYTES = 4096
_WARM_BYTES = 256 << 10
"""The bytes touched at a time: about 0.1 ms."""


class NextFile:
    """At most one file made in advance. All methods are called in the store's thread.

    `warm_pages` is the number of touched pages after which the file is put on disk while it is warmed, 0 for never; None
    without warming (Apache: flushLeastPagesWhenWarmMapedFile under SYNC_FLUSH).
    """

    def __init__(
        self,
        directory: str,
        file_size: int,
        step: int,
        *,
        warm_pages: int | None = None,
        allocate: Allocate = posix_fallocate,
        sync: Sync = fdatasync,
        pause_seconds: float = 0.001,
    ) -> None:
        self._directory = directory
        self._file_size = file_size
        self._step = step
        self._warm_pages = warm_pages
        self._allocate = allocate
        self._sync = sync
        self._pause = pause_seconds
        self._offset: int | None = None
        self._thread: threading.Thread | None = None
        self._wanted_now = threading.Event()
        self._made: MappedFile | None = None

    def request(self, offset: int) -> None:
        """Begin to make the file that starts at `offset`, unless that was requested before."""
        if self._offset == offset:
            return
        self.discard()
        self._offset = offset
        self._wanted_now.clear()
        self._thread = threading.Thread(target=self._make, args=(offset,), name="store-next-file", daemon=True)
        self._thread.start()

    def take(self, offset: int) -> MappedFile | None:
        """Return the file made for `offset`, after waiting for its completion if necessary; None if it was not made.

        A file made for another offset is deleted.
        """
        if self._offset != offset:
            self.discard()
            return None
        self._join()
        made, self._made, self._offset = self._made, None, None
        return made

    def discard(self) -> None:
        """Delete a file that was made and not taken. A second call does nothing."""
        self._join()
        made, self._made, self._offset = self._made, None, None
        if made is not None:
            made.delete()

    def _join(self) -> None:
        self._wanted_now.set()
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()

    # In the thread

    def _make(self, offset: int) -> None:
        path = os.path.join(self._directory, file_name(offset))
        made: MappedFile | None = None
        try:
            made = MappedFile.create(path, offset, self._file_size, self._allocate)
            made.reserve(self._step, self._step)
            made.view[0] = 0
            if self._warm_pages is not None:
                self._warm(made, self._warm_pages)
            self._made = made
        except (StoreFull, OSError) as error:
            logger.warning(
                "next log file not created in advance, retrying when it is needed: file=%s error=%s", path, error
            )
            if made is not None:
                made.delete()

    def _warm(self, file: MappedFile, sync_pages: int) -> None:
        file.reserve(file.size, file.size)
        touched = 0
        for start in range(0, file.size, _WARM_BYTES):
            if self._wanted_now.wait(self._pause):
                return
            end = min(file.size, start + _WARM_BYTES)
            touch(file.view, start, end)
            touched += end - start
            if sync_pages and touched >= sync_pages * PAGE_BYTES:
                file.sync(self._sync)
                touched = 0
