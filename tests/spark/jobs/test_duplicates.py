"""Unique keys that were sent several times."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import SparkSession

from tests.spark.stores import BORN_MS, StoreWriter
from twisted_mq.spark.jobs import duplicates


def found(session: SparkSession, store: str) -> list[tuple[object, ...]]:
    frame = session.read.format("rocketmq").option("columns", ",".join(duplicates.COLUMNS)).load(store)
    return sorted(tuple(row) for row in duplicates.duplicates(frame).collect())


def test_a_retry_is_found_and_other_equal_keys_are_not(session: SparkSession, writer: StoreWriter) -> None:
    def send(key: str, stored: int, **fields: object) -> int:
        return writer.append(properties={"UNIQ_KEY": key}, born_timestamp=BORN_MS, latency_ms=stored, **fields)  # type: ignore[arg-type]

    first = send("retried", 1)
    send("batch", 5)
    send("batch", 5)
    send("again", 7)
    send("again", 9, reconsume_times=1)
    send("again", 9, topic="Payments")
    send("half", 10, topic="RMQ_SYS_TRANS_HALF_TOPIC")
    send("half", 20, topic="RMQ_SYS_TRANS_HALF_TOPIC")
    for topic in ("rmq_sys_wheel_timer", "rmq_sys_REVIVE_LOG_DefaultCluster", "DefaultCluster_REPLY_TOPIC"):
        send("broker's", 30, topic=topic)
        send("broker's", 40, topic=topic)
    send("retried", 3000, queue_id=1)
    last = send("retried", 6000)
    writer.append()
    writer.append()
    store = writer.write()
    assert found(session, store) == [("Orders", "retried", 0, 3, 2, first, last)]
    frame = session.read.format("rocketmq").load(store)
    sums = duplicates.extra_by_topic(duplicates.duplicates(frame)).collect()
    assert [tuple(row) for row in sums] == [("Orders", 1, 2)]


def test_a_batch_sent_twice_counts_all_its_messages(session: SparkSession, writer: StoreWriter) -> None:
    for stored in (5, 5, 5, 4000, 4000, 4000):
        writer.append(properties={"UNIQ_KEY": "batch"}, born_timestamp=BORN_MS, latency_ms=stored)
    assert found(session, writer.write()) == [("Orders", "batch", 0, 2, 3, 0, writer.positions[3])]


def test_apaches_batches_and_retries_are_no_duplicates(session: SparkSession, captured: Callable[[str], str]) -> None:
    assert found(session, captured("st")) == []
