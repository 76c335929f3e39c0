"""Live queues in a batch: messages between two bounds, which are fixed at load()."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import attrs
import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from twisted_mq.spark.live.bounds import Bound, resolve
from twisted_mq.spark.live.cluster import Cluster
from twisted_mq.spark.live.held import Held
from twisted_mq.spark.live.offset_maps import EARLIEST, Offsets
from twisted_mq.spark.live.options import LiveOptions
from twisted_mq.spark.live.subscription import subscribed_queues
from twisted_mq.spark.live.tasks import LiveSplit, planned, read_split


@attrs.frozen
class Cut:
    """The offsets of each queue between which a batch reads."""

    start: Offsets
    end: Offsets


def take_cut(options: LiveOptions, held: Held | None = None) -> Cut:
    """Resolve the bounds now. Raises LiveError, WrongOption, NoCommitLog."""
    if held is not None:
        held.check()
    with contextlib.closing(Cluster(options.access)) as cluster:
        queues = subscribed_queues(cluster, options)
        fail = options.fail_on_data_loss
        starting = options.starting or Bound("startingOffsets", EARLIEST)
        start = resolve(starting, cluster, queues, options.group, held, fail_on_data_loss=fail)
        return Cut(start, resolve(options.ending, cluster, queues, options.group, held, fail_on_data_loss=fail))


class LiveBatchReader(DataSourceReader):
    """Reader of a batch. It has only options, bounds and names of files, so it can be sent to tasks."""

    def __init__(
        self, options: LiveOptions, columns: Sequence[str], held: Held | None = None, cut: Cut | None = None
    ) -> None:
        """`held`: files that are read before brokers are asked. `cut` None: the bounds are resolved when a read is planned."""
        self.options = options
        self.columns = list(columns)
        self.held = held
        self.cut = cut

    def partitions(self) -> list[LiveSplit]:
        """Return at least one partition for each queue with messages between the bounds. Raises LiveError, WrongOption,
        NoCommitLog."""
        cut = take_cut(self.options, self.held) if self.cut is None else self.cut
        return planned(cut.start, cut.end, self.options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_split(partition, self.options, self.columns, self.held)
