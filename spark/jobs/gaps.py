"""Missing queue offsets between two stored messages.

Not every gap is a loss. The first messages of a queue may have expired with their file, so offsets before the first stored one
are not a gap. Prepared and rolled-back messages of a transaction use no offset of their queue, and an inner batch uses one per
message; neither is a gap.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from twisted_mq.protocol.flags import OUT_OF_QUEUES, MessageSysFlag
from twisted_mq.spark.jobs.stretches import at_gaps, stretch_of

COLUMNS = ("topic", "queueId", "queueOffset", "physicalOffset", "sysFlag", "store")

_QUEUE = ("store", "topic", "queueId")


def gaps(messages: DataFrame) -> DataFrame:
    """Return one row per gap: store, topic, queueId, firstMissing, lastMissing, missing, and the physical offsets around it.

    afterPhysicalOffset is that of the message before the gap, beforePhysicalOffset that of the message after it.
    """
    first, last = F.col("previous.queueOffset") + 1, F.col("queueOffset") - 1
    inner_batch = F.col("previous.sysFlag").bitwiseAND(MessageSysFlag.INNER_BATCH_FLAG) != 0
    queued = messages.where(F.col("sysFlag").bitwiseAND(OUT_OF_QUEUES) == 0)
    return (
        at_gaps(
            queued.withColumn("stretch", stretch_of("queueOffset")),
            _QUEUE,
            ("queueOffset", "physicalOffset"),
            ("sysFlag",),
        )
        .where((first <= last) & ~inner_batch)
        .select(
            *_QUEUE,
            first.alias("firstMissing"),
            last.alias("lastMissing"),
            (last - first + 1).alias("missing"),
            F.col("previous.physicalOffset").alias("afterPhysicalOffset"),
            F.col("physicalOffset").alias("beforePhysicalOffset"),
        )
    )


def missing_by_queue(found: DataFrame) -> DataFrame:
    """Sum the rows of `gaps`: store, topic, queueId, gaps (number of gaps), missing (offsets in all of them)."""
    return found.groupBy(*_QUEUE).agg(F.count("*").alias("gaps"), F.sum("missing").alias("missing"))
