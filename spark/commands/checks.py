"""Checks of stores: logs against queues, index and replicas, and the order of strictly ordered queues."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from twisted_mq.spark.commands.stores import Stores
from twisted_mq.spark.errors import WrongOption
from twisted_mq.spark.findings.findings import Figure, Findings, Kind, Kinds, Table, first_rows, named_bars
from twisted_mq.spark.jobs import audit as audit_job
from twisted_mq.spark.jobs import order as order_job
from twisted_mq.spark.source.damage import damage_in_parallel

_QUEUE_KINDS: Kinds = {
    "store": Kind.TEXT, "topic": Kind.TEXT, "queueId": Kind.PLAIN, "queueOffset": Kind.PLAIN, "physicalOffset": Kind.PLAIN,
    "kind": Kind.TEXT,
}  # fmt: skip
_INDEX_KINDS: Kinds = {
    "store": Kind.TEXT, "physicalOffset": Kind.PLAIN, "keyHash": Kind.PLAIN, "kind": Kind.TEXT,
}  # fmt: skip
_REPLICA_KINDS: Kinds = {
    "physicalOffset": Kind.PLAIN, "topic": Kind.TEXT, "queueId": Kind.PLAIN, "queueOffset": Kind.PLAIN, "kind": Kind.TEXT,
}  # fmt: skip
_DAMAGE_KINDS: Kinds = {
    "store": Kind.TEXT, "file": Kind.TEXT, "physicalOffset": Kind.PLAIN, "length": Kind.BYTES, "reason": Kind.TEXT,
}  # fmt: skip
_TERM_KINDS: Kinds = {
    "topic": Kind.TEXT, "queueId": Kind.PLAIN, "epoch": Kind.PLAIN, "leader": Kind.PLAIN, "messages": Kind.COUNT,
    "first": Kind.PLAIN, "last": Kind.PLAIN, "firstOffset": Kind.PLAIN, "lastOffset": Kind.PLAIN, "resent": Kind.COUNT,
}  # fmt: skip
_FAULT_KINDS: Kinds = {
    "topic": Kind.TEXT, "queueId": Kind.PLAIN, "kind": Kind.TEXT, "epoch": Kind.PLAIN, "leader": Kind.PLAIN,
    "first": Kind.PLAIN, "last": Kind.PLAIN, "store": Kind.TEXT, "physicalOffset": Kind.PLAIN,
}  # fmt: skip


def audit(stores: Stores, limit: int, slave: Stores | None) -> Findings:
    """Compare the log of each store with its queues and index; with `slave`, the log of one store with its replica's."""
    if slave is not None and len(stores.ends) != 1:
        raise WrongOption("slave", str(len(stores.ends)), "one store is compared with one slave")
    messages, index, begins = stores.messages(audit_job.COLUMNS), stores.table("index"), stores.begins()
    entries, batches = stores.table("consumequeue"), stores.table("batchconsumequeue")
    batch_count = batches.count()
    queues = audit_job.against_queues(messages, entries, begins)
    keyed = messages, index
    if batch_count:
        queues = queues.unionByName(audit_job.against_batch_queues(messages, batches, begins))
        keyed = audit_job.without_batches(messages, index)
    keys = audit_job.against_index(*keyed, _covered(index, begins))
    tables = [
        _beside_log(stores, "Queues", queues, _QUEUE_KINDS, limit),
        _beside_log(stores, "Index", keys, _INDEX_KINDS, limit),
        _damage(stores, limit),
    ]
    if slave is not None:
        tables.append(replicas(stores, slave, limit))
    count, size = messages.agg(F.count("*"), F.sum("storeSize")).first() or (0, 0)
    figures = (
        Figure("messages", count),
        Figure("bytes of messages", size or 0, Kind.BYTES),
        Figure("queue entries", entries.count() + batch_count),
        Figure("index entries", index.count()),
        *(Figure(f"faults: {one.name.lower()}", one.total, fault=True) for one in tables),
    )
    picture = named_bars("Faults", ((one.name, one.total) for one in tables))
    return Findings("audit", figures, tuple(tables), (picture,))


def _covered(index: DataFrame, begins: DataFrame) -> DataFrame:
    """Return store, begin and end of the range that log and index have. The last record may not have all of its entries yet."""
    places = index.groupBy("store").agg(F.min("physicalOffset").alias("first"), F.max("physicalOffset").alias("last"))
    return begins.join(places, "store").select(
        "store", F.greatest("begin", "first").alias("begin"), (F.col("last") - 1).alias("end")
    )


def _beside_log(stores: Stores, name: str, found: DataFrame, kinds: Kinds, limit: int) -> Table:
    """Return the differences from the log, except entries of records that a broker wrote since the job started."""
    table = first_rows(name, found, kinds, list(kinds), limit, fault=True)
    if not table.total:
        return table
    return first_rows(name, found.where(~stores.written_since()), kinds, list(kinds), limit, fault=True)


def _damage(stores: Stores, limit: int) -> Table:
    found = [
        (store.name, one.file, one.physical_offset, one.length, one.reason)
        for store in stores.ends
        for one in damage_in_parallel(stores.session, store.uri)
    ]
    return Table("Damage", _DAMAGE_KINDS, tuple(found[:limit]), len(found), fault=True)


def replicas(master: Stores, slave: Stores, limit: int) -> Table:
    """Compare two logs over the range that both have; data before or after it is not a difference."""
    begin = max(row.begin for one in (master, slave) for row in one.begins().collect())
    end = min(end for one in (master, slave) for end in one.ends.values())
    left, right = (
        one.messages(audit_job.REPLICA_COLUMNS).where(F.col("physicalOffset").between(begin, end - 1))
        for one in (master, slave)
    )
    found = audit_job.replicas(left, right)
    return first_rows("Slave", found, _REPLICA_KINDS, ["physicalOffset", "queueOffset"], limit, fault=True)


def order(stores: Stores, limit: int) -> Findings:
    """Find epochs and sequences of strictly ordered queues, and violations of their order."""
    names = [store.name for store in stores.ends]
    messages = order_job.numbered(stores.messages(order_job.COLUMNS), names)
    terms, faults = order_job.terms(messages), order_job.faults(messages)
    named = faults.withColumn("store", F.element_at(F.array(*map(F.lit, names)), F.col("store") + 1))
    queue = ["topic", "queueId", "epoch"]
    by_term = first_rows("Terms", terms, _TERM_KINDS, [*queue, "leader"], limit)
    broken = first_rows("Faults", named, _FAULT_KINDS, [*queue, "physicalOffset"], limit, fault=True)
    queues = terms.select("topic", "queueId").distinct().count()
    picture = named_bars("Messages", ((f"{row[0]}/{row[1]} epoch {row[2]}", row[4]) for row in by_term.rows))
    figures = (Figure("ordered queues", queues), Figure("faults", broken.total))
    return Findings("order", figures, (by_term, broken), (picture,) if by_term.rows else ())
