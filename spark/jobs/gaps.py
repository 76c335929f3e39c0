"""Queue offsets that no stored message has, between two that are there.

Not every gap is a loss. The first messages of a queue may have expired with their file: what lies before the first
stored offset is no gap here. Prepared and rolled-back messages of a transaction take no place in their queue, and an
inner batch takes as many as it has messages; neither counts.

A queue is looked at in stretches, so that no task sorts one as a whole; what meets between two stretches is compared
behind that, an edge of each.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from twisted_mq.protocol.flags import OUT_OF_QUEUES, MessageSysFlag

COLUMNS = ("topic", "queueId", "queueOffset", "physicalOffset", "sysFlag")

STRETCH_OFFSETS = 1 << 18
"""Queue offsets that one task sorts at a time."""
_QUEUE = ("topic", "queueId")
_PLACE = ("queueOffset", "physicalOffset")


def gaps(messages: DataFrame) -> DataFrame:
    """One row a gap: topic, queueId, firstMissing, lastMissing, missing, and the physical offsets around it.

    afterPhysicalOffset is that of the message before the gap, beforePhysicalOffset that of the one behind it.
    """
    first, last = F.col("previous.queueOffset") + 1, F.col("queueOffset") - 1
    inner_batch = F.col("previous.sysFlag").bitwiseAND(MessageSysFlag.INNER_BATCH_FLAG) != 0
    return (
        _with_previous(messages.where(F.col("sysFlag").bitwiseAND(OUT_OF_QUEUES) == 0))
        .where((first <= last) & ~inner_batch)
        .select(
            "topic",
            "queueId",
            first.alias("firstMissing"),
            last.alias("lastMissing"),
            (last - first + 1).alias("missing"),
            F.col("previous.physicalOffset").alias("afterPhysicalOffset"),
            F.col("physicalOffset").alias("beforePhysicalOffset"),
        )
    )


def _with_previous(queued: DataFrame) -> DataFrame:
    """The messages at edges and behind gaps, each with the one before it in its queue."""
    here = F.struct(*_PLACE, "sysFlag")
    stretch = F.floor(F.col("queueOffset") / STRETCH_OFFSETS)
    inside = Window.partitionBy(*_QUEUE, "stretch").orderBy(*_PLACE)
    placed = queued.withColumn("stretch", stretch).select(
        "*", F.lag(here).over(inside).alias("inStretch"), F.lead("queueOffset").over(inside).alias("following")
    )
    edge = F.col("inStretch").isNull() | F.col("following").isNull()
    kept = placed.where(edge | (F.col("queueOffset") > F.col("inStretch.queueOffset") + 1))
    before = F.lag(here).over(Window.partitionBy(*_QUEUE).orderBy(*_PLACE))
    return kept.select("*", F.coalesce("inStretch", before).alias("previous"))


def missing_by_queue(found: DataFrame) -> DataFrame:
    """Of the rows of `gaps`: topic, queueId, gaps (how many), missing (offsets in all of them)."""
    return found.groupBy("topic", "queueId").agg(F.count("*").alias("gaps"), F.sum("missing").alias("missing"))
