"""Whether strictly ordered queues are in order, from the stores of all groups: what `mq order audit` says, as tables.

A queue is the messages of its epochs one after the other, each in the order of its queue offsets. The stores of a
group's master and slave have the same messages; such copies count once. In that order each leader's sequences must
count up by one. A message may come again in a later epoch (`resent`): it was stored before, but not acknowledged.
What was deleted before the first message of a queue is not missed.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, SparkSession, Window, WindowSpec
from pyspark.sql import functions as F

from twisted_mq.protocol.flags import OUT_OF_QUEUES
from twisted_mq.protocol.messages.order_mark import FORM
from twisted_mq.protocol.text.properties import PROPERTY_ORDERED
from twisted_mq.spark.source.data_source import FORMAT

COLUMNS = ("topic", "queueId", "queueOffset", "physicalOffset", "sysFlag", "properties")

GAP, SWAP, REPEAT, STALE, FORK, UNMARKED = "gap", "swap", "repeat", "stale", "fork", "unmarked"

_QUEUE = ("topic", "queueId")
_PLACE = ("epoch", "queueOffset")
_FORM = rf"\A{FORM}\z"
_PLAIN = -1


def load_stores(session: SparkSession, stores: Sequence[str]) -> DataFrame:
    """The messages of these store directories, with `store`, which counts them from 0."""
    numbers = [str(number) for number in range(len(stores))]
    options = {"columns": ",".join((*COLUMNS, "brokerName")), "brokerName": ",".join(numbers)}
    messages = session.read.format(FORMAT).options(**options).load(list(stores))
    return messages.withColumn("store", F.col("brokerName").cast("int")).drop("brokerName")


def terms(messages: DataFrame) -> DataFrame:
    """One row for what one leader sent in one epoch of a queue.

    topic, queueId, epoch, leader (null for plain producers, whose sequences are queue offsets), messages, first and last
    (sequences), firstOffset and lastOffset (of the queue), resent (messages of earlier epochs, come again).
    """
    return (
        _judged(_marked(messages))
        .where("place = 1")
        .groupBy(*_QUEUE, "epoch", "leader")
        .agg(
            F.count("*").alias("messages"),
            F.min("sequence").alias("first"),
            F.max("sequence").alias("last"),
            F.min("queueOffset").alias("firstOffset"),
            F.max("queueOffset").alias("lastOffset"),
            F.count_if((F.col("time") > 1) & (F.col("timeInEpoch") == 1)).alias("resent"),
        )
        .withColumn("leader", F.expr(f"nullif(leader, {_PLAIN})"))
    )


def faults(messages: DataFrame) -> DataFrame:
    """One row for what breaks the order; none says that all queues are in order.

    topic, queueId, kind, epoch, leader, first and last (sequences), store, and physicalOffset of the message, of a gap
    that of the message behind it.

    gap: no store has these sequences; swap: comes behind a later one; repeat: twice in its epoch; stale: behind a
    later epoch or leader; fork: stores have different messages at one place; unmarked: without a mark of its queue.
    """
    marked = _marked(messages)
    judged = _judged(marked)
    rows = judged.where("place = 1")
    behind = (F.col("sequence") < F.col("top")) & (F.col("time") == 1)
    behind |= (F.col("sequence") < F.col("topInEpoch")) & (F.col("timeInEpoch") == 1)
    stale = (F.col("leader") < F.col("topLeader")) | (F.col("epoch") < F.col("topEpoch"))
    missing = F.col("sequence") > F.col("before") + 1
    return functools.reduce(
        DataFrame.unionByName,
        (
            _kind(judged.where((F.col("place") > 1) & ~F.col("isCopy")), FORK),
            _kind(rows.where(behind), SWAP),
            _kind(rows.where(F.col("timeInEpoch") > 1), REPEAT),
            _kind(rows.where(stale), STALE),
            _kind(_with_previous(rows).where(missing), GAP, F.col("before") + 1, F.col("sequence") - 1),
            _kind(_unmarked(marked), UNMARKED, F.col("queueOffset"), F.col("queueOffset")),
        ),
    )


def _kind(frame: DataFrame, kind: str, first: Column | None = None, last: Column | None = None) -> DataFrame:
    first, last = (F.col("sequence") if one is None else one for one in (first, last))
    found = (F.lit(kind).alias("kind"), "epoch", F.expr(f"nullif(leader, {_PLAIN})").alias("leader"))
    return frame.select(*_QUEUE, *found, first.alias("first"), last.alias("last"), "store", "physicalOffset")


def _marked(messages: DataFrame) -> DataFrame:
    """All messages of queues; `epoch` is null where there is no mark of the queue."""
    text = F.col("properties")[PROPERTY_ORDERED]
    epoch, queue, leader, base, sequence = (
        F.regexp_extract(text, _FORM, group).try_cast("bigint") for group in range(1, 6)
    )
    led = leader.isNotNull()
    is_mark = (queue == F.col("queueId")) & (~led | ((base >= 1) & (base <= sequence)))
    return messages.where(F.col("sysFlag").bitwiseAND(OUT_OF_QUEUES) == 0).select(
        *_QUEUE,
        "queueOffset",
        "physicalOffset",
        "store",
        F.when(is_mark, epoch).alias("epoch"),
        F.when(is_mark, F.coalesce(leader, F.lit(_PLAIN))).alias("leader"),
        F.when(is_mark, F.coalesce(base, F.lit(0))).alias("base"),
        F.when(is_mark, F.when(led, sequence).otherwise(F.col("queueOffset"))).alias("sequence"),
    )


def _over(*groups: str, order: Sequence[str] = _PLACE) -> WindowSpec:
    return Window.partitionBy(*_QUEUE, *groups).orderBy(*order)


def _before(column: str, window: WindowSpec) -> Column:
    """The highest of the earlier rows."""
    return F.max(column).over(window.rowsBetween(Window.unboundedPreceding, -1))


def _judged(marked: DataFrame) -> DataFrame:
    """Marked messages with `place` (above 1: another one of its epoch and queue offset is counted instead), `isCopy`
    of that one, and for those at place 1 what came before them."""
    place = _over(*_PLACE, order=("store", "physicalOffset"))
    mark = F.struct("leader", "base", "sequence")
    placed = marked.where("epoch is not null").select(
        "*", F.row_number().over(place).alias("place"), (mark == F.first(mark).over(place)).alias("isCopy")
    )
    # sequences of plain producers begin anew in each epoch: each epoch is a line of its own, below all leaders
    line = F.when(F.col("leader") == _PLAIN, -1 - F.col("epoch")).otherwise(F.col("leader"))
    led = F.col("leader") != _PLAIN
    one = placed.select("*", line.alias("line"), led.alias("led"), (F.col("place") > 1).alias("other"))
    return one.select(
        "*",
        F.row_number().over(_over("other", "line", "sequence")).alias("time"),
        F.row_number().over(_over("other", "line", "sequence", "epoch")).alias("timeInEpoch"),
        _before("sequence", _over("other", "line")).alias("top"),
        _before("sequence", _over("other", "line", "epoch")).alias("topInEpoch"),
        _before("leader", _over("other", "led")).alias("topLeader"),
        _before("epoch", _over("other", "store", order=("queueOffset", "epoch"))).alias("topEpoch"),
        F.first("line").over(_over("other")).alias("firstLine"),
    )


def _with_previous(rows: DataFrame) -> DataFrame:
    """First messages of each sequence with `before`, the sequence before it; null where anything may be missing."""
    of_leaders = rows.where("led and time = 1")
    previous = F.lag("sequence").over(_over("line", order=("sequence",)))
    begin = F.when(F.col("line") != F.col("firstLine"), 0)
    of_plain = rows.select("*", F.lag("queueOffset").over(_over("epoch", order=("queueOffset",))).alias("before"))
    return of_leaders.select("*", F.coalesce(previous, begin).alias("before")).unionByName(of_plain.where("not led"))


def _unmarked(marked: DataFrame) -> DataFrame:
    """Messages without a mark behind one that has it in the same store."""
    earlier = _before("epoch", _over("store", order=("physicalOffset",)))
    return marked.select("*", earlier.alias("markedBefore")).where("epoch is null and markedBefore is not null")
