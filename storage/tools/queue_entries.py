"""Reads the entries of a consume queue from its files as numpy rows, without changes."""

from __future__ import annotations

import numpy as np

from twisted_mq.protocol.columns import Entries, Mask, Numbers
from twisted_mq.protocol.layouts.queue_entry import FILLER_SIZE, MAX_EXTENSION_ADDRESS
from twisted_mq.storage.queues.queue_files import QueueFiles


class QueueEntries:
    """The entries [min_offset, max_offset) at the time of creation; `refresh` reads again.

    `seen` tells for each entry whether its record was found.
    """

    def __init__(self, files: QueueFiles) -> None:
        self.files = files
        self.topic, self.queue_id, self.directory = files.topic, files.queue_id, files.directory
        self.min_offset, self.max_offset = files.min_offset, files.max_offset
        self.seen = np.zeros(self.max_offset - self.min_offset, np.bool_)

    def refresh(self) -> None:
        """Let `at` see the entries written since; `seen` and `unseen` still cover those of the first read."""
        self.files = QueueFiles(self.topic, self.queue_id, self.directory)
        self.max_offset = max(self.max_offset, self.files.max_offset)

    def at(self, offsets: Numbers) -> Entries:
        """Return the entries at these queue offsets; zeros (size 0: no entry) outside the written ones."""
        return self.files.rows(offsets)

    def fits(self, records: Numbers) -> Mask:
        """Return which records (queue offset, physical offset, size, tags code) match the entry at their queue offset.

        If an entry has an extension, its tags code is there and is not compared.
        """
        entries = self.at(records[:, 0])
        same: Mask = (entries["physical_offset"] == records[:, 1]) & (entries["size"] == records[:, 2])
        codes = entries["tags_code"]
        same &= (codes == records[:, 3]) | (codes <= MAX_EXTENSION_ADDRESS)
        return same

    def mark(self, offsets: Numbers) -> None:
        """Note that the records of the entries at these queue offsets were found."""
        places = offsets - self.min_offset
        self.seen[places[places < len(self.seen)]] = True

    def unseen(self, min_physical_offset: int) -> tuple[Numbers, Entries]:
        """Return (queue offsets, entries) without a found record; fillers and entries before the log's beginning are left out."""
        offsets = np.flatnonzero(~self.seen) + self.min_offset
        entries = self.at(offsets)
        odd = (entries["size"] != FILLER_SIZE) & (entries["physical_offset"] >= min_physical_offset)
        return offsets[odd], entries[odd]

    def first_physical_offset(self, min_physical_offset: int) -> int | None:
        """Return the place of the first record that the queue leads to and the log may still have; None without one."""
        for begin in range(self.min_offset, self.max_offset, 4096):
            entries = self.at(np.arange(begin, min(begin + 4096, self.max_offset)))
            kept = (entries["size"] != FILLER_SIZE) & (entries["physical_offset"] >= min_physical_offset)
            if kept.any():
                return int(entries["physical_offset"][kept][0])
        return None

    def reached(self) -> int:
        """Return the physical offset after the last record that an entry leads to; 0 without one."""
        if self.max_offset == self.min_offset:
            return 0
        (last,) = self.at(np.array([self.max_offset - 1]))
        return 0 if last["size"] == FILLER_SIZE else int(last["physical_offset"]) + int(last["size"])
