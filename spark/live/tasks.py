"""Splits, and the read of one task: the same for batches and streams."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from twisted_mq.spark.live.cluster import Cluster
from twisted_mq.spark.live.held import Held
from twisted_mq.spark.live.kept_clusters import kept_cluster
from twisted_mq.spark.live.offset_maps import Offsets
from twisted_mq.spark.live.options import LiveOptions
from twisted_mq.spark.live.planning import split, stretches
from twisted_mq.spark.live.pulled_bodies import pulled_bodies
from twisted_mq.spark.live.pulling import Stretch, StretchPull
from twisted_mq.spark.live.rows import RowMaker
from twisted_mq.spark.worker import settled

log = logging.getLogger(__name__)


class LiveSplit(InputPartition):
    """A stretch of one queue."""

    def __init__(self, stretch: Stretch) -> None:
        super().__init__(stretch)
        self.stretch = stretch

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LiveSplit) and self.stretch == other.stretch

    __hash__ = None  # type: ignore[assignment]


def planned(start: Offsets, end: Offsets, options: LiveOptions) -> list[LiveSplit]:
    """Return the splits between two sets of offsets."""
    found = split(stretches(start, end), options.min_partitions, options.records_per_partition)
    return [LiveSplit(one) for one in found]


def read_split(
    partition: InputPartition, options: LiveOptions, columns: Sequence[str], held: Held | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one split, in the queue's order, from files as far as possible. Raises LiveError."""
    if not isinstance(partition, LiveSplit):
        return  # Spark's value if there are no splits
    stretch = partition.stretch
    maker = RowMaker(stretch, columns, options.selection)
    with settled(), kept_cluster(options.access) as cluster:
        for piece in (stretch,) if held is None else held.pieces(stretch, options.selection):
            if isinstance(piece, Stretch):
                yield from _pulled(cluster, piece, options, maker)
            else:
                yield from maker.rows(piece.records, piece.origin)


def _pulled(cluster: Cluster, stretch: Stretch, options: LiveOptions, maker: RowMaker) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a stretch, from brokers."""
    pull = StretchPull(
        stretch, options.group, options.selection, options.limits, fail_on_data_loss=options.fail_on_data_loss
    )
    yield from maker.batches(pulled_bodies(cluster, pull))
    for loss in pull.lost:
        log.warning("messages lost, skipped: %s", loss)
