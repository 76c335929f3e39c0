"""Reader of stores as one batch: the driver plans splits, tasks read them as record batches."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from twisted_mq.spark.columns.makers import Origin, record_batches
from twisted_mq.spark.errors import DamagedLog
from twisted_mq.spark.source.copies import as_one_log
from twisted_mq.spark.source.log_stretch import Damage, Missing, read_part
from twisted_mq.spark.source.losses import check_range, report_missing
from twisted_mq.spark.source.options import ReadOptions
from twisted_mq.spark.source.planning import Ends, log_ends, plan_ranges
from twisted_mq.spark.source.pushed_filters import PushedFilters, narrowed
from twisted_mq.spark.source.quarantine import put_aside
from twisted_mq.spark.source.queue_reads import QueueSplit, plan_queues, read_queue
from twisted_mq.spark.source.splits import LogSplit, plan_splits
from twisted_mq.spark.source.stores import Store
from twisted_mq.spark.worker import settled
from twisted_mq.storage.columns.record_columns import RecordColumns

log = logging.getLogger(__name__)


class StoreReader(DataSourceReader):
    """Reader of a batch. It has only options, columns and the ends of the logs, so it can be sent to tasks."""

    def __init__(
        self, options: ReadOptions, columns: Sequence[str], ends: Ends | None = None, parts_together: int = 1
    ) -> None:
        """`ends` None: the ends of the logs when the read is planned. A split of a log has so many parts of maxPartitionBytes."""
        self.options = options
        self.columns = columns
        self.ends = ends
        self.parts_together = parts_together

    @property
    def pushFilters(self) -> PushedFilters:
        return PushedFilters(self._narrow)

    def _narrow(self, filters: Sequence[Filter]) -> None:
        self.options = narrowed(self.options, filters)

    def partitions(self) -> list[LogSplit | QueueSplit]:
        with settled():
            return self._planned()

    def _planned(self) -> list[LogSplit | QueueSplit]:
        options = self.options
        planned_ranges = plan_ranges(options, log_ends(options) if self.ends is None else self.ends)
        ranges = as_one_log(planned_ranges, options)
        for part in ranges:
            check_range(part, options)
        splits: list[LogSplit | QueueSplit] = []
        if options.through_queues:
            planned = [plan_queues(log, options.selection) for log in ranges]
            splits += itertools.chain.from_iterable(found for found, _ in planned)
            ranges = [rest for _, rest in planned]
        return splits + plan_splits(ranges, options.part_bytes, options.min_parts, self.parts_together)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the record batches of one split. Raises DataLost with failOnDataLoss, DamagedLog with failOnDamage."""
        if isinstance(partition, LogSplit):
            yield from as_batches(partition.part.store, read_part(partition.part), self.columns, self.options)
        elif isinstance(partition, QueueSplit):  # and None is Spark's value if there are no splits
            yield from as_batches(partition.part.log.store, read_queue(partition.part), self.columns, self.options)


def as_batches(
    store: Store, pieces: Iterable[RecordColumns | Damage | Missing], columns: Sequence[str], options: ReadOptions
) -> Iterator[pa.RecordBatch]:
    """Yield these columns of the selected messages of a store. Raises DataLost, DamagedLog if the options require it."""
    origin = Origin(store.name, store.broker_name)
    with settled():
        for records in intact_pieces(store, pieces, options):
            yield from record_batches(records, columns, options.selection, origin)


def intact_pieces(
    store: Store, pieces: Iterable[RecordColumns | Damage | Missing], options: ReadOptions
) -> Iterator[RecordColumns]:
    """Yield the records, and report what is damaged or missing. Raises DataLost, DamagedLog if the options require it."""
    for piece in pieces:
        if isinstance(piece, Damage):
            _report_damage(store, piece, options)
        elif isinstance(piece, Missing):
            report_missing(piece, options.fail_on_data_loss, options.quarantine)
        else:
            yield piece


def _report_damage(store: Store, damage: Damage, options: ReadOptions) -> None:
    if options.fail_on_damage:
        raise DamagedLog(damage.file, damage.physical_offset, damage.length, damage.reason)
    if options.quarantine is not None:
        put_aside(store, damage, options.quarantine)
    log.warning(
        "damaged bytes skipped store=%s file=%s physical_offset=%d length=%d reason=%s",
        store.name,
        damage.file,
        damage.physical_offset,
        damage.length,
        damage.reason,
    )
