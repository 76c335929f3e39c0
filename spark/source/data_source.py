"""The data source "rocketmq": a store's commit log as a table (columns: `schema`, options: `options`).

    session.read.format("rocketmq").option("topic", "Orders").load("/path/to/store")

Rows come in physical order within a task. Batches go to Spark as Arrow record batches. Fewer columns are faster:
Spark does not tell a Python source which columns a query uses, so the option `columns` or a schema with fewer columns
(`session.read.schema("topic string, storeSize int")`) says it. Bodies are decompressed and CRCs computed only when
asked for.

Damaged bytes are passed over up to the next intact record; each stretch is logged by the task, `spark.source.damage`
lists them, and failOnDamage=true makes them an error. A body whose CRC is wrong is a row with crcOk = false. A store may be
read while its broker writes: the rows are those that the log held when the task came by.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from twisted_mq.spark.errors import DamagedLog, WrongOption
from twisted_mq.spark.source.columns import record_batches
from twisted_mq.spark.source.log_file import LogFile
from twisted_mq.spark.source.log_stretch import Damage, read_stretch
from twisted_mq.spark.source.options import ReadOptions, read_options
from twisted_mq.spark.source.schema import columns_named, spark_ddl
from twisted_mq.spark.source.splits import LogSplit, plan_splits

FORMAT = "rocketmq"

log = logging.getLogger(__name__)


class RocketMQDataSource(DataSource):
    """Format "rocketmq" for `spark.read`."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return spark_ddl(read_options(self.options).columns)

    def reader(self, schema: StructType) -> RocketMQReader:
        return RocketMQReader(read_options(self.options), _checked_names(schema))


def _checked_names(schema: StructType) -> list[str]:
    """The columns of a schema. Raises WrongOption where one has not the source's name and type."""
    names = [field.name for field in schema.fields]
    for column, field in zip(columns_named(names), schema.fields, strict=True):
        if field.dataType.simpleString() != column.type:
            raise WrongOption("schema", f"{field.name} {field.dataType.simpleString()}", f"is of type {column.type}")
    return names


class RocketMQReader(DataSourceReader):
    """Plans splits on the driver and reads them in tasks; holds nothing but options, so it travels to the tasks."""

    def __init__(self, options: ReadOptions, columns: list[str]) -> None:
        self.options = options
        self.columns = columns

    def partitions(self) -> list[LogSplit]:
        return plan_splits(self.options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The record batches of one split. Raises LogFileGone, and DamagedLog with failOnDamage."""
        if not isinstance(partition, LogSplit):
            return  # what Spark hands out where there are no splits
        for piece in read_stretch(LogFile(partition.path, partition.first_offset), partition.start, partition.end):
            if isinstance(piece, Damage):
                self._report(partition.path, piece)
            else:
                yield from record_batches(piece, self.columns, self.options.topics)

    def _report(self, path: str, damage: Damage) -> None:
        if self.options.fail_on_damage:
            raise DamagedLog(path, damage.physical_offset, damage.length, damage.reason)
        log.warning(
            "damaged bytes passed over file=%s physical_offset=%d length=%d reason=%s",
            path,
            damage.physical_offset,
            damage.length,
            damage.reason,
        )


def register(session: SparkSession) -> None:
    """Make format "rocketmq" known to a session."""
    session.dataSource.register(RocketMQDataSource)
