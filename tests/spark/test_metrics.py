"""Metrics of streams: from the progress of queries to Prometheus' page and the log."""

from __future__ import annotations

import json
import logging
import time
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from pyspark.sql import SparkSession

from tests.spark.stores import StoreWriter
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.spark.metrics import QueryMetrics, watch


def progress(batch: int, rows: int, **offsets: Any) -> dict[str, Any]:
    source = {name: json.dumps(offset) for name, offset in offsets.items()}
    return {
        "batchId": batch, "numInputRows": rows, "durationMs": {"triggerExecution": 250},
        "processedRowsPerSecond": 40.0, "sources": [source],
    }  # fmt: skip


def queues(*offsets: Any) -> dict[str, Any]:
    return {"Orders": {"broker-a": {str(number): offset for number, offset in enumerate(offsets)}}}


def test_lag_of_queues_is_what_is_left_of_each() -> None:
    metrics = QueryMetrics("q")
    metrics.add(progress(0, 10, startOffset=queues(0, 0), endOffset=queues(4, 6), latestOffset=queues(9, 6)))
    metrics.add(progress(1, 5, startOffset=queues(4, 6), endOffset=queues(9, 6), latestOffset=queues(9, 8)))
    metrics.add(progress(1, 5, startOffset=queues(4, 6), endOffset=queues(9, 6), latestOffset=queues(9, 8)))
    assert metrics.queues == {MessageQueue("Orders", "broker-a", 0): 0, MessageQueue("Orders", "broker-a", 1): 2}
    assert (metrics.rows, metrics.batch, metrics.seconds, metrics.processed_rate) == (15, 1, 0.25, 40.0)
    assert metrics.description == "topics Orders in 2 queues"


def test_lost_messages_of_queues() -> None:
    metrics = QueryMetrics("q")
    end = queues({"next": 4, "last": [0, 1, 2, 3], "lost": 3}, 6)
    metrics.add(progress(0, 10, startOffset=queues(0, 0), endOffset=end, latestOffset=queues(9, 6)))
    first, second = (MessageQueue("Orders", "broker-a", number) for number in range(2))
    assert (metrics.queues, metrics.lost_messages) == ({first: 5, second: 0}, {first: 3, second: 0})
    assert "lost_messages=3" in str(metrics)


def test_bytes_of_stores_and_what_was_lost() -> None:
    metrics = QueryMetrics("q")
    start, end = {"/a": {"reached": 100}}, {"/a": {"reached": 900, "lost": 50}}
    metrics.add(progress(0, 3, startOffset=start, endOffset=end, latestOffset={"/a": 1000}))
    assert (metrics.bytes, metrics.stores, metrics.lost) == ({"/a": 800}, {"/a": 100}, {"/a": 50})
    assert metrics.description == "stores /a"


@pytest.mark.parametrize("offset", [None, 7, "no JSON", [1], {"x": "y"}], ids=str)
def test_other_sources_have_none(offset: Any) -> None:
    metrics = QueryMetrics("q")
    metrics.add(progress(0, 3, startOffset=None, endOffset=offset, latestOffset=offset))
    assert (metrics.queues, metrics.stores, metrics.description) == ({}, {}, "nothing of rocketmq")


def test_a_query_is_on_the_page_and_in_the_log(
    session: SparkSession, writer: StoreWriter, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(20):
        writer.append()
    store = writer.write()
    registry = CollectorRegistry()
    metrics = watch(session, registry=registry)
    caplog.set_level(logging.INFO, "twisted_mq.spark.metrics")
    query = (
        session.readStream.format("rocketmq")
        .load(store)
        .writeStream.format("noop")
        .queryName("torches")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    try:
        query.processAllAvailable()
        begun = writer.position
        for _ in range(5):
            writer.append()
        writer.write()
        query.processAllAvailable()
        rows = b'mq_spark_rows_total{query="torches"} 25.0'
        wait_for(lambda: rows in generate_latest(registry))
        page = generate_latest(registry).decode()
        assert f'mq_spark_read_bytes_total{{query="torches",store="{store}"}} {float(writer.position - begun)}' in page
        assert f'mq_spark_lag_bytes{{query="torches",store="{store}"}} 0.0' in page
        assert f"reads=stores {store}" in caplog.text
    finally:
        query.stop()
    wait_for(lambda: b"torches" not in generate_latest(registry))
    session.streams.removeListener(metrics)


def wait_for(holds: Any) -> None:
    """Spark's listeners hear of things later."""
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)
