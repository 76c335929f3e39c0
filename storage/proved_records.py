"""Proves that a record begins at a physical offset named by a peer or by a file outside the log.

A body may contain bytes that look like a record and name their own place. No queue entry leads to such a place, and a walk
over the file's records skips it, because each record tells where the next one begins.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Generator
from mmap import mmap

from twisted_mq.protocol.errors import RecordError
from twisted_mq.protocol.layouts.ordinary_records import pass_records
from twisted_mq.protocol.layouts.queue_entry import ENTRY_FIELDS
from twisted_mq.protocol.layouts.record import MAGICS, SMALLEST_RECORD, read_head, read_spans, unpack_place
from twisted_mq.protocol.text.java import from_utf8
from twisted_mq.storage.appending.dispatch import Dispatcher
from twisted_mq.storage.files.mapped_file import MappedFile
from twisted_mq.storage.log.commit_log import CommitLog
from twisted_mq.storage.queues.queue_table import QueueTable

STEP_BYTES = 2 << 20
"""The bytes of the log that one step of a walk reads: at most 8 ms, with the smallest records."""
MOST_FILES_KNOWN = 64
"""The number of files for which the places reached by walks are kept, one each `STEP_BYTES`."""


class ProvedRecords:
    """Finds records of an open store."""

    def __init__(self, log: CommitLog, queues: QueueTable, dispatcher: Dispatcher) -> None:
        self._log = log
        self._queues = queues
        self._dispatcher = dispatcher
        self._passed: dict[int, list[int]] = {}

    def at(self, offset: int) -> memoryview | None:
        """Return the record at `offset` if its queue's entry leads there or if it waits to become visible; else None.

        The log's first record and the first record of a file need no entry. The cost is one entry, however long the log is.
        """
        record = self._log.record_at(offset)
        if record is None or offset % self._log.file_size == 0 or offset == self._log.min_offset:
            return record
        return record if self._is_named(record, offset) or self._is_pending(offset) else None

    def _is_named(self, record: memoryview, offset: int) -> bool:
        try:
            head = read_head(record)
            spans = read_spans(record, 0, head)
        except RecordError:
            return False
        queue = self._queues.get(from_utf8(record[spans.topic : spans.topic_end]), head.queue_id)
        entry = queue.entry(head.queue_offset) if queue is not None else None
        return entry is not None and entry[0] == offset

    def _is_pending(self, offset: int) -> bool:
        """Return whether a record waits at `offset`.

        Items are in the order of their ends. Those put together have one store timestamp, and may lie between each other.
        """
        pending = self._dispatcher.pending
        behind = pending[bisect_right(pending, offset, key=lambda one: one[1] + one[2]) :]
        return any(
            offset == first or (first < offset and isinstance(tags_code, list) and offset in tags_code[::ENTRY_FIELDS])
            for _, first, _, tags_code, _ in itertools.takewhile(lambda one: one[4] == behind[0][4], behind)
        )

    def walk_to(self, offset: int) -> Generator[None, None, memoryview | None]:
        """Walk from the file's start to `offset`, with a pause after each step; return the record, or None without one.

        For records that no queue has: those of a deleted topic, and half messages of 3.x. A later walk begins at a place that an
        earlier one reached.
        """
        record = self.at(offset)
        if record is not None or self._log.record_at(offset) is None:
            return record
        position = self._nearest_passed(offset)
        while position < offset:
            file = self._log.files.find(offset)
            behind = position if file is None else _pass(file, position, offset)
            if behind == position:
                return None
            position = behind
            self._note(position)
            yield
        return self._log.record_at(offset)

    def _nearest_passed(self, offset: int) -> int:
        """Return the last place before `offset` that a walk has reached."""
        first = offset - offset % self._log.file_size
        passed = self._passed.setdefault(first, [first])
        while passed[-1] > self._log.max_offset:
            passed.pop()
        while len(self._passed) > MOST_FILES_KNOWN:
            del self._passed[next(iter(self._passed))]
        return passed[bisect_right(passed, offset) - 1]

    def _note(self, position: int) -> None:
        passed = self._passed.get(position - position % self._log.file_size)
        if passed is not None and position >= passed[-1] + STEP_BYTES // 2:
            passed.append(position)


def _pass(file: MappedFile, position: int, offset: int) -> int:
    """Return the end of the records from `position` on, about `STEP_BYTES` of them and at most to `offset`.

    Returns `position` if no record fits.
    """
    base, data = file.first_offset, file.readable.obj
    assert isinstance(data, mmap)
    end = min(offset, position + STEP_BYTES) - base
    behind = base + pass_records(data, base, position - base, end)
    if behind > position:
        return behind
    size, magic, own_offset = unpack_place(data, position - base)
    fits = magic in MAGICS and own_offset == position and SMALLEST_RECORD <= size <= offset - position
    return position + size if fits else position
