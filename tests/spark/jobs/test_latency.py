"""Time from born to stored."""

from __future__ import annotations

from pyspark.sql import SparkSession

from tests.spark.stores import StoreWriter
from twisted_mq.spark.jobs import latency


def test_percentiles_a_topic(session: SparkSession, writer: StoreWriter) -> None:
    for ms in range(1, 101):
        writer.append(latency_ms=ms)
    writer.append(topic="Early", latency_ms=-3)
    writer.append(topic="Timeless", born_timestamp=2**62, latency_ms=0)
    frame = session.read.format("rocketmq").option("columns", ",".join(latency.COLUMNS)).load(writer.write())
    rows = sorted(tuple(row) for row in latency.by_topic(frame).collect())
    assert rows == [("Early", -3, -3, -3), ("Orders", 50, 99, 100), ("Timeless", None, None, None)]


def test_every_message_is_in_one_step(session: SparkSession, writer: StoreWriter) -> None:
    for ms in (-1, 0, 1, 4, 5, 9, 10, 3_599_999, 3_600_000, 10**10):
        writer.append(latency_ms=ms)
    (row,) = latency.histogram(session.read.format("rocketmq").load(writer.write())).collect()
    filled = {name: count for name, count in row.asDict().items() if count}
    assert filled == {"negative": 1, "ms0": 1, "ms1": 1, "ms2": 1, "ms5": 2, "ms10": 1, "ms600000": 1, "ms3600000": 2}
    assert len(row) == len(latency.STEPS_MS) + 1
