"""Dead letters and retries: their number by group, and storms of retries."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from twisted_mq.protocol.names.system_topics import DLQ_PREFIX, RETRY_PREFIX
from twisted_mq.protocol.text.properties import PROPERTY_DLQ_ORIGIN_TOPIC, PROPERTY_RETRY_TOPIC
from twisted_mq.spark.jobs.volume import step_of

COLUMNS = ("topic", "uniqKey", "reconsumeTimes", "storeTimestamp", "properties")
PATTERN = f"({RETRY_PREFIX}|{DLQ_PREFIX}).*"
"""Pattern of the topics that are read."""


def dead_letters(messages: DataFrame) -> DataFrame:
    """Return group, origin (original topic, null if not known), messages, firstStored and lastStored in ms."""
    properties, stored = F.col("properties"), F.unix_millis("storeTimestamp")
    origin = F.coalesce(properties[PROPERTY_DLQ_ORIGIN_TOPIC], properties[PROPERTY_RETRY_TOPIC])
    return (
        _of(messages, DLQ_PREFIX)
        .groupBy("group", origin.alias("origin"))
        .agg(F.count("*").alias("messages"), F.min(stored).alias("firstStored"), F.max(stored).alias("lastStored"))
    )


def retries(messages: DataFrame) -> DataFrame:
    """Return group, retries, distinct (approximate number of retried messages), most (retries of one message)."""
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
    """Return minutes, hours or days with this many retries of a group: group, stored (begin of the step in ms), retries."""
    return (
        _of(messages, RETRY_PREFIX)
        .groupBy("group", step_of("storeTimestamp", every).alias("stored"))
        .agg(F.count("*").alias("retries"))
        .where(F.col("retries") >= least)
    )


def _of(messages: DataFrame, prefix: str) -> DataFrame:
    """Return the messages of the groups' topics of one kind, with `group`."""
    group = F.substring("topic", len(prefix) + 1, 1 << 30)
    return messages.where(F.col("topic").startswith(prefix)).withColumn("group", group)
