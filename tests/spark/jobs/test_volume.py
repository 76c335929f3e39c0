"""Messages and bytes a queue, and over time."""

from __future__ import annotations

from pyspark.sql import SparkSession

from tests.spark.stores import BORN_MS, StoreWriter
from twisted_mq.spark.jobs import volume


def test_each_queue_is_counted(session: SparkSession, writer: StoreWriter) -> None:
    for number in range(6):
        writer.append(queue_id=number % 2, queue_offset=10 + number)
    writer.append(topic="Payments", body=b"x" * 100, body_crc=1)
    frame = session.read.format("rocketmq").option("columns", ",".join(volume.COLUMNS)).load(writer.write())
    rows = sorted(tuple(row) for row in volume.by_queue(frame).collect())
    assert rows == [
        ("Orders", 0, 3, 303, 10, 14, BORN_MS + 2, BORN_MS + 6, 0),
        ("Orders", 1, 3, 303, 11, 15, BORN_MS + 3, BORN_MS + 7, 0),
        ("Payments", 0, 1, 199, 0, 0, BORN_MS + 8, BORN_MS + 8, 1),
    ]


def test_intervals_of_time(session: SparkSession, writer: StoreWriter) -> None:
    for stored in (1000, 1001, 1500, 1999):
        writer.append(born_timestamp=stored, latency_ms=0)
    frame = session.read.format("rocketmq").load(writer.write())
    rows = sorted(tuple(row) for row in volume.over_time(frame, 1000, 1999, 10).collect())
    assert rows == [(0, 2), (5, 1), (9, 1)]
    assert [tuple(row) for row in volume.over_time(frame, 1000, 1999, 1).collect()] == [(0, 4)]
