"""The table "rocketmq.count": the number of messages of stores, without sending a row of each to Spark.

    session.read.format("rocketmq.count").option("topic", "Orders").load("/path/to/store").agg(F.sum("messages"))

Spark passes no `count(*)` to a Python source, so a count of the format "rocketmq" sends every row to Java. Here each task counts
its part of the log and sends one row. Options are those of the format "rocketmq" for stores, and so are the messages.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from twisted_mq.spark.errors import WrongOption
from twisted_mq.spark.live.access_options import NAME_SERVER
from twisted_mq.spark.source.data_source import FORMAT, RocketMQDataSource
from twisted_mq.spark.source.log_stretch import read_part
from twisted_mq.spark.source.options import read_options
from twisted_mq.spark.source.queue_reads import QueueSplit, read_queue
from twisted_mq.spark.source.splits import LogSplit
from twisted_mq.spark.source.store_reader import StoreReader, as_batches

_COUNTED = ("flag",)
"""The column that is made of each row: the cheapest one."""
_DDL = "store string, messages bigint"
_SCHEMA = pa.schema([("store", pa.string()), ("messages", pa.int64())])


class CountReader(DataSourceReader):
    """Reader that counts the rows of each split of a batch."""

    def __init__(self, reader: StoreReader) -> None:
        self._reader = reader

    def partitions(self) -> list[LogSplit | QueueSplit]:
        return self._reader.partitions()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield one row. Raises DataLost, DamagedLog as a read of the messages."""
        if isinstance(partition, LogSplit):
            store, pieces = partition.part.store, read_part(partition.part)
        elif isinstance(partition, QueueSplit):
            store, pieces = partition.part.log.store, read_queue(partition.part)
        else:
            return  # Spark's value if there are no splits
        messages = sum(batch.num_rows for batch in as_batches(store, pieces, _COUNTED, self._reader.options))
        yield pa.RecordBatch.from_pylist([{"store": store.name, "messages": messages}], _SCHEMA)


class CountSource(RocketMQDataSource):
    """Format "rocketmq.count": counts of one cut, taken at load()."""

    @classmethod
    def name(cls) -> str:
        return f"{FORMAT}.count"

    def schema(self) -> str:
        if NAME_SERVER in self.options:
            raise WrongOption(NAME_SERVER, self.options[NAME_SERVER], "messages of stores are counted: give a path")
        super().schema()
        return _DDL

    def reader(self, schema: StructType) -> DataSourceReader:
        return CountReader(StoreReader(read_options(self.options), _COUNTED, self.ends))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        raise WrongOption("format", self.name(), "messages are counted in batches, not in streams")
