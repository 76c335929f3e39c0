"""Volume: messages and bytes by queue and topic, and over time."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

COLUMNS = ("topic", "queueId", "queueOffset", "storeSize", "storeTimestamp", "crcOk")
TOPIC_COLUMNS = ("topic", "queueId", "store", "file", "storeSize", "storeTimestamp")
STEPS = ("minute", "hour", "day")


def by_queue(messages: DataFrame) -> DataFrame:
    """Return one row per topic and queue.

    messages, bytes (of whole records), minOffset and maxOffset (queue offsets), firstStored and lastStored (ms since
    1970, null without a valid store time), badCrc (messages whose body has a wrong CRC).
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


def by_topic(messages: DataFrame) -> DataFrame:
    """Return one row per topic: messages, bytes (of whole records), queues, files with messages, firstStored and lastStored in
    ms."""
    stored = F.unix_millis("storeTimestamp")
    return messages.groupBy("topic").agg(
        F.count("*").alias("messages"),
        F.sum("storeSize").alias("bytes"),
        F.count_distinct("store", "queueId").alias("queues"),
        F.count_distinct("store", "file").alias("files"),
        F.min(stored).alias("firstStored"),
        F.max(stored).alias("lastStored"),
    )


def step_of(timestamp: str, every: str) -> Column:
    """Return the begin of the minute, hour or day of a timestamp, in ms."""
    return F.unix_millis(F.date_trunc(every, timestamp))


def by_step(messages: DataFrame, every: str) -> DataFrame:
    """Return one row for each of STEPS with stored messages: stored (its begin in ms), messages, bytes."""
    return messages.groupBy(step_of("storeTimestamp", every).alias("stored")).agg(
        F.count("*").alias("messages"), F.sum("storeSize").alias("bytes")
    )


def over_time(messages: DataFrame, first_ms: int, last_ms: int, intervals: int) -> DataFrame:
    """Count messages stored in equal intervals from first_ms to last_ms: interval (from 0), messages.

    Intervals without messages have no row.
    """
    width_ms = max(last_ms - first_ms + 1, intervals) / intervals
    passed = F.unix_millis("storeTimestamp") - F.lit(first_ms)
    interval = F.floor(passed / F.lit(width_ms)).cast("int").alias("interval")
    return messages.where(passed.isNotNull()).groupBy(interval).agg(F.count("*").alias("messages"))
