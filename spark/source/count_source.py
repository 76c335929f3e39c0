"""The table "rocketmq.count": the number of messages of stores, without sending a row of each to Spark.

    session.read.format("rocketmq.count").option("topic", "Orders").load("/path/to/store").agg(F.sum("messages"))

Spark passes no `count(*)` to a Python source, so a count of the format "rocketmq" sends every row to Java. Here each task counts
several parts of a log and sends one row. Options are those of the format "rocketmq" for stores, and so are the messages.

With through=queues the entries of the consume queues are counted, of all topics if none is selected, and the log is read only for
tags, times and what no queue has yet. So damage in the log goes unnoticed there.
"""

from __future__ import annotations

import itertools
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import attrs
import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from twisted_mq.spark.columns.makers import count_messages
from twisted_mq.spark.errors import WrongOption
from twisted_mq.spark.live.access_options import NAME_SERVER
from twisted_mq.spark.source.data_source import FORMAT, RocketMQDataSource
from twisted_mq.spark.source.log_stretch import gone, read_part
from twisted_mq.spark.source.losses import report_missing
from twisted_mq.spark.source.options import ReadOptions, read_options
from twisted_mq.spark.source.planning import Ends
from twisted_mq.spark.source.queue_reads import QueueSplit, count_entries, read_queue
from twisted_mq.spark.source.splits import DEFAULT_PART_BYTES, LogSplit
from twisted_mq.spark.source.store_reader import StoreReader, intact_pieces
from twisted_mq.spark.source.stores import Store
from twisted_mq.spark.worker import settled

PARTS_TOGETHER = 8
"""Parts of maxPartitionBytes that a task counts: starting a task takes as long as counting some 100,000 messages."""
_EVERY_TOPIC = re.compile("(?s:.*)")
_DDL = "store string, messages bigint"
_SCHEMA = pa.schema([("store", pa.string()), ("messages", pa.int64())])
Split = LogSplit | QueueSplit


class CountSplit(InputPartition):
    """Splits that one task counts."""

    def __init__(self, splits: Sequence[Split]) -> None:
        super().__init__(splits)
        self.splits = splits


class CountReader(DataSourceReader):
    """Reader that counts the messages of a batch. Its splits are fewer and larger than those of a read."""

    def __init__(self, options: ReadOptions, ends: Ends | None) -> None:
        self.options = attrs.evolve(options, min_parts=max(options.min_parts, os.cpu_count() or 1))
        self._reader = StoreReader(self.options, (), ends, PARTS_TOGETHER)

    def partitions(self) -> list[CountSplit]:
        """Return splits of about the same size. Several queues share one."""
        splits = self._reader.partitions()
        sizes = [_size_bytes(split) for split in splits]
        total = max(1, sum(sizes))
        most = PARTS_TOGETHER * (self.options.part_bytes or DEFAULT_PART_BYTES)
        tasks = max(self.options.min_parts, -(-total // most))
        found: defaultdict[int, list[Split]] = defaultdict(list)
        for split, begin in zip(splits, itertools.accumulate(sizes, initial=0), strict=False):
            found[begin * tasks // total].append(split)
        return list(map(CountSplit, found.values()))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield a row for each store. Raises DataLost, DamagedLog as a read of the messages."""
        counts: Counter[str] = Counter()
        with settled():
            for split in getattr(partition, "splits", ()):  # Spark's value has none if there is nothing to count
                store = _store_of(split)
                counts[store.name] += _count(store, split, self.options)
            rows = [{"store": name, "messages": count} for name, count in counts.items()]
            yield pa.RecordBatch.from_pylist(rows, _SCHEMA)


def _size_bytes(split: Split) -> int:
    if isinstance(split, LogSplit):
        return split.part.size_bytes
    return (split.part.end - split.part.begin) * split.part.layout.entry.itemsize


def _store_of(split: Split) -> Store:
    return split.part.store if isinstance(split, LogSplit) else split.part.log.store


def _count(store: Store, split: Split, options: ReadOptions) -> int:
    if isinstance(split, LogSplit):
        pieces = read_part(split.part)
    elif options.selection.tags or options.file_times.are_any:
        pieces = read_queue(split.part)
    else:
        return _count_queue(split, options)
    return sum(count_messages(records, options.selection) for records in intact_pieces(store, pieces, options))


def _count_queue(split: QueueSplit, options: ReadOptions) -> int:
    part = split.part
    try:
        return count_entries(part)
    except FileNotFoundError:
        missing = gone(part.log.store, part.path, part.log.begin, part.log.end)
        report_missing(missing, options.fail_on_data_loss, options.quarantine)
        return 0


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
        options = read_options(self.options)
        if options.through_queues and not options.selection.names_topics:
            options = attrs.evolve(options, selection=attrs.evolve(options.selection, topic_pattern=_EVERY_TOPIC))
        return CountReader(options, self.ends)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        raise WrongOption("format", self.name(), "messages are counted in batches, not in streams")
