"""From the log to the queues: appended records wait here until they may become visible (Apache: ReputMessageService)."""

from __future__ import annotations

from typing import Protocol

from storage.interfaces import ArrivalListener

EVERYTHING = 1 << 63
"""Behind every physical offset."""


class Queue(Protocol):
    """What a dispatcher needs of a queue; `max_offset` is the offset of the next entry."""

    topic: str
    queue_id: int
    max_offset: int

    def append(self, physical_offset: int, size: int, tags_code: int) -> None:
        """Write the next entry."""


Pending = tuple[Queue, int, int, int, int]
"""queue, physical offset, size, tags code, store timestamp."""


class Dispatcher:
    """Pending records in the order of the log. Whoever appends a record appends it to `pending` too."""

    def __init__(self) -> None:
        self.pending: list[Pending] = []
        self.listener: ArrivalListener | None = None
        self.last_store_timestamp = 0

    def run(self, end_offset: int) -> None:
        """Write the queue entries of all pending records that end at `end_offset` or before, in order.

        What the listener appends meanwhile stays pending. Where the listener raises, nothing is lost or repeated.
        """
        pending = self.pending
        if not pending or pending[0][1] + pending[0][2] > end_offset:
            return
        self.pending = []
        listener = self.listener
        done = 0
        try:
            for queue, physical_offset, size, tags_code, store_timestamp in pending:
                if physical_offset + size > end_offset:
                    break
                queue_offset = queue.max_offset
                queue.append(physical_offset, size, tags_code)
                done += 1
                if listener is not None:
                    listener(queue.topic, queue.queue_id, queue_offset, tags_code, store_timestamp)
        finally:
            if done:
                self.last_store_timestamp = pending[done - 1][4]
            if done < len(pending):
                self.pending = pending[done:] + self.pending

    def drop(self, queue: Queue) -> None:
        """Forget the pending records of a queue that is deleted."""
        self.pending = [entry for entry in self.pending if entry[0] is not queue]
