"""Live queues as a stream. Its offset is {topic: {broker: {queue: mark}}}: the next offset of each queue, and a fingerprint of
the last message that was read. So a broker that was replaced by one with another or an older store is found.

A new queue is added to the offset with its first message, and is read from the next batch on: so the checkpoint has the start of
every queue, and a repeated batch is the same.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

import attrs
import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.spark.live.bounds import Bound, resolve
from twisted_mq.spark.live.cluster import Cluster
from twisted_mq.spark.live.errors import LiveError, OffsetsLost, QueueChanged, QueuesGone
from twisted_mq.spark.live.held import Held, first_of_both
from twisted_mq.spark.live.message_sizes import mean_sizes
from twisted_mq.spark.live.offset_maps import LATEST, OffsetMap, Offsets, flat, nested
from twisted_mq.spark.live.options import LiveOptions
from twisted_mq.spark.live.planning import limited
from twisted_mq.spark.live.pulling import queue_text
from twisted_mq.spark.live.queue_marks import Marks, QueueMark, as_tree, changed, last_messages, parse_marks
from twisted_mq.spark.live.queue_offsets import commit_offsets, first_offsets, next_offsets
from twisted_mq.spark.live.subscription import subscribed_queues
from twisted_mq.spark.live.tasks import LiveSplit, planned, read_split

log = logging.getLogger(__name__)


class LiveStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reader of a stream. It plans in the driver's process, where it keeps connections, and reads in tasks, with options only."""

    def __init__(self, options: LiveOptions, columns: Sequence[str], held: Held | None = None) -> None:
        """`held`: files that are read before brokers are asked."""
        self.options = attrs.evolve(options, access=options.access.for_stream())
        self.columns = list(columns)
        self.held = held
        self._cluster: Cluster | None = None
        self._target: Offsets | None = None
        self._newest: Offsets = {}
        self._committed: OffsetMap = {}
        self._proven: OffsetMap | None = None
        """The offset that latestOffset returned last: it was made of proven marks."""
        self._last_batch: float | None = None

    @property
    def cluster(self) -> Cluster:
        """Return the cluster, created at first use because the reader is also sent to tasks."""
        if self._cluster is None:
            self._cluster = Cluster(self.options.access)
        return self._cluster

    def initialOffset(self) -> OffsetMap:
        """Return the start offsets. Raises LiveError, WrongOption; NoCommitLog if files are missing at the start."""
        if self.held is not None:
            self.held.check()
        queues = subscribed_queues(self.cluster, self.options, missing_ok=True)
        starting = self.options.starting or Bound("startingOffsets", LATEST)
        group, fail = self.options.group, self.options.fail_on_data_loss
        begun = resolve(starting, self.cluster, queues, group, self.held, fail_on_data_loss=fail)
        return as_tree(self._marked({}, begun))

    def getDefaultReadLimit(self) -> ReadLimit:
        if self.options.offsets_per_trigger is not None:
            return ReadMaxRows(self.options.offsets_per_trigger)
        if self.options.bytes_per_trigger is not None:
            return ReadMaxBytes(self.options.bytes_per_trigger)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = next_offsets(self.cluster, subscribed_queues(self.cluster, self.options, missing_ok=True))

    def latestOffset(self, start: OffsetMap, limit: ReadLimit) -> OffsetMap:
        """Return the next end. Raises LiveError. Messages before `start` are finished, so the last batch's offsets are committed
        too."""
        marks = parse_marks(start)
        begun = {queue: mark.next for queue, mark in marks.items()}
        self._newest = self._ends(begun)
        anew = self._begun_anew(marks)
        self.commit(start)
        ends = dict(self._newest)
        if self._target is not None:
            ends = {queue: min(end, self._target[queue]) for queue, end in ends.items() if queue in self._target}
        known = {queue: ends.get(queue, offset) for queue, offset in begun.items()}
        following = self._following(begun, known | anew, limit)
        if self._is_early(begun, following):
            following = begun
        new = [queue for queue in ends if queue not in begun]
        added = first_of_both(self.cluster, new, self.held) if new else {}
        self._proven = as_tree(self._marked(marks, following | added))
        return self._proven

    def _marked(self, marks: Marks, following: Offsets) -> Marks:
        """Return the marks of these offsets. Raises OffsetsLost for messages that were deleted, with failOnDataLoss."""
        moved = {queue: at for queue, at in following.items() if queue not in marks or marks[queue].next != at}
        lasts = last_messages(self.cluster, moved, self.options.group)
        lost = self._lost(marks, moved)
        made = {queue: QueueMark(at, lasts.get(queue), lost.get(queue, 0)) for queue, at in moved.items()}
        return {queue: made.get(queue) or marks[queue] for queue in following}

    def _lost(self, marks: Marks, following: Offsets) -> dict[MessageQueue, int]:
        """Return the lost messages of each queue up to these offsets. Raises OffsetsLost with failOnDataLoss."""
        read = [queue for queue in sorted(marks.keys() & following.keys()) if following[queue] > marks[queue].next]
        firsts = first_of_both(self.cluster, read, self.held) if read else {}
        found = {queue: mark.lost for queue, mark in marks.items()}
        for queue in read:
            begin, first = marks[queue].next, min(firsts[queue], following[queue])
            if begin < first:
                loss = OffsetsLost(queue_text(queue), begin, firsts[queue], "deleted before it was read")
                if self.options.fail_on_data_loss:
                    raise loss
                log.warning("messages lost, skipped count=%d: %s", first - begin, loss)
                found[queue] += first - begin
        return found

    def _is_early(self, begun: Offsets, following: Offsets) -> bool:
        """Return True if a batch has too few messages and may wait for more. The first one, and those of AvailableNow, do not
        wait."""
        now, last, least = self.cluster.now(), self._last_batch, self.options.least_offsets
        may_wait = self._target is None and last is not None and now < last + self.options.trigger_delay_seconds
        behind = sum(max(0, self._newest.get(queue, offset) - offset) for queue, offset in begun.items())
        if may_wait and least is not None and behind < least:
            return True
        if following != begun:
            self._last_batch = now
        return False

    def reportLatestOffset(self) -> OffsetMap:
        """Return the ends of the queues, for the progress: see `lag`."""
        return nested(self._newest)

    def partitions(self, start: OffsetMap, end: OffsetMap) -> list[LiveSplit]:
        """Plan a batch. Raises OffsetsLost with failOnDataLoss if a queue is no longer the one that was read, also for a batch
        that another process planned."""
        if end != self._proven:
            for tree in (start, end):
                marks = parse_marks(tree)
                self._report(changed(self.cluster, marks, self.options.group), marks)
        return planned(flat(start), flat(end), self.options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_split(partition, self.options, self.columns, self.held)

    def commit(self, end: OffsetMap) -> None:
        if self.options.commit_offsets and end != self._committed:
            commit_offsets(self.cluster, self.options.group, flat(end))
            self._committed = end

    def stop(self) -> None:
        if self._cluster is not None:
            self._cluster.close()

    # where queues end

    def _ends(self, begun: Offsets) -> Offsets:
        """Return the ends of all present queues. Raises QueuesGone with failOnDataLoss."""
        started, failures = self.cluster.now(), 0
        while True:
            queues = subscribed_queues(self.cluster, self.options, missing_ok=True)
            gone = sorted(begun.keys() - set(queues))
            failures += 1
            waited = self.cluster.now() - started if self.options.fail_on_data_loss else float("inf")
            if not gone or self.options.access.is_over(failures, waited):
                break
            self.cluster.pause(failures)
        if gone and self.options.fail_on_data_loss:
            raise QueuesGone(list(map(queue_text, gone)))
        if gone:
            log.warning("queues not served, waiting for: %s", ", ".join(map(queue_text, gone)))
        return next_offsets(self.cluster, queues)

    def _following(self, begun: Offsets, ends: Offsets, limit: ReadLimit) -> Offsets:
        """Return the end of the next batch in known queues."""
        if isinstance(limit, ReadAllAvailable):
            return ends
        if self.options.offsets_per_trigger is not None:
            ends = limited(begun, ends, self.options.offsets_per_trigger)
        if self.options.bytes_per_trigger is not None:
            ends = limited(begun, ends, self.options.bytes_per_trigger, self._sizes(begun, ends))
        return ends

    def _sizes(self, begun: Offsets, ends: Offsets) -> dict[MessageQueue, float]:
        behind = {queue: begun[queue] for queue in begun if begun[queue] < ends[queue]}
        of_files = {} if self.held is None else {queue: self.held.mean_size(queue, behind[queue]) for queue in behind}
        held = {queue: size for queue, size in of_files.items() if size is not None}
        asked = {queue: offset for queue, offset in behind.items() if queue not in held}
        return held | mean_sizes(self.cluster, asked, self.options.group)

    def _begun_anew(self, marks: Marks) -> Offsets:
        """Return the first offset of queues that are no longer the ones that were read: they end before the offset that was read,
        or have another last message. Their topic was created again, or their broker was replaced.

        Raises OffsetsLost with failOnDataLoss.
        """
        cut = sorted(queue for queue, end in self._newest.items() if queue in marks and end < marks[queue].next)
        for queue in cut:
            why = "the queue ends before what was read of it"
            self._note(OffsetsLost(queue_text(queue), marks[queue].next, self._newest[queue], why))
        grown = {
            queue: mark for queue, mark in marks.items() if queue in self._newest and self._newest[queue] > mark.next
        }
        others = changed(self.cluster, grown, self.options.group)
        self._report(others, marks)
        return first_offsets(self.cluster, [*cut, *others]) if cut or others else {}

    def _report(self, others: Sequence[MessageQueue], marks: Marks) -> None:
        for queue in others:
            self._note(QueueChanged(queue_text(queue), marks[queue].next - 1))

    def _note(self, loss: LiveError) -> None:
        """Raise the loss, or log that the queue is read from its first message again."""
        if self.options.fail_on_data_loss:
            raise loss
        log.warning("started again: %s", loss)
