"""What Spark calls to write: one writer for batches, one for streams, around the same task.

At least once: a task that Spark runs again, and a send without an answer, may store messages twice. Both times they
have the same id, made of the query, the batch, the partition and the row (property UNIQ_KEY), by which repeats are found.
"""

from __future__ import annotations

import contextlib
import logging
import time
import uuid
from collections.abc import Iterator

import attrs
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from twisted_mq.spark.live.cluster import Cluster
from twisted_mq.spark.sink.columns import RowReader
from twisted_mq.spark.sink.options import SinkOptions
from twisted_mq.spark.sink.sending import PartitionSender
from twisted_mq.spark.worker import settled

QUERY_PROPERTY = "sql.streaming.queryId"
BATCH_PROPERTY = "streaming.sql.batchId"
"""What Spark tells tasks of a stream about it."""

log = logging.getLogger(__name__)


@attrs.define
class Written(WriterCommitMessage):
    """What one task sent; `doubtful` of these are stored, but not as safely as their broker is set to."""

    messages: int
    doubtful: int


def write_partition(
    batches: Iterator[pa.RecordBatch], options: SinkOptions, query: str, batch: int, partition: int
) -> Written:
    """Send all rows. Raises SinkError, LiveError."""
    with settled(), contextlib.closing(Cluster(options.access)) as cluster:
        reader = RowReader(options.topic, f"{query}-{batch}-{partition}", partition, options.compression)
        sender = PartitionSender(cluster, options.group, partition, partition + batch, options.limits, _now_ms)
        for rows in batches:
            for message in reader.messages(rows):
                sender.add(message)
        sender.flush()
    return Written(sender.sent, sender.doubtful)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _report(messages: list[WriterCommitMessage | None], what: str) -> None:
    written = [one for one in messages if isinstance(one, Written)]
    total, doubtful = sum(one.messages for one in written), sum(one.doubtful for one in written)
    log.info("written %s messages=%d", what, total)
    if doubtful:
        log.warning("stored, but not flushed or replicated in time %s messages=%d", what, doubtful)


class BatchWriter(DataSourceArrowWriter):
    """One write. Its id is made where the write is planned, and is the same in all tasks."""

    def __init__(self, options: SinkOptions) -> None:
        self.options = options
        self.query = uuid.uuid4().hex

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        context = TaskContext.get()
        partition = context.partitionId() if context is not None else 0
        return write_partition(iterator, self.options, self.query, 0, partition)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        _report(messages, f"query={self.query}")


class StreamWriter(DataSourceStreamArrowWriter):
    """The micro-batches of one stream."""

    def __init__(self, options: SinkOptions) -> None:
        self.options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        context = TaskContext.get()
        assert context is not None, "a stream is written by Spark's tasks"
        query, batch = context.getLocalProperty(QUERY_PROPERTY), context.getLocalProperty(BATCH_PROPERTY)
        assert query is not None and batch is not None, "Spark names query and batch to the tasks of a stream"
        return write_partition(iterator, self.options, query.replace("-", ""), int(batch), context.partitionId())

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        _report(messages, f"batch={batchId}")
