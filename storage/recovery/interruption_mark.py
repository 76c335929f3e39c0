"""A mark on disk that makes it harmless to interrupt work on the queues.

The abort file and the checkpoint vouch for the contents of the queues. Before code removes part of these contents, it
sets the mark: the abort file is there, and the checkpoint vouches for no queue. A start that finds the mark walks through
the whole log and writes the entries that any queue lacks, however far the work had come.
"""

from __future__ import annotations

import os

import attrs

from twisted_mq.storage.files.checkpoint import Checkpoint
from twisted_mq.storage.files.directory import StoreDirectory, sync_directory
from twisted_mq.storage.files.paths import StorePaths
from twisted_mq.storage.files.system_calls import Sync, fdatasync


@attrs.define
class Unfinished:
    """The mark of one store, whose lock the caller holds. After `begin` either `end` or `take_back` is called."""

    paths: StorePaths
    sync: Sync = fdatasync
    begun: bool = attrs.field(init=False, default=False)
    _was_closed: bool = attrs.field(init=False, default=False)
    _before: Checkpoint = attrs.field(init=False)

    def begin(self, *, index: bool = False) -> None:
        """Put the mark on disk; if it is already there, nothing happens. Raises StoreUnwritable, OSError.

        With `index` the checkpoint vouches for no index file either.
        """
        if self.begun:
            return
        self._was_closed = not os.path.exists(self.paths.abort)
        self._before = Checkpoint.load(self.paths.checkpoint)
        unsure = attrs.evolve(self._before, logics_msg_timestamp=0)
        if index:
            unsure.index_msg_timestamp = 0
        unsure.save(self.sync)
        StoreDirectory(self.paths).mark_running()
        self.begun = True

    def end(self, checkpoint: Checkpoint) -> None:
        """Remove the mark once all queues are on disk up to `checkpoint`; the store stays open. Raises OSError."""
        if self.begun:
            checkpoint.save(self.sync)
            self.begun = False

    def take_back(self) -> None:
        """Restore abort file and checkpoint once all queues are on disk. Raises OSError."""
        if not self.begun:
            return
        self._before.save(self.sync)
        if self._was_closed:
            os.unlink(self.paths.abort)
            sync_directory(self.paths.root)
        self.begun = False
