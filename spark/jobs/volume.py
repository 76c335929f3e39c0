"""How much there is: messages and bytes a queue, and over time."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

COLUMNS = ("topic", "queueId", "queueOffset", "storeSize", "storeTimestamp", "crcOk")


def by_queue(messages: DataFrame) -> DataFrame:
    """One row a topic and queue.

    messages, bytes (of whole records), minOffset and maxOffset (queue offsets), firstStored and lastStored (ms since
    1970, null where no store time can be told), badCrc (messages whose body does not have its CRC).
    """
    stored = F.unix_millis("storeTimestamp")
    return messages.groupBy("topic", "queueId").agg(
        F.count("*").alias("messages"),
        F.sum("storeSize").alias("bytes"),
        F.min("queueOffset").alias("minOffset"),
        F.max("queueOffset").alias("maxOffset"),
        F.min(stored).alias("firstStored"),
        F.max(stored).alias("lastStored"),
        F.count_if(~F.col("crcOk")).alias("badCrc"),
    )


def over_time(messages: DataFrame, first_ms: int, last_ms: int, intervals: int) -> DataFrame:
    """Messages stored in each of equal intervals from first_ms to last_ms: interval (from 0), messages.

    Intervals without messages have no row.
    """
    width_ms = max(last_ms - first_ms + 1, intervals) / intervals
    passed = F.unix_millis("storeTimestamp") - F.lit(first_ms)
    interval = F.floor(passed / F.lit(width_ms)).cast("int").alias("interval")
    return messages.where(passed.isNotNull()).groupBy(interval).agg(F.count("*").alias("messages"))
