"""Writers that Spark calls: one for batches and one for streams, with the same task.

Delivery is at least once: a repeated task, and a send without an answer, may store messages twice. Both have the same id from
query, batch, partition and row (property UNIQ_KEY), so that repeats can be found.

A stream's partition is sent when all of its rows are known to be valid. A row that is not valid fails the batch after the other
partitions are stored. The query's checkpoint lists these partitions, so a restarted query does not send them again.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator

import attrs
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from twisted_mq.spark.sink.bad_rows import OnBadRow
from twisted_mq.spark.sink.errors import BatchRefused
from twisted_mq.spark.sink.options import SinkOptions
from twisted_mq.spark.sink.partition import PartitionWrite, Written
from twisted_mq.spark.sink.stored_partitions import keep_stored, read_stored

QUERY_PROPERTY = "sql.streaming.queryId"
BATCH_PROPERTY = "streaming.sql.batchId"
"""Local property with which Spark identifies the batch of a stream to tasks."""

log = logging.getLogger(__name__)


def write_partition(
    batches: Iterator[pa.RecordBatch], options: SinkOptions, query: str, batch: int, partition: int
) -> Written:
    """Send all rows. Raises SinkError, LiveError."""
    return PartitionWrite(options, query, batch, partition).send(batches)


def _report(written: list[Written], what: str) -> None:
    log.info("written %s messages=%d", what, sum(one.messages for one in written))
    doubtful, bad = sum(one.doubtful for one in written), sum(one.bad for one in written)
    if doubtful:
        log.warning("stored, but not flushed or replicated in time %s messages=%d", what, doubtful)
    if bad:
        log.warning("skipped, as they are not valid messages %s rows=%d", what, bad)


def _of_sink(messages: list[WriterCommitMessage | None]) -> list[Written]:
    return [one for one in messages if isinstance(one, Written)]


class BatchWriter(DataSourceArrowWriter):
    """Writer of a batch. Its id is created when the write is planned, and is the same in all tasks."""

    def __init__(self, options: SinkOptions) -> None:
        self.options = options
        self.query = uuid.uuid4().hex

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        context = TaskContext.get()
        partition = context.partitionId() if context is not None else 0
        return write_partition(iterator, self.options, self.query, 0, partition)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        _report(_of_sink(messages), f"query={self.query}")


class StreamWriter(DataSourceStreamArrowWriter):
    """Writer of the micro-batches of one stream."""

    def __init__(self, options: SinkOptions) -> None:
        self.options = attrs.evolve(options, access=options.access.for_stream())
        self.stored = read_stored(options.checkpoint)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        context = TaskContext.get()
        assert context is not None, "a stream is written by Spark's tasks"
        query, number = context.getLocalProperty(QUERY_PROPERTY), context.getLocalProperty(BATCH_PROPERTY)
        assert query is not None and number is not None, "Spark names query and batch to the tasks of a stream"
        batch = int(number)
        task = PartitionWrite(self.options, query.replace("-", ""), batch, context.partitionId())
        stored = self.stored.of_batch(batch)
        if stored or self.options.on_bad_row == OnBadRow.FAIL:
            return task.send_whole(iterator, stored)
        return task.send(iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Commit a batch. Raises BatchRefused if rows are not valid messages."""
        written = _of_sink(messages)
        _report(written, f"batch={batchId}")
        wrong = [one.wrong for one in written if one.wrong is not None]
        if not wrong:
            return
        kept = keep_stored(self.options.checkpoint, batchId, (one.digest for one in written if one.wrong is None))
        raise BatchRefused(wrong, len(written), kept)
