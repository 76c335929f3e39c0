"""Reading stores at rest as one batch: splits are planned on the driver, tasks make record batches of them."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from twisted_mq.spark.columns.makers import Origin, record_batches
from twisted_mq.spark.errors import DamagedLog, DataLost
from twisted_mq.spark.source.log_stretch import Damage, Missing, read_part
from twisted_mq.spark.source.options import ReadOptions
from twisted_mq.spark.source.planning import Ends, log_ends, plan_ranges
from twisted_mq.spark.source.pushed_filters import PushedFilters, narrowed
from twisted_mq.spark.source.splits import LogSplit, StoreRange, plan_splits

log = logging.getLogger(__name__)


class StoreReader(DataSourceReader):
    """Holds nothing but options, columns and the ends of the logs, so it travels to the tasks."""

    def __init__(self, options: ReadOptions, columns: Sequence[str], ends: Ends | None = None) -> None:
        """`ends` None: where the logs end when the read is planned."""
        self.options = options
        self.columns = columns
        self.ends = ends

    @property
    def pushFilters(self) -> PushedFilters:
        return PushedFilters(self._narrow)

    def _narrow(self, filters: Sequence[Filter]) -> None:
        self.options = narrowed(self.options, filters)

    def partitions(self) -> list[LogSplit]:
        ends = log_ends(self.options) if self.ends is None else self.ends
        ranges = plan_ranges(self.options, ends)
        return plan_splits(ranges, self.options.part_bytes, self.options.min_parts)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The record batches of one split. Raises DataLost with failOnDataLoss, DamagedLog with failOnDamage."""
        if isinstance(partition, LogSplit):  # else what Spark hands out where there are no splits
            yield from read_batches(partition.part, self.columns, self.options)


def read_batches(part: StoreRange, columns: Sequence[str], options: ReadOptions) -> Iterator[pa.RecordBatch]:
    """These columns of what is wanted of a part. Raises DataLost, DamagedLog as the options say."""
    origin = Origin(part.store.name, part.store.broker_name)
    for piece in read_part(part):
        if isinstance(piece, Damage):
            _report_damage(part, piece, options.fail_on_damage)
        elif isinstance(piece, Missing):
            report_missing(piece, options.fail_on_data_loss)
        else:
            yield from record_batches(piece, columns, options.selection, origin)


def report_missing(missing: Missing, fail: bool) -> None:
    """Raises DataLost, or logs what is lost."""
    if fail:
        raise DataLost(str(missing))
    log.warning("%s", missing)


def _report_damage(part: StoreRange, damage: Damage, fail: bool) -> None:
    if fail:
        raise DamagedLog(damage.file, damage.physical_offset, damage.length, damage.reason)
    log.warning(
        "damaged bytes passed over store=%s file=%s physical_offset=%d length=%d reason=%s",
        part.store.name,
        damage.file,
        damage.physical_offset,
        damage.length,
        damage.reason,
    )
