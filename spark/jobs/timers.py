"""Delayed and timed messages: due times against delivery times.

While a message waits, its real topic is a property. Its delivered copy has the same unique key and number of retries; messages
without a unique key cannot be followed.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from twisted_mq.protocol.names.system_topics import SCHEDULE_TOPIC, TIMER_TOPIC
from twisted_mq.protocol.text.properties import PROPERTY_REAL_TOPIC, PROPERTY_TIMER_OUT_MS

TOPICS = (SCHEDULE_TOPIC, TIMER_TOPIC)
COLUMNS = (
    "store", "topic", "queueId", "queueOffset", "physicalOffset", "uniqKey", "reconsumeTimes", "storeTimestamp",
    "properties",
)  # fmt: skip
COPY_COLUMNS = ("store", "topic", "uniqKey", "reconsumeTimes", "storeTimestamp")
_COPY = ("store", "topic", "uniqKey", "reconsumeTimes")


def timers(waiting: DataFrame, entries: DataFrame, messages: DataFrame) -> DataFrame:
    """Return one row per message that waited or waits.

    store, topic (the real one), uniqKey, reconsumeTimes, physicalOffset (of the first waiting record), planned and delivered in
    ms (delivered is null without a copy), late (their difference).

    `waiting` are the messages of TOPICS with COLUMNS, `entries` the table `rocketmq.consumequeue`, whose entries have the due
    times of delayed messages, independent of the broker's levels; `messages` are all messages with COPY_COLUMNS.
    """
    due = entries.where(F.col("topic") == SCHEDULE_TOPIC).select(
        "store", "topic", "queueId", "queueOffset", F.col("tagsCode").alias("due")
    )
    planned = F.coalesce("due", F.col("properties")[PROPERTY_TIMER_OUT_MS].try_cast("bigint"))
    places = waiting.join(due, ["store", "topic", "queueId", "queueOffset"], "left").select(
        "store",
        F.col("properties")[PROPERTY_REAL_TOPIC].alias("topic"),
        "uniqKey",
        "reconsumeTimes",
        "physicalOffset",
        planned.alias("planned"),
    )
    waited = (
        places.where("uniqKey is not null and topic is not null")
        .groupBy(*_COPY)  # several rows for a message that was stored again on the wheel
        .agg(F.min("physicalOffset").alias("physicalOffset"), F.max("planned").alias("planned"))
    )
    copies = messages.groupBy(*_COPY).agg(F.max(F.unix_millis("storeTimestamp")).alias("delivered"))
    found = waited.join(copies, list(_COPY), "left")
    return found.withColumn("late", F.col("delivered") - F.col("planned"))


def lateness(found: DataFrame) -> DataFrame:
    """Sum the rows of `timers` by topic: delivered, waiting, and p50, p99, max of the delay in ms."""
    return found.groupBy("topic").agg(
        F.count("delivered").alias("delivered"),
        F.count_if(F.col("delivered").isNull()).alias("waiting"),
        F.percentile_approx("late", 0.5).alias("p50"),
        F.percentile_approx("late", 0.99).alias("p99"),
        F.max("late").alias("max"),
    )
