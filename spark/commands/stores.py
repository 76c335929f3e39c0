"""The stores that a job reads: all of its tables have the same ends of the logs, and nothing is cached."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Mapping, Sequence

import attrs
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from twisted_mq.spark.source.data_source import FORMAT
from twisted_mq.spark.source.log_end import complete_end
from twisted_mq.spark.source.stores import Store, list_log_files, stores_named
from twisted_mq.spark.tables import register

FROM_THE_BEGIN: Mapping[Store, int] = {}


@attrs.frozen
class Stores:
    """Store directories, each with the physical offset at which its log ended when the job started."""

    session: SparkSession
    ends: Mapping[Store, int]
    paths: tuple[str, ...] = ()

    @classmethod
    def opened(cls, session: SparkSession, paths: Sequence[str]) -> Stores:
        """Open these paths; patterns are resolved. Raises NoCommitLog."""
        register(session)
        ends = {store: complete_end(store, list_log_files(store)) for store in stores_named(paths)}
        return cls(session, ends, tuple(paths))

    def reopened(self) -> Stores:
        """Return the stores of the same paths as they are now. Raises NoCommitLog."""
        return Stores.opened(self.session, self.paths)

    def messages(
        self, columns: Iterable[str], begins: Mapping[Store, int] = FROM_THE_BEGIN, **options: object
    ) -> DataFrame:
        """Return the messages of all stores, for some from a physical offset on; `options` are options of the source."""
        said = {"columns": ",".join(dict.fromkeys(columns)), **{name: str(value) for name, value in options.items()}}

        def of(store: Store, end: int) -> DataFrame:
            between = {"startOffset": str(begins.get(store, 0)), "endOffset": str(end)}
            return self.session.read.format(FORMAT).options(**said, **between).load(store.uri)

        return functools.reduce(DataFrame.unionByName, (of(*one) for one in self.ends.items()))

    def table(self, name: str) -> DataFrame:
        """Return another table of the stores, with the column `store`."""
        frames = (
            self.session.read.format(f"{FORMAT}.{name}").load(store.uri).withColumn("store", F.lit(store.name))
            for store in self.ends
        )
        return functools.reduce(DataFrame.unionByName, frames)

    def begins(self) -> DataFrame:
        """Return store and begin of each log."""
        rows = [(store.name, next((file.first_offset for file in list_log_files(store)), 0)) for store in self.ends]
        return self.session.createDataFrame(rows, "store string, begin bigint")

    def written_since(self) -> Column:
        """Return a condition for rows with store and physicalOffset: the log reached that offset after the job started."""
        grown = [F.lit(False)]
        for store, end in self.ends.items():
            if complete_end(store, list_log_files(store)) > end:
                grown.append((F.col("store") == store.name) & (F.col("physicalOffset") >= end))
        return functools.reduce(operator.or_, grown)
