"""From the log to the queues: appended records wait here until they may become visible (Apache: ReputMessageService)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from twisted_mq.protocol.layouts.queue_entry import ENTRY_FIELDS
from twisted_mq.storage.interfaces import ArrivalListener

EVERYTHING = 1 << 63
"""Behind every physical offset."""


class Queue(Protocol):
    """What a dispatcher needs of a queue; `max_offset` is the offset of the next entry."""

    topic: str
    queue_id: int
    max_offset: int

    def append(self, physical_offset: int, size: int, tags_code: int) -> None:
        """Write the next entry."""

    def append_many(self, numbers: Sequence[int]) -> None:
        """Write the next entries: physical offset, size and tags code of each, in one row."""


Pending = tuple[Queue, int, int, int | list[int], int]
"""queue, physical offset, size, tags code, store timestamp.

Records that were put together are one: it has their size together, and their entries in the tags code's place, as
`append_many` takes them.
"""


class Dispatcher:
    """Pending records in the order of the log. Whoever appends a record appends it to `pending` too."""

    def __init__(self) -> None:
        self.pending: list[Pending] = []
        self.last_store_timestamp = 0

    def run(self, end_offset: int, arrived: ArrivalListener | None = None) -> None:
        """Write the queue entries of all pending records that end at `end_offset` or before, in order, and tell of each.

        Records that were put together wait for the last of them. What `arrived` appends meanwhile stays pending. Where it
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
        """The physical offsets of the pending records."""
        found: set[int] = set()
        for _, physical_offset, _, tags_code, _ in self.pending:
            found.update(tags_code[::ENTRY_FIELDS] if isinstance(tags_code, list) else (physical_offset,))
        return found

    def drop(self, queue: Queue) -> None:
        """Forget the pending records of a queue that is deleted."""
        self.pending = [entry for entry in self.pending if entry[0] is not queue]


def _tell(arrived: ArrivalListener, queue: Queue, first: int, tags_codes: list[int], store_timestamp: int) -> None:
    """Tell of records that were put together, from queue offset `first` on: each tags code once."""
    for code in dict.fromkeys(tags_codes):
        arrived(queue.topic, queue.queue_id, first + tags_codes.index(code), code, store_timestamp)
