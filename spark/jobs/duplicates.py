"""Messages that were sent more than once: sends with the same unique key, for example retries of a producer.

Equal keys alone are not duplicates: the Java client gives all messages of a batch one key. The broker stores a batch in one queue
with one store time, so messages with the same key, queue and store time are one send. A key with several sends is a duplicate. (A
retry follows a failed or late answer, so it is never in the same ms.)

The broker itself stores a message again with its key: for each retry of a consumer group (with another reconsumeTimes), and in
system topics for each delay and each check of a half message. So system topics are skipped, and messages without a unique key,
which cannot be compared.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from twisted_mq.spark.jobs.topics import is_brokers

COLUMNS = ("topic", "uniqKey", "reconsumeTimes", "queueId", "storeTimestamp", "physicalOffset")

_KEY = ("topic", "uniqKey", "reconsumeTimes")


def duplicates(messages: DataFrame) -> DataFrame:
    """Return one row per key that was sent several times.

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
    """Sum the rows of `duplicates`: topic, duplicateKeys (number of keys), extra (messages beyond first sends)."""
    return found.groupBy("topic").agg(F.count("*").alias("duplicateKeys"), F.sum("extra").alias("extra"))
