"""Stores as streams: each batch reads the records appended after the last one. No broker is asked; stores of slaves can be used
too.

The offset is a map from the store's path to a mark: the physical offset before which all records were read, and the last of
these. It can be any byte, like a cut of a batch; the records after it are found as after every cut. Checkpoints of earlier
releases have only the physical offset, and can be read.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, SupportsTriggerAvailableNow

from twisted_mq.spark.errors import DataLost
from twisted_mq.spark.source.log_end import complete_end
from twisted_mq.spark.source.log_stretch import read_part
from twisted_mq.spark.source.losses import missing_bytes, report_all
from twisted_mq.spark.source.marks import Logs, Mark, go_on, keys_of, mark_at, parse_mark
from twisted_mq.spark.source.options import ReadOptions
from twisted_mq.spark.source.planning import stores_of
from twisted_mq.spark.source.splits import LogSplit, StoreRange, plan_splits
from twisted_mq.spark.source.store_reader import as_batches
from twisted_mq.spark.source.stores import LogFile, Store, list_log_files
from twisted_mq.spark.source.witness import Witness

log = logging.getLogger(__name__)
Offset = dict[str, Any]
"""A mark as JSON, or a physical offset alone, by the store's path."""
Log = Sequence[LogFile]


class StoreStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reader of the records between two offsets; a store that a pattern finds later starts at its log's first byte."""

    def __init__(self, options: ReadOptions, columns: Sequence[str]) -> None:
        self.options = options
        self.columns = columns
        self._target: dict[Store, int] | None = None
        self._listed: tuple[dict[Store, Log], dict[Store, int]] | None = None

    def initialOffset(self) -> Offset:
        logs = self._logs()
        if self.options.from_latest:
            return {store.name: mark_at(store, logs[store], end).as_json() for store, end in self._ends(logs).items()}
        return {store.name: Mark(self._first_offset(files)).as_json() for store, files in logs.items()}

    def _first_offset(self, files: Log) -> int:
        return max(self.options.start_offset, files[0].first_offset if files else 0)

    def getDefaultReadLimit(self) -> ReadLimit:
        most = self.options.bytes_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxBytes(most)

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self._ends(self._logs())

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """Return the next end, never before `start`: a checkpoint may be older than the last batch. Raises DataLost like
        `partitions`."""
        logs, whole = self._listed = self._listing()
        ends = self._limited(whole)
        target = ends if self._target is None else self._target
        most = limit.max_bytes if isinstance(limit, ReadMaxBytes) else None
        marks, keys = self._begun(start, logs)
        following = {key: mark.as_json() for key, mark in marks.items() if key not in keys.values()}
        for store, files in logs.items():
            if store in target:
                mark = marks[keys[store]] if store in keys else None
                begin = self._begin(store, files, mark, whole[store])
                end = max(begin, min(ends[store], target[store], begin + most if most is not None else ends[store]))
                same = mark is not None and mark.reached == end and mark.store == store.name
                made = mark if mark and same else mark_at(store, files, end)
                following[store.name] = attrs.evolve(made, lost=self._lost(store, files, mark, begin, end)).as_json()
        return following

    def _lost(self, store: Store, files: Log, mark: Mark | None, begin: int, end: int) -> int | None:
        """Return the lost bytes of this batch and of those before it."""
        before = 0 if mark is None else mark.lost or 0
        return before + sum(one.end - one.begin for one in missing_bytes(store, files, begin, end)) or None

    def _begun(self, offset: Offset, logs: Logs) -> tuple[dict[str, Mark], dict[Store, str]]:
        """Return the marks of an offset, and the mark of each store. Raises DataLost if a mark's store is missing."""
        marks = {key: parse_mark(kept) for key, kept in offset.items()}
        keys = keys_of(marks, logs, lambda store: store.name)
        for key in sorted(marks.keys() - set(keys.values())):
            what = f"store {key} was read up to physical offset {marks[key].reached} and is not there"
            if self.options.fail_on_data_loss:
                raise DataLost(what)
            log.warning("%s", what)
        return marks, keys

    def _begin(self, store: Store, files: Log, mark: Mark | None, end: int) -> int:
        """Return where reading continues in a log that ends at `end`. Raises DataLost if it is not the log that was read."""
        if mark is None:
            return self._first_offset(files)
        return go_on(store, files, mark, end, self.options.fail_on_data_loss)

    def reportLatestOffset(self) -> Offset:
        _, whole = self._listed or self._listing()
        return {store.name: end for store, end in self._limited(whole).items()}

    def partitions(self, start: Offset, end: Offset) -> list[LogSplit]:
        """Plan a batch. Raises DataLost if a log begins after `start`, ends before it, or has another record at the last one's
        place."""
        listed, self._listed = self._listed, None
        logs, whole_logs = listed or self._listing()
        ranges = []
        begun, begun_keys = self._begun(start, logs)
        ends, end_keys = self._begun(end, logs)
        for store, key in end_keys.items():
            files, last = logs[store], ends[key]
            whole = whole_logs[store]
            begin = self._begin(store, files, begun[begun_keys[store]] if store in begun_keys else None, whole)
            self._begin(store, files, last, whole)
            report_all(missing_bytes(store, files, begin, last.reached), self.options)
            ranges.append(StoreRange(store, files, begin, last.reached, whole, Witness(store).has_queues))
        return plan_splits(ranges, self.options.part_bytes, self.options.min_parts)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, LogSplit)
        return as_batches(partition.part.store, read_part(partition.part), self.columns, self.options)

    def _logs(self) -> dict[Store, Log]:
        return {store: list_log_files(store) for store in stores_of(self.options)}

    def _listing(self) -> tuple[dict[Store, Log], dict[Store, int]]:
        """Return the files of each log and its end, listed once per trigger: a listing of S3 is slow."""
        logs = self._logs()
        return logs, _whole(logs)

    def _ends(self, logs: Logs) -> dict[Store, int]:
        return self._limited(_whole(logs))

    def _limited(self, ends: dict[Store, int]) -> dict[Store, int]:
        return {store: min(self.options.end_offset, end) for store, end in ends.items()}


def _whole(logs: Logs) -> dict[Store, int]:
    """Return the end of each log, after its last complete record."""
    return {store: complete_end(store, files) for store, files in logs.items()}
