"""The log against the consume queues and the key index, and a master's log against its slave's.

All joins are by position, so each task has a part of each queue.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf

from twisted_mq.protocol.flags import OUT_OF_QUEUES, MessageSysFlag
from twisted_mq.protocol.layouts.index import index_key
from twisted_mq.protocol.layouts.index_columns import positive_hashes
from twisted_mq.protocol.names.system_topics import LMQ_PREFIX
from twisted_mq.protocol.text.java_hash_columns import hashes_of

COLUMNS = ("store", "topic", "queueId", "queueOffset", "physicalOffset", "storeSize", "sysFlag", "uniqKey", "keys")
REPLICA_COLUMNS = (
    "topic", "queueId", "queueOffset", "physicalOffset", "flag", "sysFlag", "bornTimestamp", "storeTimestamp", "bornHost",
    "storeHost", "reconsumeTimes", "preparedTransactionOffset", "storeSize", "bodyCRC", "properties", "body",
)  # fmt: skip

NO_ENTRY, NO_RECORD, ELSEWHERE = "no entry", "no record", "leads elsewhere"
NOT_INDEXED, NO_KEY = "not indexed", "no such key"
MISSING, EXTRA, DIFFERENT = "missing", "extra", "different"

_PLACE = ("store", "topic", "queueId", "queueOffset")
_HASH = ("store", "physicalOffset", "keyHash")
_BATCHES = MessageSysFlag.INNER_BATCH_FLAG


def against_queues(messages: DataFrame, entries: DataFrame, first: DataFrame) -> DataFrame:
    """Return differences of records and queue entries: store, topic, queueId, queueOffset, physicalOffset, kind.

    Kinds: `no entry`, no queue entry points to the record; `no record`, an entry points to a place without a record; `leads
    elsewhere`, the entry of a record's queue offset has another place or size. `entries` is the table `rocketmq.consumequeue`. If
    a queue offset was used twice, for example after a topic was created again, the later record and entry are compared. Not
    compared are entries before the begin of the log (`first`, by store), records of missing queues, and records of batches.
    """
    queued = messages.where(F.col("sysFlag").bitwiseAND(OUT_OF_QUEUES | _BATCHES) == 0)
    records = queued.withColumnRenamed("storeSize", "size")
    return _differing(records, entries.where(~F.col("topic").startswith(LMQ_PREFIX)), first, ("physicalOffset", "size"))


def against_batch_queues(messages: DataFrame, entries: DataFrame, first: DataFrame) -> DataFrame:
    """Compare the table `rocketmq.batchconsumequeue` likewise; its entries also have the number of messages of a record."""
    queued = messages.where(F.col("sysFlag").bitwiseAND(OUT_OF_QUEUES) == 0)
    records = queued.groupBy("store", "topic", "queueId", "physicalOffset").agg(
        F.min("queueOffset").alias("queueOffset"), F.max("storeSize").alias("size"), F.count("*").alias("messages")
    )
    renamed = entries.withColumnsRenamed({"msgBaseOffset": "queueOffset", "batchNum": "messages"})
    return _differing(records, renamed, first, ("physicalOffset", "size", "messages"))


def _differing(records: DataFrame, entries: DataFrame, first: DataFrame, names: Sequence[str]) -> DataFrame:
    """Return rows with different values of these columns at a place in a queue; the first column orders them."""
    kept = entries.join(F.broadcast(first), "store").where(F.col("physicalOffset") >= F.col("begin"))
    said = F.max(F.struct(*(F.col(name).cast("bigint").alias(name) for name in names)))
    known = kept.select("store", "topic", "queueId").distinct()
    inside = records.join(F.broadcast(known), ["store", "topic", "queueId"])
    stored = inside.groupBy(*_PLACE).agg(said.alias("record"))
    led = kept.groupBy(*_PLACE).agg(said.alias("entry"))
    kind = (
        F.when(F.col("entry").isNull(), NO_ENTRY)
        .when(F.col("record").isNull(), NO_RECORD)
        .when(F.col("entry") != F.col("record"), ELSEWHERE)
    )
    offset = F.coalesce("entry.physicalOffset", "record.physicalOffset").alias("physicalOffset")
    joined = stored.join(led, list(_PLACE), "full")
    return joined.select(*_PLACE, offset, kind.alias("kind")).where("kind is not null")


def against_index(messages: DataFrame, entries: DataFrame, covered: DataFrame) -> DataFrame:
    """Return differences of keys of records and index entries: store, physicalOffset, keyHash, kind.

    Kinds: `not indexed`, no entry has the key of a record; `no such key`, an entry points to a record without a key of that hash,
    or to no record. `entries` is the table `rocketmq.index`. `covered` has by store the compared range: from the later begin of
    log and index (begin) to the last place in the index (end).
    """
    kept = messages.where(_transaction() != MessageSysFlag.TRANSACTION_ROLLBACK_TYPE)
    keys = F.filter(F.concat(F.array("uniqKey"), F.split(F.coalesce("keys", F.lit("")), " ")), _is_filled)
    texts = kept.select("store", "physicalOffset", F.explode(keys).alias("key"), "topic")
    text = F.concat(F.col("topic"), F.lit(index_key("", "")), F.col("key"))
    wanted = texts.select("store", "physicalOffset", _key_hashes(text).alias("keyHash")).distinct()
    inside = [_inside(frame.select(*_HASH).distinct(), covered) for frame in (wanted, entries)]
    missing = inside[0].join(inside[1], list(_HASH), "left_anti").withColumn("kind", F.lit(NOT_INDEXED))
    odd = inside[1].join(inside[0], list(_HASH), "left_anti").withColumn("kind", F.lit(NO_KEY))
    return missing.unionByName(odd)


def without_batches(messages: DataFrame, entries: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Return the rows that `against_index` can compare: the index has the keys of a batch's record, the rows have those of its
    messages."""
    is_batch = F.col("sysFlag").bitwiseAND(_BATCHES) != 0
    batches = messages.where(is_batch).select("store", "physicalOffset").distinct()
    return messages.where(~is_batch), entries.join(batches, ["store", "physicalOffset"], "left_anti")


