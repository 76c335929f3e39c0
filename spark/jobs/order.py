"""Order of strictly ordered queues, from the stores of all groups: the result of `mq order audit`, as tables.

A queue is the messages of its epochs one after the other, each in the order of its queue offsets. The stores of a
group's master and slave have the same messages; such copies count once. In that order each leader's sequences must
count up by one. A message can be repeated in a later epoch (`resent`): it was stored before, but not acknowledged. Messages
deleted before the first message of a queue are not missing.

Queues are processed in stretches, with many tasks per queue: summaries of the other stretches replace the messages before one.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from twisted_mq.protocol.flags import OUT_OF_QUEUES
from twisted_mq.protocol.messages.order_mark import FORM
from twisted_mq.protocol.text.properties import PROPERTY_ORDERED
from twisted_mq.spark.jobs.stretches import at_gaps, stretch_of

COLUMNS = ("topic", "queueId", "queueOffset", "physicalOffset", "sysFlag", "properties", "store")

GAP, SWAP, REPEAT, STALE, FORK, UNMARKED = "gap", "swap", "repeat", "stale", "fork", "unmarked"

_QUEUE = ("topic", "queueId")
_PLACE = ("epoch", "queueOffset")
_STRETCH = (*_QUEUE, "store", "line", "epoch", "stretch")
_FORM = rf"\A{FORM}\z"
_PLAIN = -1


def numbered(messages: DataFrame, names: Sequence[str]) -> DataFrame:
    """Return the messages of stores with these names in `store`, replaced by their numbers from 0 in this order."""
    place = F.array_position(F.array(*map(F.lit, names)), F.col("store"))
    return messages.withColumn("store", (place - 1).cast("int"))


def terms(messages: DataFrame) -> DataFrame:
    """Return one row for the messages of one leader in one epoch of a queue.

    topic, queueId, epoch, leader (null for plain producers, whose sequences are queue offsets), messages, first and last
    (sequences), firstOffset and lastOffset (of the queue), resent (repeated messages of earlier epochs).
    """
    return (
        _timed(_counted(_placed(_marked(messages))))
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
    """Return one row per violation of the order; no rows mean that all queues are in order.

    topic, queueId, kind, epoch, leader, first and last (sequences), store, and physicalOffset of the message (for a gap, of the
    message after it).

    gap: no store has these sequences; swap: comes after a later one; repeat: twice in its epoch; stale: after a later epoch or
    leader; fork: stores have different messages at one place; unmarked: without a mark of its queue.
    """
    marked = _marked(messages)
    placed = _placed(marked)
    rows = _counted(placed)
    forks = placed.where((F.col("place") > 1) & ~F.col("isCopy"))
    offset = F.col("queueOffset")
    return functools.reduce(
        DataFrame.unionByName,
        (
            _found(_out_of_order(judged(messages)), F.col("kind")),
            _found(forks, F.lit(FORK)),
            _found(_missing(rows), F.lit(GAP), F.col("before") + 1, F.col("sequence") - 1),
            _found(_unmarked(marked), F.lit(UNMARKED), offset, offset),
        ),
    )


def _found(frame: DataFrame, kind: Column, first: Column | None = None, last: Column | None = None) -> DataFrame:
    first, last = (F.col("sequence") if one is None else one for one in (first, last))
    found = (kind.alias("kind"), "epoch", F.expr(f"nullif(leader, {_PLAIN})").alias("leader"))
    return frame.select(*_QUEUE, *found, first.alias("first"), last.alias("last"), "store", "physicalOffset")


def _marked(messages: DataFrame) -> DataFrame:
    """Return all messages of queues; `epoch` is null without a mark of the queue."""
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


def _placed(marked: DataFrame) -> DataFrame:
    """Return marked messages with `place` (above 1: another message of its epoch and queue offset is counted instead) and
    `isCopy` of that message."""
    place = Window.partitionBy(*_QUEUE, *_PLACE).orderBy("store", "physicalOffset")
    mark = F.struct("leader", "base", "sequence")
    return marked.where("epoch is not null").select(
        "*", F.row_number().over(place).alias("place"), (mark == F.first(mark).over(place)).alias("isCopy")
    )


def _counted(placed: DataFrame) -> DataFrame:
    """Return the messages of queues, each once, with their `line`, in which sequences count up.

    Sequences of plain producers start again in each epoch, so each epoch has its own line, below all leaders.
    """
    line = F.when(F.col("leader") == _PLAIN, -1 - F.col("epoch")).otherwise(F.col("leader"))
    return placed.where("place = 1").select("*", line.alias("line"), stretch_of("queueOffset").alias("stretch"))


def _timed(rows: DataFrame) -> DataFrame:
    """Add `time` and `timeInEpoch`, which count messages of one sequence from 1."""
    line = Window.partitionBy(*_QUEUE, "line", "sequence")
    in_epoch = Window.partitionBy(*_QUEUE, "line", "sequence", "epoch")
    times = {"time": line, "timeInEpoch": in_epoch}
    return rows.withColumns({name: F.row_number().over(window.orderBy(*_PLACE)) for name, window in times.items()})


def judged(messages: DataFrame) -> DataFrame:
    """Add to each message of a queue the highest values before it: top (sequence of its line), topInEpoch, topLine, topEpoch.

    A task has a stretch of a queue; summaries of the stretches replace the messages before it.
    """
    rows = _counted(_placed(_marked(messages)))
    stretch = (*_QUEUE, "epoch", "stretch")
    line = _before("sequence", Window.partitionBy(*stretch, "line").orderBy("queueOffset"))
    earlier = rows.join(F.broadcast(_stretches(rows)), list(_STRETCH))
    return _timed(earlier).withColumns(
        {
            "top": F.greatest("lineBefore", line),
            "topInEpoch": F.greatest("inEpochBefore", line),
            "topLine": F.greatest("linesBefore", _before("line", Window.partitionBy(*stretch).orderBy("queueOffset"))),
            "topEpoch": F.greatest(
                "epochsBefore",
                _before("epoch", Window.partitionBy(*_QUEUE, "store", "stretch").orderBy("queueOffset", "epoch")),
            ),
        }
    )


def _before(column: str, window: WindowSpec) -> Column:
    """Return the highest value of the earlier rows."""
    return F.max(column).over(window.rowsBetween(Window.unboundedPreceding, -1))


def _stretches(rows: DataFrame) -> DataFrame:
    """Return one row per stretch, epoch, line and store, with the highest values of earlier stretches."""
    ends = rows.groupBy(*_STRETCH).agg(F.max("sequence").alias("highest"))
    numbered = ends.withColumn("turn", F.dense_rank().over(Window.partitionBy(*_QUEUE).orderBy("epoch", "stretch")))
    before = {
        "lineBefore": ("highest", ("line",), "turn"),
        "inEpochBefore": ("highest", ("line", "epoch"), "stretch"),
        "linesBefore": ("line", (), "turn"),
        "epochsBefore": ("epoch", ("store",), "stretch"),
    }
    return numbered.select(
        *_STRETCH,
        *(
            F.max(of)
            .over(Window.partitionBy(*_QUEUE, *group).orderBy(order).rangeBetween(Window.unboundedPreceding, -1))
            .alias(name)
            for name, (of, group, order) in before.items()
        ),
    )


def _out_of_order(rows: DataFrame) -> DataFrame:
    """Return the rows of `judged` with a violation, one row for each `kind`."""
    sequence = F.col("sequence")
    behind = (sequence < F.col("top")) & (F.col("time") == 1)
    behind |= (sequence < F.col("topInEpoch")) & (F.col("timeInEpoch") == 1)
    older_leader = (F.col("leader") != _PLAIN) & (F.col("line") < F.col("topLine"))
    stale = older_leader | (F.col("epoch") < F.col("topEpoch"))
    kinds = {SWAP: behind, REPEAT: F.col("timeInEpoch") > 1, STALE: stale}
    said = F.array_compact(F.array(*(F.when(is_so, kind) for kind, is_so in kinds.items())))
    return rows.withColumn("kind", F.explode(said))


def _missing(rows: DataFrame) -> DataFrame:
    """Return the messages after gaps, with `before`, the sequence before the gap.

    Sequences of all leaders except the first one of a queue begin with 1; nothing is missing before the others.
    """
    line = (*_QUEUE, "line")
    first = F.min(F.struct(*_PLACE, "line")).over(Window.partitionBy(*line, "stretch"))
    begun = rows.withColumn("stretch", stretch_of("sequence")).withColumn("first", first)
    kept = at_gaps(begun, line, ("sequence", *_PLACE))
    begin = F.when((F.col("line") >= 0) & (F.col("line") != F.col("firstLine")), 0)
    return (
        kept.withColumn("firstLine", F.min("first").over(Window.partitionBy(*_QUEUE))["line"])
        .withColumn("before", F.coalesce("previous.sequence", begin))
        .where(F.col("sequence") > F.col("before") + 1)
    )


def _unmarked(marked: DataFrame) -> DataFrame:
    """Return messages without a mark after a message with one in the same store."""
    queue = (*_QUEUE, "store")
    first = marked.where("epoch is not null").groupBy(*queue).agg(F.min("physicalOffset").alias("firstMarked"))
    plain = marked.where("epoch is null").join(F.broadcast(first), list(queue))
    return plain.where(F.col("physicalOffset") > F.col("firstMarked"))
