"""Splits, and the read of one task: the same for batches and streams."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from twisted_mq.spark.live.cluster import Cluster
from twisted_mq.spark.live.errors import Behind, BrokerSilent, OffsetsLost, PeerSilent
from twisted_mq.spark.live.held import Held
from twisted_mq.spark.live.kept_clusters import kept_cluster
from twisted_mq.spark.live.offset_maps import Offsets
from twisted_mq.spark.live.options import LiveOptions
from twisted_mq.spark.live.planning import split, stretches
from twisted_mq.spark.live.pulling import Stretch, StretchPull, queue_text
from twisted_mq.spark.live.rows import RowMaker
from twisted_mq.spark.worker import settled


def pulled_bodies(cluster: Cluster, pull: StretchPull) -> Iterator[bytes]:
    """Yield the bodies of the answers, in the queue's order, to the stretch's end. Raises LiveError."""
    queue, failures, began = pull.stretch.queue, 0, cluster.now()
    while pull.position < pull.stretch.end:
        before = pull.position
        silent: list[PeerSilent] = []
        for address in cluster.replicas(queue):
            try:
                yield from pull.bodies(cluster.connection(address))
                break
            except PeerSilent as error:
                silent.append(error)
        else:
            if pull.position > before:
                failures, began = 0, cluster.now()
            failures += 1
            waited = float("inf") if _all_answer(silent) else cluster.now() - began
            if cluster.access.is_over(failures, waited):
                _give_up(cluster, pull, silent)
                return
            cluster.pause(failures)
            cluster.forget(queue)


def _all_answer(silent: list[PeerSilent]) -> bool:
    """Return True if all replicas answer, and none of them has the messages."""
    return bool(silent) and all(isinstance(error, Behind) for error in silent)


def _give_up(cluster: Cluster, pull: StretchPull, silent: list[PeerSilent]) -> None:
    """Raise BrokerSilent, or OffsetsLost if replicas answer and none has the messages, unless loss is allowed."""
    queue = pull.stretch.queue
    ends = [error.end for error in silent if isinstance(error, Behind)]
    if not _all_answer(silent):
        raise BrokerSilent(queue.broker_name, list(map(str, silent)), cluster.host)
    pull.note(OffsetsLost(queue_text(queue), pull.position, max(ends), "no replica has more"))


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
