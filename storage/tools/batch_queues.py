"""Batch queues for `mq store`: reads their entries as numpy rows, and writes a queue again from the records of the log.

Rows of records have six columns here: the queue offset of the first message, physical offset, size, tags code, store
time, messages. Memory use is 8 bytes for each entry that is read, and 46 for each one that is written.
"""

from __future__ import annotations

import bisect
import os
from array import array

import attrs
import numpy as np

from twisted_mq.protocol.columns import Entries, Mask, Numbers, Positions
from twisted_mq.protocol.flags import MessageSysFlag
from twisted_mq.protocol.layouts.batch_entry import inner_count
from twisted_mq.protocol.layouts.queue_entry import BATCH_ENTRY, BATCH_ENTRY_BYTES, NO_COMPACT_OFFSET
from twisted_mq.protocol.text.properties import decode_property_bytes
from twisted_mq.storage.columns.record_columns import RecordColumns
from twisted_mq.storage.files import system_calls
from twisted_mq.storage.files.directory import sync_directory
from twisted_mq.storage.files.paths import file_name
from twisted_mq.storage.queues.queue_files import BatchQueueFiles

_COLUMNS = ("msg_base_offset", "physical_offset", "size", "tags_code", "store_time", "batch_num")
LARGEST_HOLE = 50_000_000
"""A record that skips more messages than this has a damaged queue offset."""


def message_counts(batch: RecordColumns) -> Numbers:
    """Return how many messages each record holds: more than one only in inner batches."""
    counts = np.ones(len(batch), np.int64)
    inner = np.flatnonzero(batch.sys_flag & MessageSysFlag.INNER_BATCH_FLAG)
    if len(inner):
        counts[inner] = [inner_count(decode_property_bytes(text)) for text in batch.property_texts(inner)]
    return counts


def batch_columns(batch: RecordColumns, rows: Numbers, records: Numbers) -> Numbers:
    """Return the six columns for these rows, whose first four are `records`."""
    return np.column_stack((records, batch.store_timestamp[rows], message_counts(batch.rows(rows))))


class BatchQueueEntries:
    """The entries of a batch queue, with the methods of QueueEntries; offsets are those of first messages."""

    def __init__(self, files: BatchQueueFiles) -> None:
        self.topic, self.queue_id, self.directory = files.topic, files.queue_id, files.directory
        self._load(files)
        self.seen = np.zeros(len(self._bases), np.bool_)

    def _load(self, files: BatchQueueFiles) -> None:
        self._files = files
        self._bases: Numbers = self._rows(np.arange(files.end_place - files.begin_place))["msg_base_offset"].astype(
            np.int64
        )
        self._order = np.argsort(self._bases, kind="stable")
        self.min_offset = int(self._bases[0]) if len(self._bases) else 0
        self.max_offset = files.max_offset

    def refresh(self) -> None:
        """Let `at` see the entries written since; `seen` and `unseen` still cover those of the first read."""
        self._load(BatchQueueFiles(self.topic, self.queue_id, self.directory))

    def _rows(self, places: Numbers) -> Entries:
        """Return the entries at these places, counted from the first one."""
        return self._files.rows(places + self._files.begin_place)

    def _places(self, offsets: Numbers) -> tuple[Mask, Positions]:
        """Return which of the offsets begin an entry, and the places of those entries."""
        order = self._order
        at = np.searchsorted(self._bases, offsets, sorter=order)
        inside = at < len(order)
        begins = np.zeros(len(offsets), np.bool_)
        begins[inside] = self._bases[order[at[inside]]] == offsets[inside]
        return begins, order[at[begins]]

    def at(self, offsets: Numbers) -> Entries:
        """Return the entries that begin at these offsets; zeros (size 0: no entry) if none does."""
        found = np.zeros(len(offsets), BatchQueueFiles.dtype)
        begins, places = self._places(offsets)
        found[begins] = self._rows(places)
        return found

    def fits(self, records: Numbers) -> Mask:
        """Return which records are those that the entries at their offsets lead to."""
        entries = self.at(records[:, 0])
        same = np.ones(len(records), np.bool_)
        for column, name in enumerate(_COLUMNS):
            same &= entries[name] == records[:, column]
        return same

    def mark(self, offsets: Numbers) -> None:
        """Note that the records of the entries at these offsets were found."""
        _, places = self._places(offsets)
        self.seen[places[places < len(self.seen)]] = True

    def unseen(self, min_physical_offset: int) -> tuple[Numbers, Entries]:
        """Return (offsets, entries) of the entries whose record was not found, without those before the log's beginning."""
        places = np.flatnonzero(~self.seen)
        entries = self._rows(places)
        odd = entries["physical_offset"] >= min_physical_offset
        return self._bases[places[odd]], entries[odd]

    def first_physical_offset(self, min_physical_offset: int) -> int | None:
        """Return the place of the first record that the queue leads to and the log may still have; None without one."""
        for begin in range(0, len(self._bases), 4096):
            offsets = self._rows(np.arange(begin, min(begin + 4096, len(self._bases))))["physical_offset"]
            kept = offsets >= min_physical_offset
            if kept.any():
                return int(offsets[kept][0])
        return None

    def reached(self) -> int:
        """Return the physical offset after the last record that an entry leads to; 0 without one."""
        if not len(self._bases):
            return 0
        (last,) = self._rows(np.array([len(self._bases) - 1]))
        return int(last["physical_offset"]) + int(last["size"])


