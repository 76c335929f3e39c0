"""Send messages of stores to a topic again, with their ids and in the order of their queues.

Slices of the log are sent one after the other. In a slice one task sends all messages of a source queue, in the log's order, to
one queue of the target. Delivery is at least once: after a replay is killed, its last slice is sent again, with the same ids.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from twisted_mq.protocol.flags import OUT_OF_QUEUES
from twisted_mq.protocol.text.properties import PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX
from twisted_mq.spark.commands.slices import NOTHING_DONE, ProgressFile, Slice, lost_figures, work
from twisted_mq.spark.commands.stores import Stores
from twisted_mq.spark.findings.findings import Figure, Findings, Kind, Kinds, Table, bars
from twisted_mq.spark.live.cluster import Cluster
from twisted_mq.spark.sink.columns import NOT_SENT
from twisted_mq.spark.sink.options import sink_options
from twisted_mq.spark.source.data_source import FORMAT

COLUMNS = (
    "store", "queueId", "queueOffset", "physicalOffset", "sysFlag", "uniqKey", "tags", "keys", "properties", "body",
)  # fmt: skip
_KINDS: Kinds = {"store": Kind.TEXT, "begin": Kind.PLAIN, "end": Kind.PLAIN, "messages": Kind.COUNT}


@attrs.frozen
class Replay:
    """A replay from topic `source` to `target`; `access` has options of the sink, including nameServer.

    `times` are the options startTime and endTime of the source. `state`: a file that stores the progress.
    """

    source: str
    target: str
    access: Mapping[str, str]
    times: Mapping[str, str] = attrs.field(factory=dict)
    state: str | None = None
    fail_on_data_loss: bool = True


def replay(stores: Stores, limit: int, wanted: Replay, advance: Callable[[int], None] = lambda size: None) -> Findings:
    """Send messages that are not sent yet. Calls `advance` with the number of finished bytes of the log.

    Raises LiveError, SinkError, and DataLost if the logs no longer have requested data, or are not the logs of the previous run.
    """
    queues = _queues(wanted)
    about = {"source": wanted.source, "target": wanted.target, **wanted.times}
    progress = None if wanted.state is None else ProgressFile(wanted.state, about)
    rows = []
    left = work(stores, NOTHING_DONE if progress is None else progress.done, wanted.fail_on_data_loss)
    for piece in left.slices:
        rows.append((piece.store.name, piece.begin, piece.end, _send(stores, piece, wanted, queues)))
        if progress is not None:
            progress.reached(piece)
        advance(piece.end - piece.begin)
    sent = Figure("messages sent", sum(row[-1] for row in rows))
    table = Table("Slices", _KINDS, tuple(rows[:limit]), len(rows))
    pictures = (bars("Messages sent", table, "begin", "messages"),) if rows else ()
    figures = (sent, Figure("slices of logs", len(rows)), Figure("queues", queues), *lost_figures(left))
    return Findings("replay", figures, (table,), pictures)


def _queues(wanted: Replay) -> int:
    """Return the number of queues of the target. Raises LiveError."""
    cluster = Cluster(sink_options(wanted.access).access)
    try:
        return len(cluster.writable_queues(wanted.target))
    finally:
        cluster.close()


def _send(stores: Stores, piece: Slice, wanted: Replay, queues: int) -> int:
    of_one = attrs.evolve(stores, ends={piece.store: piece.end})
    loss = {} if wanted.fail_on_data_loss else {"failOnDataLoss": "false"}
    found = of_one.messages(COLUMNS, {piece.store: piece.begin}, topic=wanted.source, **wanted.times, **loss)
    queued = found.where(F.col("sysFlag").bitwiseAND(OUT_OF_QUEUES) == 0)
    rows = messages(queued, piece.key, queues)
    count = queued.count()
    if count:
        options = {**wanted.access, "topic": wanted.target}
        rows.write.format(FORMAT).options(**options).mode("append").save()
    return count


def messages(queued: DataFrame, tag: str, queues: int) -> DataFrame:
    """Return rows for the sink: each source queue in one partition, in order. The place in the log replaces a missing unique
    key."""
    place = F.concat_ws("-", F.lit(tag), "physicalOffset", "queueOffset")
    ordered = queued.repartition("store", "queueId").sortWithinPartitions(
        "store", "queueId", "physicalOffset", "queueOffset"
    )
    return ordered.select(
        "body",
        "tags",
        "keys",
        F.map_concat(F.map_filter("properties", _is_sent), _with_key(F.coalesce("uniqKey", place))).alias("properties"),
        (F.col("queueId") % queues).cast("int").alias("queue"),
    )


def _is_sent(name: Column, _: Column) -> Column:
    return ~name.isin(*sorted(NOT_SENT))


def _with_key(key: Column) -> Column:
    return F.create_map(F.lit(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX), key)
