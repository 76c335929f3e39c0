"""Messages that consumers gave up on, and retries: how many, of which group, and when they came in storms."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from twisted_mq.protocol.names.system_topics import DLQ_PREFIX, RETRY_PREFIX
from twisted_mq.protocol.text.properties import PROPERTY_DLQ_ORIGIN_TOPIC, PROPERTY_RETRY_TOPIC
from twisted_mq.spark.jobs.volume import step_of

COLUMNS = ("topic", "uniqKey", "reconsumeTimes", "storeTimestamp", "properties")
PATTERN = f"({RETRY_PREFIX}|{DLQ_PREFIX}).*"
"""The topics that are looked at."""


def dead_letters(messages: DataFrame) -> DataFrame:
    """group, origin (topic that they were sent to, null where nothing tells), messages, firstStored and lastStored in ms."""
    properties, stored = F.col("properties"), F.unix_millis("storeTimestamp")
    origin = F.coalesce(properties[PROPERTY_DLQ_ORIGIN_TOPIC], properties[PROPERTY_RETRY_TOPIC])
    return (
        _of(messages, DLQ_PREFIX)
        .groupBy("group", origin.alias("origin"))
        .agg(F.count("*").alias("messages"), F.min(stored).alias("firstStored"), F.max(stored).alias("lastStored"))
    )


def retries(messages: DataFrame) -> DataFrame:
    """group, retries, distinct (messages tried again, about), most (tries of one of them)."""
    return (
        _of(messages, RETRY_PREFIX)
        .groupBy("group")
        .agg(
            F.count("*").alias("retries"),
            F.approx_count_distinct("uniqKey", 0.02).alias("distinct"),
            F.max("reconsumeTimes").alias("most"),
        )
    )


def storms(messages: DataFrame, least: int, every: str = "minute") -> DataFrame:
    """Minutes, hours or days with so many retries of a group: group, stored (its begin in ms), retries."""
    return (
        _of(messages, RETRY_PREFIX)
        .groupBy("group", step_of("storeTimestamp", every).alias("stored"))
        .agg(F.count("*").alias("retries"))
        .where(F.col("retries") >= least)
    )


def _of(messages: DataFrame, prefix: str) -> DataFrame:
    """The messages of the groups' topics of one kind, with `group`."""
    group = F.substring("topic", len(prefix) + 1, 1 << 30)
    return messages.where(F.col("topic").startswith(prefix)).withColumn("group", group)
