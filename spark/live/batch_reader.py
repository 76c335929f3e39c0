"""Live queues in a batch: what they have between two bounds, as these are when it is planned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from twisted_mq.spark.live.bounds import Bound, resolve
from twisted_mq.spark.live.cluster import Cluster
from twisted_mq.spark.live.held import Held
from twisted_mq.spark.live.offset_maps import EARLIEST
from twisted_mq.spark.live.options import LiveOptions
from twisted_mq.spark.live.planning import split, stretches
from twisted_mq.spark.live.subscription import subscribed_queues
from twisted_mq.spark.live.tasks import LiveSplit, read_split


class LiveBatchReader(DataSourceReader):
    """Holds nothing but options and names of files, so it travels to the tasks."""

    def __init__(self, options: LiveOptions, columns: Sequence[str], held: Held | None = None) -> None:
        """`held`: files that are read before brokers are asked."""
        self.options = options
        self.columns = list(columns)
        self.held = held

    def partitions(self) -> list[LiveSplit]:
        """One a queue that has messages between the bounds, or more. Raises LiveError, WrongOption, NoCommitLog."""
        options, held = self.options, self.held
        if held is not None:
            held.check()
        cluster = Cluster(options.access)
        try:
            queues = subscribed_queues(cluster, options)
            fail = options.fail_on_data_loss
            starting = options.starting or Bound("startingOffsets", EARLIEST)
            start = resolve(starting, cluster, queues, options.group, held, fail_on_data_loss=fail)
            end = resolve(options.ending, cluster, queues, options.group, held, fail_on_data_loss=fail)
        finally:
            cluster.close()
        return [LiveSplit(one) for one in split(stretches(start, end), options.min_partitions)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_split(partition, self.options, self.columns, self.held)
