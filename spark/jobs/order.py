"""Whether strictly ordered queues are in order, from the stores of all groups: what `mq order audit` says, as tables.

A queue is the messages of its epochs one after the other, each in the order of its queue offsets. The stores of a
group's master and slave have the same messages; such copies count once. In that order each leader's sequences must
count up by one. A message may come again in a later epoch (`resent`): it was stored before, but not acknowledged.
What was deleted before the first message of a queue is not missed.

Queues are gone through in stretches, many tasks a queue: what came before a stretch is said by summaries of the others.
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
    """The messages of stores with these names in `store`, which then counts them from 0 in this order."""
    place = F.array_position(F.array(*map(F.lit, names)), F.col("store"))
    return messages.withColumn("store", (place - 1).cast("int"))


def terms(messages: DataFrame) -> DataFrame:
    """One row for what one leader sent in one epoch of a queue.

    topic, queueId, epoch, leader (null for plain producers, whose sequences are queue offsets), messages, first and last
    (sequences), firstOffset and lastOffset (of the queue), resent (messages of earlier epochs, come again).
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
    """One row for what breaks the order; none says that all queues are in order.

    topic, queueId, kind, epoch, leader, first and last (sequences), store, and physicalOffset of the message, of a gap
    that of the message behind it.

    gap: no store has these sequences; swap: comes behind a later one; repeat: twice in its epoch; stale: behind a
    later epoch or leader; fork: stores have different messages at one place; unmarked: without a mark of its queue.
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


def _placed(marked: DataFrame) -> DataFrame:
    """Marked messages with `place` (above 1: another one of its epoch and queue offset is counted instead) and `isCopy` of
    that one."""
    place = Window.partitionBy(*_QUEUE, *_PLACE).orderBy("store", "physicalOffset")
    mark = F.struct("leader", "base", "sequence")
    return marked.where("epoch is not null").select(
        "*", F.row_number().over(place).alias("place"), (mark == F.first(mark).over(place)).alias("isCopy")
    )


def _counted(placed: DataFrame) -> DataFrame:
    """The messages of queues, each once, with their `line`, in which sequences count up.

    Sequences of plain producers begin anew in each epoch: each epoch is a line of its own, below all leaders.
    """
    line = F.when(F.col("leader") == _PLAIN, -1 - F.col("epoch")).otherwise(F.col("leader"))
    return placed.where("place = 1").select("*", line.alias("line"), stretch_of("queueOffset").alias("stretch"))


def _timed(rows: DataFrame) -> DataFrame:
    """With `time` and `timeInEpoch`, which count messages of one sequence from 1."""
    line = Window.partitionBy(*_QUEUE, "line", "sequence")
    in_epoch = Window.partitionBy(*_QUEUE, "line", "sequence", "epoch")
    times = {"time": line, "timeInEpoch": in_epoch}
    return rows.withColumns({name: F.row_number().over(window.orderBy(*_PLACE)) for name, window in times.items()})


def judged(messages: DataFrame) -> DataFrame:
    """Messages of queues with the highest of what came before each: top (sequence of its line), topInEpoch, topLine, topEpoch.

    A task has a stretch of a queue; what was before that is said by the stretches' summaries.
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
    """The highest of the earlier rows."""
    return F.max(column).over(window.rowsBetween(Window.unboundedPreceding, -1))


def _stretches(rows: DataFrame) -> DataFrame:
    """What each stretch has of an epoch and a line in a store: one row, with the highest of what is in stretches before."""
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
    """The rows of `judged` that are at fault, each with one `kind` after the other."""
    sequence = F.col("sequence")
    behind = (sequence < F.col("top")) & (F.col("time") == 1)
    behind |= (sequence < F.col("topInEpoch")) & (F.col("timeInEpoch") == 1)
    older_leader = (F.col("leader") != _PLAIN) & (F.col("line") < F.col("topLine"))
    stale = older_leader | (F.col("epoch") < F.col("topEpoch"))
    kinds = {SWAP: behind, REPEAT: F.col("timeInEpoch") > 1, STALE: stale}
    said = F.array_compact(F.array(*(F.when(is_so, kind) for kind, is_so in kinds.items())))
    return rows.withColumn("kind", F.explode(said))


def _missing(rows: DataFrame) -> DataFrame:
    """The messages behind gaps, with `before`, the sequence before the gap.

    Of leaders but a queue's first one sequences begin with 1; before others nothing is missed.
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
    """Messages without a mark behind one that has it in the same store."""
    queue = (*_QUEUE, "store")
    first = marked.where("epoch is not null").groupBy(*queue).agg(F.min("physicalOffset").alias("firstMarked"))
    plain = marked.where("epoch is null").join(F.broadcast(first), list(queue))
    return plain.where(F.col("physicalOffset") > F.col("firstMarked"))
