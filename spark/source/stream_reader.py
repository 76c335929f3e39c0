"""Stores as streams: each batch reads what their logs got behind the last one. No broker is asked; slaves' stores do too.

The offset is a map from the store's path to one physical offset: records that begin before it were read. It may be any
byte, as a cut of a batch's bytes is; the records behind it are found as in every cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, SupportsTriggerAvailableNow

from twisted_mq.spark.source.log_stretch import read_part
from twisted_mq.spark.source.losses import missing_bytes, report_all
from twisted_mq.spark.source.options import ReadOptions
from twisted_mq.spark.source.planning import log_end, stores_of
from twisted_mq.spark.source.splits import LogSplit, StoreRange, plan_splits
from twisted_mq.spark.source.store_reader import as_batches
from twisted_mq.spark.source.stores import LogFile, Store, list_log_files
from twisted_mq.spark.source.witness import Witness

Offset = dict[str, int]


class StoreStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads what lies between two offsets; a store that a pattern finds later begins at its log's first byte."""

    def __init__(self, options: ReadOptions, columns: Sequence[str]) -> None:
        self.options = options
        self.columns = columns
        self._target: Offset | None = None

    def initialOffset(self) -> Offset:
        begins = {store.name: self._first_offset(files) for store, files in self._logs()}
        return self._ends() if self.options.from_latest else begins

    def _first_offset(self, files: Sequence[LogFile]) -> int:
        return max(self.options.start_offset, files[0].first_offset if files else 0)

    def getDefaultReadLimit(self) -> ReadLimit:
        most = self.options.bytes_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxBytes(most)

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self._ends()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """Never behind `start`: a checkpoint may be older than the last batch."""
        ends = self._ends() if self._target is None else self._target
        most = limit.max_bytes if isinstance(limit, ReadMaxBytes) else None
        return {**start, **{name: self._next(start.get(name), name, end, most) for name, end in ends.items()}}

    def _next(self, start: int | None, name: str, end: int, most: int | None) -> int:
        if start is None:
            start = next(self._first_offset(files) for store, files in self._logs() if store.name == name)
        return max(start, end if most is None else min(end, start + most))

    def reportLatestOffset(self) -> Offset:
        return self._ends()

    def partitions(self, start: Offset, end: Offset) -> list[LogSplit]:
        """Raises DataLost where a log begins behind `start`, as its broker deleted files that were not read yet."""
        ranges = []
        for store, files in self._logs():
            if store.name in end:
                begin = start.get(store.name, self._first_offset(files))
                report_all(missing_bytes(store, files, begin, end[store.name]), self.options)
                whole = log_end(store, files, self.options)
                ranges.append(StoreRange(store, files, begin, end[store.name], whole, Witness(store).has_queues))
        return plan_splits(ranges, self.options.part_bytes, self.options.min_parts)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, LogSplit)
        return as_batches(partition.part.store, read_part(partition.part), self.columns, self.options)

    def _logs(self) -> list[tuple[Store, list[LogFile]]]:
        return [(store, list_log_files(store)) for store in stores_of(self.options)]

    def _ends(self) -> Offset:
        most = self.options.end_offset
        return {store.name: min(most, log_end(store, files, self.options)) for store, files in self._logs()}
