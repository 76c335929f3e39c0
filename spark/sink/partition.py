"""Send of one partition's rows by one task; rows that are not valid messages, and partitions that are already stored, are not
sent."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import attrs
import pyarrow as pa
from pyspark.sql.datasource import WriterCommitMessage

from twisted_mq.spark.live.kept_clusters import kept_cluster
from twisted_mq.spark.sink.bad_rows import BadRows, OnBadRow
from twisted_mq.spark.sink.columns import Outgoing, RowReader
from twisted_mq.spark.sink.errors import WrongRow
from twisted_mq.spark.sink.held_messages import HeldMessages
from twisted_mq.spark.sink.options import SinkOptions
from twisted_mq.spark.sink.sending import PartitionSender
from twisted_mq.spark.worker import settled


@attrs.define
class Written(WriterCommitMessage):
    """Result of one task.

    `doubtful` counts messages that are stored, but not flushed or replicated as the broker is configured; `bad` rows were
    skipped. `digest` identifies the messages of a stream's partition. `wrong` is the row that prevented the send of the
    partition.
    """

    messages: int
    doubtful: int = 0
    bad: int = 0
    digest: str = ""
    wrong: str | None = None


@attrs.frozen
class PartitionWrite:
    """A partition of a batch of a query; a write that is not a stream has one batch."""

    options: SinkOptions
    query: str
    batch: int
    partition: int

    @property
    def source(self) -> str:
        """Return the prefix of the ids of its messages."""
        return f"{self.query}-{self.batch}-{self.partition}"

    def send(self, batches: Iterator[pa.RecordBatch]) -> Written:
        """Send row by row. Raises SinkError, LiveError."""
        with self._sender() as sender, contextlib.closing(self._bad_rows()) as bad:
            for message in self._messages(batches, sender, bad):
                sender.add(message)
            sender.flush()
        return Written(sender.sent, sender.doubtful, bad.count)

    def send_whole(self, batches: Iterator[pa.RecordBatch], stored: frozenset[str]) -> Written:
        """Send all rows, or none if one is not valid or if they are already `stored`. Raises SinkError, LiveError."""
        held = HeldMessages(self.source)
        with contextlib.closing(held), self._sender() as sender, contextlib.closing(self._bad_rows()) as bad:
            try:
                for message in self._messages(batches, sender, bad):
                    held.add(message)
            except WrongRow as error:
                return Written(0, wrong=str(error))
            if held.digest not in stored:
                for message in held:
                    sender.add(message)
                sender.flush()
            return Written(sender.sent, sender.doubtful, bad.count, held.digest)

    @contextlib.contextmanager
    def _sender(self) -> Iterator[PartitionSender]:
        options = self.options
        with settled(), kept_cluster(options.access) as cluster:
            turn = self.partition + self.batch
            yield PartitionSender(cluster, options.group, self.partition, turn, options.limits, _now_ms)

    def _bad_rows(self) -> BadRows:
        return BadRows(self.query, self.batch, self.partition, self.options.quarantine)

    def _messages(self, batches: Iterator[pa.RecordBatch], sender: PartitionSender, bad: BadRows) -> Iterator[Outgoing]:
        """Yield the rows as messages; rows that are not valid go to `bad`. Raises WrongRow if the options require it."""
        reader = RowReader(self.options.topic, self.source, self.partition, self.options.compression)
        for batch in batches:
            wrong: list[tuple[int, WrongRow]] = []
            for place, message in enumerate(reader.read(batch)):
                error = message if isinstance(message, WrongRow) else _refused(sender, message)
                if error is not None and self.options.on_bad_row == OnBadRow.FAIL:
                    raise error
                if error is not None:
                    wrong.append((place, error))
                elif isinstance(message, Outgoing):
                    yield message
            bad.add(batch, wrong)


def _refused(sender: PartitionSender, message: Outgoing) -> WrongRow | None:
    """Return the reason why no queue accepts the message, or None."""
    try:
        sender.check(message)
    except WrongRow as error:
        return error
    return None


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
