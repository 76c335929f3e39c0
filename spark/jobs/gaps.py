"""Queue offsets that no stored message has, between two that are there.

Not every gap is a loss. The first messages of a queue may have expired with their file: what lies before the first
stored offset is no gap here. Prepared and rolled-back messages of a transaction take no place in their queue, and an
inner batch takes as many as it has messages; neither counts.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from twisted_mq.protocol.flags import MessageSysFlag

COLUMNS = ("topic", "queueId", "queueOffset", "physicalOffset", "sysFlag")

_PREPARED = MessageSysFlag.TRANSACTION_PREPARED_TYPE
_ROLLED_BACK = MessageSysFlag.TRANSACTION_ROLLBACK_TYPE


def gaps(messages: DataFrame) -> DataFrame:
    """One row a gap: topic, queueId, firstMissing, lastMissing, missing, and the physical offsets around it.

    afterPhysicalOffset is that of the message before the gap, beforePhysicalOffset that of the one behind it.
    """
    transaction = F.col("sysFlag").bitwiseAND(MessageSysFlag.TRANSACTION_ROLLBACK_TYPE)
    queued = messages.where(~transaction.isin(_PREPARED, _ROLLED_BACK))
    order = Window.partitionBy("topic", "queueId").orderBy("queueOffset", "physicalOffset")
    previous = F.lag(F.struct("queueOffset", "physicalOffset", "sysFlag")).over(order)
    inner_batch = F.col("previous.sysFlag").bitwiseAND(MessageSysFlag.INNER_BATCH_FLAG) != 0
    first, last = F.col("previous.queueOffset") + 1, F.col("queueOffset") - 1
    return (
        queued.withColumn("previous", previous)
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


def missing_by_queue(found: DataFrame) -> DataFrame:
    """Of the rows of `gaps`: topic, queueId, gaps (how many), missing (offsets in all of them)."""
    return found.groupBy("topic", "queueId").agg(F.count("*").alias("gaps"), F.sum("missing").alias("missing"))
