"""Delayed and timed messages: when they were due against when they were delivered.

Where a message waits its real topic is a property. Its delivered copy has the same unique key and tries; messages without
a unique key cannot be followed.
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
    """One row a message that waited or waits.

    store, topic (its real one), uniqKey, reconsumeTimes, physicalOffset (of where it waited first), planned and delivered
    in ms (delivered null where no copy is there yet), late (their difference).

    `waiting` are the messages of TOPICS with COLUMNS, `entries` the table `rocketmq.consumequeue`, in which entries of
    delayed messages say when they are due, whatever the broker's levels; `messages` are all with COPY_COLUMNS.
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
        .groupBy(*_COPY)  # of a message that was put further down the wheel, several
        .agg(F.min("physicalOffset").alias("physicalOffset"), F.max("planned").alias("planned"))
    )
    copies = messages.groupBy(*_COPY).agg(F.max(F.unix_millis("storeTimestamp")).alias("delivered"))
    found = waited.join(copies, list(_COPY), "left")
    return found.withColumn("late", F.col("delivered") - F.col("planned"))


def lateness(found: DataFrame) -> DataFrame:
    """Of the rows of `timers`, by topic: delivered, waiting, p50, p99, max of how late in ms."""
    return found.groupBy("topic").agg(
        F.count("delivered").alias("delivered"),
        F.count_if(F.col("delivered").isNull()).alias("waiting"),
        F.percentile_approx("late", 0.5).alias("p50"),
        F.percentile_approx("late", 0.99).alias("p99"),
        F.max("late").alias("max"),
    )
