"""How far consumer groups are behind in a store at rest: the offsets that its broker wrote down against its log."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from twisted_mq.protocol.flags import OUT_OF_QUEUES
from twisted_mq.spark.jobs.volume import step_of

COLUMNS = ("store", "topic", "queueId", "queueOffset", "sysFlag", "storeTimestamp")
_QUEUE = ("store", "topic", "queueId")
_OFFSETS_FILE = "consumerOffset.json"


def committed(config: DataFrame) -> DataFrame:
    """From the table `rocketmq.config`: store, group, topic, queueId, committed (what the group would consume next)."""
    entries = config.where(F.col("file").endswith(_OFFSETS_FILE) & (F.col("section") == "offsetTable"))
    return entries.select(
        "store",
        F.substring_index("key", "@", -1).alias("group"),
        F.substring_index("key", "@", 1).alias("topic"),
        F.explode(F.from_json("value", "map<string,bigint>")).alias("queueId", "committed"),
    ).withColumn("queueId", F.col("queueId").cast("int"))


def by_queue(messages: DataFrame, offsets: DataFrame) -> DataFrame:
    """One row a group and queue that has messages.

    store, group, topic, queueId, committed, end, lag (messages in the log behind the offset), oldestUnread and newest
    (store times in ms; oldestUnread null where all is read).
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
    """From when the backlog is: group, topic, stored (begin of a step in ms), unread messages stored in it."""
    unread = _of_groups(messages, offsets).where(F.col("queueOffset") >= F.col("committed"))
    return unread.groupBy("group", "topic", step_of("storeTimestamp", every).alias("stored")).agg(
        F.count("*").alias("unread")
    )


def _of_groups(messages: DataFrame, offsets: DataFrame) -> DataFrame:
    """Each message of a queue for each group that has an offset in it."""
    queued = messages.where(F.col("sysFlag").bitwiseAND(OUT_OF_QUEUES) == 0)
    return queued.join(F.broadcast(offsets), list(_QUEUE))
