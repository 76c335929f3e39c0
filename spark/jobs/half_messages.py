"""Half messages of transactions and their ends, from the log.

A commit stores the message again, with the place of its half message. An operation lists the queue offsets of ended half
messages, committed or not. A checked half message is stored again with its unique key.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from twisted_mq.protocol.flags import MessageSysFlag
from twisted_mq.protocol.names.system_topics import CHECK_MAX_TIME_TOPIC, HALF_TOPIC, OP_TOPIC
from twisted_mq.protocol.text.properties import PROPERTY_PRODUCER_GROUP, PROPERTY_REAL_TOPIC

COLUMNS = (
    "store", "topic", "queueId", "queueOffset", "physicalOffset", "sysFlag", "preparedTransactionOffset", "uniqKey",
    "storeTimestamp", "properties", "body",
)  # fmt: skip
TOPICS = (HALF_TOPIC, OP_TOPIC, CHECK_MAX_TIME_TOPIC)
COMMIT_COLUMNS = ("store", "sysFlag", "preparedTransactionOffset")

COMMITTED, ROLLED_BACK, GIVEN_UP, ASKED, OPEN = "committed", "rolled back", "given up", "asked about", "open"


def half_messages(transactions: DataFrame, messages: DataFrame) -> DataFrame:
    """Return one row per half message: store, topic (the real one), producerGroup, uniqKey, physicalOffset, stored in ms, and
    end.

    `transactions` are the messages of TOPICS with COLUMNS, `messages` all with COMMIT_COLUMNS. end: committed, rolled back,
    given up (checked too often), asked about (stored again since; the later one has the end), open.
    """
    halves = transactions.where(F.col("topic") == HALF_TOPIC).select(
        "store",
        "queueId",
        "queueOffset",
        "physicalOffset",
        "uniqKey",
        F.col("properties")[PROPERTY_REAL_TOPIC].alias("topic"),
        F.col("properties")[PROPERTY_PRODUCER_GROUP].alias("producerGroup"),
        F.unix_millis("storeTimestamp").alias("stored"),
    )
    latest = halves.groupBy("store", "uniqKey").agg(F.max("queueOffset").alias("latest"))
    joined = (
        halves.join(_over(transactions), ["store", "queueId", "queueOffset"], "left")
        .join(_committed(messages), ["store", "physicalOffset"], "left")
        .join(_given_up(transactions), ["store", "uniqKey"], "left")
        .join(latest, ["store", "uniqKey"], "left")
    )
    return joined.select("store", "topic", "producerGroup", "uniqKey", "physicalOffset", "stored", _end().alias("end"))


def _end() -> Column:
    return (
        F.when(F.col("isCommitted"), COMMITTED)
        .when(F.col("latest") > F.col("queueOffset"), ASKED)
        .when(F.col("isGivenUp"), GIVEN_UP)
        .when(F.col("isOver"), ROLLED_BACK)
        .otherwise(OPEN)
    )


def _over(transactions: DataFrame) -> DataFrame:
    """Return the queue offsets in operations: b"7,9,12,"."""
    named = F.explode(F.split(F.col("body").cast("string"), ",")).alias("text")
    operations = transactions.where(F.col("topic") == OP_TOPIC).select("store", "queueId", named)
    offsets = operations.select("store", "queueId", F.col("text").try_cast("bigint").alias("queueOffset"))
    return offsets.where("queueOffset is not null").distinct().withColumn("isOver", F.lit(True))


def _committed(messages: DataFrame) -> DataFrame:
    kind = F.col("sysFlag").bitwiseAND(MessageSysFlag.TRANSACTION_ROLLBACK_TYPE)
    commits = messages.where(kind == MessageSysFlag.TRANSACTION_COMMIT_TYPE)
    places = commits.select("store", F.col("preparedTransactionOffset").alias("physicalOffset")).distinct()
    return places.withColumn("isCommitted", F.lit(True))


def _given_up(transactions: DataFrame) -> DataFrame:
    ended = transactions.where(F.col("topic") == CHECK_MAX_TIME_TOPIC).select("store", "uniqKey").distinct()
    return ended.withColumn("isGivenUp", F.lit(True))
