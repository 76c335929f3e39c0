"""Queue offsets that are missing between two stored ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from tests.spark.stores import StoreWriter
from twisted_mq.protocol.flags import MessageSysFlag
from twisted_mq.spark.jobs import gaps


def found(session: SparkSession, store: str) -> list[tuple[object, ...]]:
    frame = session.read.format("rocketmq").option("columns", ",".join(gaps.COLUMNS)).load(store)
    return sorted(tuple(row) for row in gaps.gaps(frame).collect())


def test_a_gap_names_its_neighbours(session: SparkSession, writer: StoreWriter) -> None:
    for queue_offset in (5, 6, 9, 10, 20):
        writer.append(queue_offset=queue_offset)
    writer.append(queue_id=1)
    places = writer.positions
    store = writer.write()
    assert found(session, store) == [
        (store, "Orders", 0, 7, 8, 2, places[1], places[2]),
        (store, "Orders", 0, 11, 19, 9, places[3], places[4]),
    ]
    frame = session.read.format("rocketmq").load(store)
    sums = gaps.missing_by_queue(gaps.gaps(frame)).collect()
    assert [tuple(row) for row in sums] == [(store, "Orders", 0, 2, 11)]


def test_queues_of_two_stores_are_two(session: SparkSession, writer: StoreWriter, tmp_path: Path) -> None:
    other = StoreWriter(tmp_path / "other")
    for one, offsets in ((writer, (0, 1, 4)), (other, (2, 3, 4))):
        for offset in offsets:
            one.append(queue_offset=offset)
    stores = [one.write() for one in (writer, other)]
    frame = session.read.format("rocketmq").load(stores)
    assert [tuple(row)[:5] for row in gaps.gaps(frame).collect()] == [(stores[0], "Orders", 0, 2, 3)]


def test_transactions_and_inner_batches_leave_no_gap(session: SparkSession, writer: StoreWriter) -> None:
    writer.append(queue_offset=100)
    writer.append(queue_offset=0, sys_flag=MessageSysFlag.TRANSACTION_PREPARED_TYPE)
    writer.append(queue_offset=0, sys_flag=MessageSysFlag.TRANSACTION_ROLLBACK_TYPE)
    writer.append(queue_offset=101, sys_flag=MessageSysFlag.TRANSACTION_COMMIT_TYPE)
    writer.append(queue_offset=102, sys_flag=MessageSysFlag.INNER_BATCH_FLAG)
    writer.append(queue_offset=112)
    assert found(session, writer.write()) == []


def test_a_recorded_store_has_none(session: SparkSession, captured: Callable[[str], str]) -> None:
    assert found(session, captured("st")) == []
