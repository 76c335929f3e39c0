"""Data sources of the tables beside the log, with columns from the declarations.

from twisted_mq.spark.tables import register
register(session)
session.read.format("rocketmq.consumequeue").load("/path/to/store")
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import ClassVar

import attrs
import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from twisted_mq.spark.columns.schema import ARROW_TYPES
from twisted_mq.spark.errors import StoreReadError, WrongOption
from twisted_mq.spark.named_options import named
from twisted_mq.spark.source.count_source import CountSource
from twisted_mq.spark.source.data_source import RocketMQDataSource
from twisted_mq.spark.tables import store_files
from twisted_mq.spark.tables.frame_source import FrameSource
from twisted_mq.spark.tables.given_schema import check_schema
from twisted_mq.spark.tables.task_groups import grouped


@attrs.frozen
class Table:
    """A kind of file: its files under a path, and their columns, many rows at a time."""

    name: str
    columns: Mapping[str, str]
    files: Callable[[str], list[str]]
    read: Callable[[str], Iterator[dict[str, pa.Array]]]

    @property
    def arrow_schema(self) -> pa.Schema:
        return pa.schema([(name, ARROW_TYPES[kind]) for name, kind in self.columns.items()])

    def batches(self, path: str) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one file. Raises StoreReadError."""
        schema = self.arrow_schema
        for columns in self.read(path):
            arrays = [columns[field.name].cast(field.type) for field in schema]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)


TABLES = {
    table.name: table
    for table in (
        Table("rocketmq.consumequeue", store_files.QUEUE_COLUMNS, store_files.queue_files, store_files.queue_entries),
        Table(
            "rocketmq.batchconsumequeue",
            store_files.BATCH_QUEUE_COLUMNS,
            store_files.batch_queue_files,
            store_files.batch_queue_entries,
        ),
        Table("rocketmq.index", store_files.INDEX_COLUMNS, store_files.index_files, store_files.index_entries),
        Table("rocketmq.timer", store_files.TIMER_COLUMNS, store_files.timer_files, store_files.timer_units),
        Table("rocketmq.config", store_files.CONFIG_COLUMNS, store_files.config_files, store_files.config_entries),
        Table("rocketmq.ha", store_files.TRANSFER_COLUMNS, store_files.transfer_files, store_files.transfers),
    )
}


class TableReader(DataSourceReader):
    """Reader of files of a table; one task reads several small files."""

    def __init__(self, table: str, path: str) -> None:
        self.table = table
        self.path = path

    def partitions(self) -> list[InputPartition]:
        if not os.path.exists(self.path):
            raise StoreReadError(f"{self.path}: no such file or directory")
        files = TABLES[self.table].files(self.path)
        return list(map(InputPartition, grouped((file, os.path.getsize(file)) for file in files)))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        for path in partition.value or ():
            yield from TABLES[self.table].batches(path)


class TableSource(DataSource):
    """The data source of one table."""

    table: ClassVar[str]

    @classmethod
    def name(cls) -> str:
        return cls.table

    def schema(self) -> str:
        return ", ".join(f"`{name}` {kind}" for name, kind in TABLES[self.table].columns.items())

    def reader(self, schema: StructType) -> DataSourceReader:
        path = named(self.options, ("path",)).get("path")
        if path is None:
            raise WrongOption("path", "", "a path is needed: load(path)")
        check_schema(TABLES[self.table].columns, schema)
        return TableReader(self.table, path.removeprefix("file://"))


class ConsumeQueueSource(TableSource):
    """Entries of consume queues."""

    table = "rocketmq.consumequeue"


class BatchQueueSource(TableSource):
    """Entries of the consume queues of topics with batches."""

    table = "rocketmq.batchconsumequeue"


class IndexSource(TableSource):
    """Entries of the key index."""

    table = "rocketmq.index"


class TimerSource(TableSource):
    """Units of the timer log."""

    table = "rocketmq.timer"


class ConfigSource(TableSource):
    """Entries of a broker's tables."""

    table = "rocketmq.config"


class ReplicationSource(TableSource):
    """Recorded streams from masters to slaves."""

    table = "rocketmq.ha"


SOURCES = (
    RocketMQDataSource, ConsumeQueueSource, BatchQueueSource, IndexSource, TimerSource, ConfigSource, ReplicationSource,
    FrameSource, CountSource,
)  # fmt: skip
_FOUND_BY_ITSELF = "DATA_SOURCE_ALREADY_EXISTS"


def register(session: SparkSession) -> None:
    """Register all formats with a session, also a Connect one. Spark finds the format rocketmq by itself if the project is
    installed."""
    for source in SOURCES:
        try:
            session.dataSource.register(source)
        except AnalysisException as error:
            if error.getCondition() != _FOUND_BY_ITSELF:
                raise
