"""Effect of another retention time: log files are deleted as a whole, the oldest first, never the last."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from twisted_mq.protocol.flags import OUT_OF_QUEUES

COLUMNS = ("store", "file", "topic", "queueId", "queueOffset", "storeSize", "storeTimestamp", "sysFlag")
_FILE = ("store", "file")
_HOUR_MS = 3_600_000


def by_file(messages: DataFrame) -> DataFrame:
    """Return the contents of each file by queue.

    store, file, topic, queueId, messages, bytes, firstOffset and lastOffset (of messages that are in the queue, else null),
    and of the whole file firstStored and lastStored in ms.
    """
    stored = F.unix_millis("storeTimestamp")
    offset = F.when(F.col("sysFlag").bitwiseAND(OUT_OF_QUEUES) == 0, F.col("queueOffset"))
    parts = messages.groupBy(*_FILE, "topic", "queueId").agg(
        F.count("*").alias("messages"),
        F.sum("storeSize").alias("bytes"),
        F.min(offset).alias("firstOffset"),
        F.max(offset).alias("lastOffset"),
        F.min(stored).alias("first"),
        F.max(stored).alias("last"),
    )
    file = Window.partitionBy(*_FILE)
    return parts.select(
        "*", F.min("first").over(file).alias("firstStored"), F.max("last").over(file).alias("lastStored")
    ).drop("first", "last")


def gone_after(files: DataFrame, hours: Sequence[int], now_ms: int) -> DataFrame:
    """Return the rows of `by_file` that are deleted if messages are kept for this many hours, with that number as `hours`."""
    last = Window.partitionBy("store").orderBy(F.col("file").desc())
    old = files.select("*", (F.dense_rank().over(last) == 1).alias("isLast")).where("not isLast")
    each = old.select("*", F.explode(F.array(*map(F.lit, hours))).alias("hours"))
    return each.where(F.col("lastStored") < now_ms - F.col("hours") * _HOUR_MS)


def by_hours(gone: DataFrame) -> DataFrame:
    """Sum the rows of `gone_after`: hours, files, messages, bytes that are deleted."""
    return gone.groupBy("hours").agg(
        F.count_distinct(*_FILE).alias("files"), F.sum("messages").alias("messages"), F.sum("bytes").alias("bytes")
    )


def unread(gone: DataFrame, offsets: DataFrame) -> DataFrame:
    """Return deleted messages that groups have not read: hours, group, topic, unread (queue offsets). `offsets` is the result of
    `lag.committed`."""
    left = F.col("lastOffset") + 1 - F.greatest("firstOffset", "committed")
    joined = gone.join(F.broadcast(offsets), ["store", "topic", "queueId"])
    sums = joined.groupBy("hours", "group", "topic").agg(F.sum(F.greatest(F.lit(0), left)).alias("unread"))
    return sums.where("unread > 0")