def _inside(frame: DataFrame, covered: DataFrame) -> DataFrame:
    between = F.col("physicalOffset").between(F.col("begin"), F.col("end"))
    return frame.join(F.broadcast(covered), "store").where(between).select(*_HASH)


def _is_filled(key: Column) -> Column:
    return key.isNotNull() & (key != "")


def _transaction() -> Column:
    return F.col("sysFlag").bitwiseAND(MessageSysFlag.TRANSACTION_ROLLBACK_TYPE)


def _key_hashes(text: Column) -> Column:
    """Return the hash of `topic#key` in an index file."""

    def hashes(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        for texts in batches:
            found = hashes_of([str(one).encode("utf-8", "surrogatepass") for one in texts.to_pylist()])
            yield pa.array(positive_hashes(np.asarray(found)), pa.int32())

    made: Column = arrow_udf(hashes, "int")(text)  # type: ignore[call-overload]
    return made


def replicas(master: DataFrame, slave: DataFrame) -> DataFrame:
    """Return differences of two logs: physicalOffset, topic, queueId, queueOffset, kind (missing: the slave has no such
    record)."""
    left, right = (
        frame.select("physicalOffset", "topic", "queueId", "queueOffset", _content(frame).alias("content"))
        for frame in (master, slave)
    )
    names = ("topic", "queueId", "queueOffset")
    renamed = right.select("physicalOffset", *(F.col(name).alias(f"{name}There") for name in (*names, "content")))
    # messages of one inner batch have the same physical offset
    same = (left["physicalOffset"] == renamed["physicalOffset"]) & (left["queueOffset"] == renamed["queueOffsetThere"])
    joined = left.join(renamed, same, "full")
    kind = (
        F.when(F.col("contentThere").isNull(), MISSING)
        .when(F.col("content").isNull(), EXTRA)
        .when(F.col("content") != F.col("contentThere"), DIFFERENT)
    )
    found = [F.coalesce(left[name], renamed[f"{name}There"]).alias(name) for name in names]
    place = F.coalesce(left["physicalOffset"], renamed["physicalOffset"]).alias("physicalOffset")
    return joined.select(place, *found, kind.alias("kind")).where("kind is not null")


def _content(frame: DataFrame) -> Column:
    """Return a hash of all fields of a record, including the body."""
    named = [F.map_entries(name) if name == "properties" else F.col(name) for name in frame.columns if name != "store"]
    return F.xxhash64(*named)
