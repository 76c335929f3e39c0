"""Messages that were sent more than once: the same unique key, as a producer's retry leaves it.

Equal keys alone are no duplicates: the Java client gives all messages of a batch one key. The broker stores a batch in
one queue under one store time, so what has the same key, queue and store time is one send, and a key with several
sends is a duplicate. (A retry comes after an answer that failed or took too long, so never within the same ms.)

The broker itself stores a message again under its key: each new try of a consumer group (reconsumeTimes differs, so
these are told apart), and in its own topics each delay and each check of a half message. So its own topics are left
out, and messages without a unique key, which cannot be compared.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from twisted_mq.spark.jobs.topics import is_brokers

COLUMNS = ("topic", "uniqKey", "reconsumeTimes", "queueId", "storeTimestamp", "physicalOffset")

_KEY = ("topic", "uniqKey", "reconsumeTimes")


def duplicates(messages: DataFrame) -> DataFrame:
    """One row a key that was sent several times.

    topic, uniqKey, reconsumeTimes, sends, extra (messages beyond those of the first send), firstPhysicalOffset and
    lastPhysicalOffset (where the first and the last send begin).
    """
    sends = (
        messages.where(F.col("uniqKey").isNotNull() & ~is_brokers(F.col("topic")))
        .groupBy(*_KEY, "queueId", "storeTimestamp")
        .agg(F.count("*").alias("messages"), F.min("physicalOffset").alias("begin"))
    )
    return (
        sends.groupBy(*_KEY)
        .agg(
            F.count("*").alias("sends"),
            (F.sum("messages") - F.min_by("messages", "begin")).alias("extra"),
            F.min("begin").alias("firstPhysicalOffset"),
            F.max("begin").alias("lastPhysicalOffset"),
        )
        .where(F.col("sends") > 1)
    )


def extra_by_topic(found: DataFrame) -> DataFrame:
    """Of the rows of `duplicates`: topic, duplicateKeys (how many), extra (messages beyond first sends)."""
    return found.groupBy("topic").agg(F.count("*").alias("duplicateKeys"), F.sum("extra").alias("extra"))