@attrs.define
class BatchQueueWriter:
    """Takes the queue's records in the order of the log; `finish` writes the files. With `directory` None it only counts.

    If a record begins lower than its predecessor ends, the topic was created again if the next record follows it or if it begins
    at 0. Otherwise its queue offset is damaged, and it gets no entry. Raises OSError.
    """

    directory: str | None
    file_size: int
    bridges: int = 0
    left_out: list[tuple[int, ...]] = attrs.field(factory=list)
    _bases: array[int] = attrs.field(factory=lambda: array("q"))
    _data: bytearray = attrs.field(factory=bytearray)
    _next: int = 0
    _doubtful: list[int] | None = None

    @property
    def entries(self) -> int:
        """Return how many entries were written."""
        return len(self._bases)

    def add(self, records: Numbers) -> None:
        """Take the queue's next records."""
        for row in records.tolist():
            self._settle(row[0])
            if row[0] < self._next:
                self._doubtful = row
            elif self._bases and row[0] - self._next > LARGEST_HOLE:
                self.left_out.append(tuple(row))
            else:
                self._append(row)

    def _settle(self, next_offset: int) -> None:
        """Decide about a record with a lower offset, now that the next record is known."""
        row, self._doubtful = self._doubtful, None
        if row is None:
            return
        if next_offset != row[0] + row[5]:
            self.left_out.append(tuple(row))
            return
        place = bisect.bisect_left(self._bases, row[0])
        del self._bases[place:], self._data[place * BATCH_ENTRY_BYTES :]
        self._append(row)

    def _append(self, row: list[int]) -> None:
        base, physical_offset, size, tags_code, store_time, count = row
        self._bases.append(base)
        self._data += BATCH_ENTRY.pack(physical_offset, size, tags_code, store_time, base, count, NO_COMPACT_OFFSET, 0)
        self._next = base + count

    def finish(self) -> None:
        """Write everything and put it on disk. If the last record fell back to 0, its topic was created again."""
        if self._doubtful is not None:
            self._settle(self._doubtful[5] if self._doubtful[0] == 0 else -1)
        if self.directory is None or not self._data:
            return
        os.makedirs(self.directory, exist_ok=True)
        for first in range(0, len(self._data), self.file_size):
            with open(os.path.join(self.directory, file_name(first)), "xb") as file:
                file.write(self._data[first : first + self.file_size])
                file.truncate(self.file_size)
                file.flush()
                system_calls.fdatasync(file.fileno())
        sync_directory(self.directory)
