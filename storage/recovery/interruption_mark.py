"""What makes it harmless to interrupt work on the queues: a mark on disk for the next start.

The abort file and the checkpoint vouch for what is in the queues. Whoever is about to take something of that away says
so first: the abort file is there, and the checkpoint knows of no queue on disk. A start that finds this walks through
the whole log and writes what any queue misses, wherever the work had come to.
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
    """The mark of one store, whose lock the caller holds. Afterwards either `end` or `take_back`."""

    paths: StorePaths
    sync: Sync = fdatasync
    begun: bool = attrs.field(init=False, default=False)
    _was_closed: bool = attrs.field(init=False, default=False)
    _before: Checkpoint = attrs.field(init=False)

    def begin(self, *, index: bool = False) -> None:
        """Put the mark on disk; when it is there already nothing happens. Raises StoreUnwritable, OSError.

        With `index` the checkpoint knows of no index file either.
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
        """All queues are on disk up to what `checkpoint` says; the store stays open. Raises OSError."""
        if self.begun:
            checkpoint.save(self.sync)
            self.begun = False

    def take_back(self) -> None:
        """All queues are on disk; abort file and checkpoint become what they were. Raises OSError."""
        if not self.begun:
            return
        self._before.save(self.sync)
        if self._was_closed:
            os.unlink(self.paths.abort)
            sync_directory(self.paths.root)
        self.begun = False
