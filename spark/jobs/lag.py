"""Lag of consumer groups in a store: stored consumer offsets against the log."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from twisted_mq.protocol.flags import OUT_OF_QUEUES
from twisted_mq.spark.jobs.volume import step_of

COLUMNS = ("store", "topic", "queueId", "queueOffset", "sysFlag", "storeTimestamp")
_QUEUE = ("store", "topic", "queueId")
_OFFSETS_FILE = "consumerOffset.json"


def committed(config: DataFrame) -> DataFrame:
    """Return from the table `rocketmq.config`: store, group, topic, queueId, committed (the next offset of the group)."""
    entries = config.where(F.col("file").endswith(_OFFSETS_FILE) & (F.col("section") == "offsetTable"))
    return entries.select(
        "store",
        F.substring_index("key", "@", -1).alias("group"),
        F.substring_index("key", "@", 1).alias("topic"),
        F.explode(F.from_json("value", "map<string,bigint>")).alias("queueId", "committed"),
    ).withColumn("queueId", F.col("queueId").cast("int"))


def by_queue(messages: DataFrame, offsets: DataFrame) -> DataFrame:
    """Return one row per group and queue with messages.

    store, group, topic, queueId, committed, end, lag (messages in the log from the offset on), oldestUnread and newest (store
    times in ms; oldestUnread is null if all is read).
    """
    unread = F.col("queueOffset") >= F.col("committed")
    stored = F.unix_millis("storeTimestamp")
    return (
        _of_groups(messages, offsets)
        .groupBy("store", "group", "topic", "queueId", "committed")
        .agg(
            (F.max("queueOffset") + 1).alias("end"),
            F.count_if(unread).alias("lag"),
            F.min(F.when(unread, stored)).alias("oldestUnread"),
            F.max(stored).alias("newest"),
        )
    )


def over_time(messages: DataFrame, offsets: DataFrame, every: str) -> DataFrame:
    """Return the backlog by store time: group, topic, stored (begin of a step in ms), unread messages stored in it."""
    unread = _of_groups(messages, offsets).where(F.col("queueOffset") >= F.col("committed"))
    return unread.groupBy("group", "topic", step_of("storeTimestamp", every).alias("stored")).agg(
        F.count("*").alias("unread")
    )


def _of_groups(messages: DataFrame, offsets: DataFrame) -> DataFrame:
    """Return each message of a queue for each group that has an offset in it."""
    queued = messages.where(F.col("sysFlag").bitwiseAND(OUT_OF_QUEUES) == 0)
    return queued.join(F.broadcast(offsets), list(_QUEUE))
