"""Holds appended records until they may become visible, then writes their queue entries (Apache: ReputMessageService)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from twisted_mq.protocol.layouts.queue_entry import ENTRY_FIELDS
from twisted_mq.storage.interfaces import ArrivalListener

EVERYTHING = 1 << 63
"""An offset after every physical offset."""


class Queue(Protocol):
    """The part of a queue that a dispatcher uses; `max_offset` is the offset of the next entry."""

    topic: str
    queue_id: int
    max_offset: int

    def append(self, physical_offset: int, size: int, tags_code: int) -> None:
        """Write the next entry."""

    def append_many(self, numbers: Sequence[int]) -> None:
        """Write the next entries: physical offset, size and tags code of each, in one flat sequence."""


Pending = tuple[Queue, int, int, int | list[int], int]
"""queue, physical offset, size, tags code, store timestamp.

Records that were put together form one item. Its size is their total size, and in place of the tags code it has their
entries, as `append_many` takes them.
"""


class Dispatcher:
    """The pending records in the order of the log. Code that appends a record to the log also appends it to `pending`."""

    def __init__(self) -> None:
        self.pending: list[Pending] = []
        self.last_store_timestamp = 0

    def run(self, end_offset: int, arrived: ArrivalListener | None = None) -> None:
        """Write the queue entries of all pending records that end at or before `end_offset`, in order, and report each.

        Records that were put together become visible with the last of them. Records that `arrived` appends stay pending. If it
        raises, no entry is lost or repeated.
        """
        pending = self.pending
        if not pending or pending[0][1] + pending[0][2] > end_offset:
            return
        self.pending = []
        done = 0
        try:
            for queue, physical_offset, size, tags_code, store_timestamp in pending:
                if physical_offset + size > end_offset:
                    break
                queue_offset = queue.max_offset
                if isinstance(tags_code, list):
                    queue.append_many(tags_code)
                    done += 1
                    if arrived is not None:
                        _tell(arrived, queue, queue_offset, tags_code[2::ENTRY_FIELDS], store_timestamp)
                    continue
                queue.append(physical_offset, size, tags_code)
                done += 1
                if arrived is not None:
                    arrived(queue.topic, queue.queue_id, queue_offset, tags_code, store_timestamp)
        finally:
            if done:
                self.last_store_timestamp = pending[done - 1][4]
            if done < len(pending):
                self.pending = pending[done:] + self.pending

    def hidden(self) -> set[int]:
        """Return the physical offsets of the pending records."""
        found: set[int] = set()
        for _, physical_offset, _, tags_code, _ in self.pending:
            found.update(tags_code[::ENTRY_FIELDS] if isinstance(tags_code, list) else (physical_offset,))
        return found

    def drop(self, queue: Queue) -> None:
        """Forget the pending records of a deleted queue."""
        self.pending = [entry for entry in self.pending if entry[0] is not queue]


def _tell(arrived: ArrivalListener, queue: Queue, first: int, tags_codes: list[int], store_timestamp: int) -> None:
    """Report records that were put together, from queue offset `first` on: each tags code once."""
    for code in dict.fromkeys(tags_codes):
        arrived(queue.topic, queue.queue_id, first + tags_codes.index(code), code, store_timestamp)
