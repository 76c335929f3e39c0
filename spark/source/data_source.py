"""The data source "rocketmq" for stores and live queues, in batch and as streams.

    session.read.format("rocketmq").option("topic", "Orders").load("/path/to/store")

Rows are in physical order within a task. Batches go to Spark as Arrow record batches. Fewer columns are faster: Spark does not
pass the columns of a query to a Python source, so set them with the option `columns` or a schema with fewer columns
(`session.read.schema("topic string, storeSize int")`). Bodies are decompressed and CRCs computed only when requested.

A store can be read while its broker writes: a read ends after the last complete record at load(), so all actions on one data
frame or view have the same rows. A batch of live queues likewise has its bounds from load(). Damaged bytes are skipped up to the
next intact record: each stretch is logged by the task, `spark.source.damage` lists them, and failOnDamage=true makes them an
error. A body with a wrong CRC is a row with crcOk = false.
"""

from __future__ import annotations

import copyreg
import logging

import attrs
from pyspark import cloudpickle
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from twisted_mq import packed
from twisted_mq.spark.columns.schema import columns_named, spark_ddl
from twisted_mq.spark.errors import StoreReadError, WrongOption
from twisted_mq.spark.live.access_options import NAME_SERVER
from twisted_mq.spark.live.batch_reader import Cut, LiveBatchReader, take_cut
from twisted_mq.spark.live.options import LiveOptions, live_options
from twisted_mq.spark.live.stream_reader import LiveStreamReader
from twisted_mq.spark.sink.options import checked_sink
from twisted_mq.spark.sink.writer import BatchWriter, StreamWriter
from twisted_mq.spark.source.held_queues import HeldQueues
from twisted_mq.spark.source.options import read_options
from twisted_mq.spark.source.planning import Ends, log_ends
from twisted_mq.spark.source.store_reader import StoreReader
from twisted_mq.spark.source.stores import stores_named
from twisted_mq.spark.source.stream_reader import StoreStreamReader

log = logging.getLogger(__name__)
FORMAT = "rocketmq"


class RocketMQDataSource(DataSource):
    """Format "rocketmq". Spark calls `schema` at load(), and its results are sent with the data source."""

    ends: Ends | None = None
    cut: Cut | None = None

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        if self._is_live:
            self.cut = self._cut_now()
            return spark_ddl(live_options(self.options).columns)
        options = read_options(self.options)
        self.ends = log_ends(options)
        return spark_ddl(options.columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        if self._is_live:
            return LiveBatchReader(*self._live(schema), self.cut)
        return StoreReader(read_options(self.options), checked_names(schema), self.ends)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        if self._is_live:
            return LiveStreamReader(*self._live(schema))
        return StoreStreamReader(read_options(self.options), checked_names(schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        return BatchWriter(checked_sink(self.options, schema, overwrite))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        return StreamWriter(checked_sink(self.options, schema, overwrite))

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle with the path of the archive, because Spark 4.3 runs sources of streams without the --py-files of their
        session."""
        archive = packed.archive_of(__name__)
        if archive is None:
            return copyreg.__newobj__, (type(self),), self.__getstate__()  # type: ignore[attr-defined]
        cloudpickle.register_pickle_by_value(packed)
        return packed.restore, (archive, cloudpickle.dumps((type(self), self.__getstate__())))

    def __getstate__(self) -> dict[str, object]:
        """Return the state from load(); Spark does not call `schema` there if the user gives one."""
        if self.ends is None and not self._is_live and {"path", "paths"} & {name.lower() for name in self.options}:
            self.ends = log_ends(read_options(self.options))
        return self.__dict__

    def _cut_now(self) -> Cut | None:
        """Return the bounds of a batch; None if they cannot be known now: a batch fails when it is planned, a stream may wait."""
        options = live_options(self.options)
        once = attrs.evolve(options, access=attrs.evolve(options.access, tries=1))
        try:
            return take_cut(once, _held(options))
        except StoreReadError as error:
            log.info("bounds are not known at load(): %s", error)
            return None

    def _live(self, schema: StructType) -> tuple[LiveOptions, list[str], HeldQueues | None]:
        options = live_options(self.options)
        return options, checked_names(schema), _held(options)

    @property
    def _is_live(self) -> bool:
        return NAME_SERVER in self.options


def _held(options: LiveOptions) -> HeldQueues | None:
    return HeldQueues(stores_named(options.stores, options.broker_names)) if options.stores else None


def checked_names(schema: StructType) -> list[str]:
    """Return the columns of a schema. Raises WrongOption for a column without the source's name and type."""
    names = [field.name for field in schema.fields]
    for column, field in zip(columns_named(names), schema.fields, strict=True):
        if field.dataType.simpleString() != column.type:
            raise WrongOption("schema", f"{field.name} {field.dataType.simpleString()}", f"is of type {column.type}")
    return names
