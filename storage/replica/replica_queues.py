"""The queues of a replica: entries of many records are written together, those of one queue in one piece."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from twisted_mq.protocol.flags import INNER_BATCH, OUT_OF_QUEUES
from twisted_mq.protocol.layouts.ordinary_records import QUEUE_OFFSET, TIMESTAMP, Row
from twisted_mq.protocol.layouts.record_codec import DispatchFields
from twisted_mq.protocol.text.java import from_utf8, utf8
from twisted_mq.storage.appending.dispatch import Dispatcher
from twisted_mq.storage.files.paths import is_topic_name
from twisted_mq.storage.interfaces import ArrivalListener
from twisted_mq.storage.queues.consume_queue import ConsumeQueue
from twisted_mq.storage.queues.entry_runs import EntryRun, Key, gather
from twisted_mq.storage.queues.queue_table import QueueTable

Arrival: TypeAlias = tuple[str, int, int, int, int]
"""Topic, queue id, queue offset, tags code and store timestamp, as an ArrivalListener gets them."""

logger = logging.getLogger(__name__)


class ReplicaQueues:
    """Writes into the queues of one table, makes new queues, and calls the listener.

    `stored_at` returns the store time in ms of the record at a physical offset, of a size.
    """

    def __init__(self, queues: QueueTable, dispatcher: Dispatcher, stored_at: Callable[[int, int], int]) -> None:
        self._queues = queues
        self._stored_at = stored_at
        self._dispatcher = dispatcher
        self._by_key: dict[Key, ConsumeQueue | None] = {}

    def forget(self) -> None:
        """Forget cached queues, because queues were deleted."""
        self._by_key.clear()

    def put(self, base: int, rows: Sequence[Row], arrived: ArrivalListener | None) -> int:
        """Make visible the records in the file at `base`; return how many, from the first on.

        Stops before a record that does not follow in its queue, or whose queue needs more than a row contains. Raises
        StoreFull; then none is visible.
        """
        runs: dict[Key, EntryRun] = {}
        taken = gather(base, rows, self._begin, runs)
        for run in runs.values():
            run.reserve()
        for run in runs.values():
            run.write()
        if taken:
            arrivals = () if arrived is None else self._arrivals(rows[:taken], runs)
            self._tell(rows[taken - 1][TIMESTAMP], arrivals, arrived)
        return taken

    @staticmethod
    def _arrivals(rows: Sequence[Row], runs: Mapping[Key, EntryRun]) -> Sequence[Arrival]:
        """Return what a listener gets for records that are visible now."""
        return [
            (runs[topic, queue_id].queue.topic, queue_id, queue_offset, tags_code, timestamp)
            for topic, queue_id, queue_offset, _, _, tags_code, timestamp, sys_flag in rows
            if not sys_flag & OUT_OF_QUEUES
        ]

    def _begin(self, row: Row) -> EntryRun | None:
        queue = self._queue(row[0], row[1])
        if queue is None or queue.is_schedule or queue.batched or row[QUEUE_OFFSET] != queue.max_offset:
            return None
        return EntryRun(queue, queue.max_offset, queue.max_offset)

    def put_odd(self, fields: DispatchFields, arrived: ArrivalListener | None) -> None:
        """Make one record visible. Raises StoreFull.

        The record need not follow in its queue: the log may begin in the queue's middle, or the topic was created again.
        """
        queue = None if fields.sys_flag & OUT_OF_QUEUES else self._queue_for(fields)
        if queue is None:
            return
        if queue.is_far(fields.queue_offset):
            logger.error(
                "a replicated record enters no queue, too many are missing before it: offset=%d topic=%s queue=%d from=%d to=%d",
                fields.physical_offset, queue.topic, queue.queue_id, queue.max_offset, fields.queue_offset,
            )  # fmt: skip
            return
        if fields.queue_offset != queue.max_offset:
            logger.log(
                logging.WARNING if queue.max_offset > queue.min_offset else logging.INFO,
                "replica queue moves, the log has no message in between: topic=%s queue=%d from=%d to=%d",
                queue.topic, queue.queue_id, queue.max_offset, fields.queue_offset,
            )  # fmt: skip
        queue.append_at(fields.queue_offset, *queue.wanted(fields))
        arrival = fields.topic, fields.queue_id, fields.queue_offset, fields.tags_code, fields.store_timestamp
        self._tell(fields.store_timestamp, [arrival], arrived)

    def _tell(self, timestamp: int, arrivals: Sequence[Arrival], arrived: ArrivalListener | None) -> None:
        self._dispatcher.last_store_timestamp = timestamp
        if arrived is not None:
            for arrival in arrivals:
                arrived(*arrival)

    def _queue_for(self, fields: DispatchFields) -> ConsumeQueue | None:
        """Return the record's queue. For an inner batch, a simple queue made before the topic's type was known is converted."""
        queue = self._queue(utf8(fields.topic), fields.queue_id)
        if queue is not None and fields.sys_flag & INNER_BATCH and not queue.batched:
            queue = self._queues.batched_anew(queue, self._stored_at)
            self._by_key.clear()
        return queue

    def _queue(self, topic: bytes, queue_id: int) -> ConsumeQueue | None:
        """Return the queue for a record, made if necessary; None for an invalid topic name, as in recovery."""
        key = topic, queue_id
        if key not in self._by_key:
            name = from_utf8(topic)
            queue = self._queues.get(name, queue_id)
            if queue is None and is_topic_name(name):
                queue = self._queues.make(name, queue_id)
            self._by_key[key] = queue
        return self._by_key[key]
