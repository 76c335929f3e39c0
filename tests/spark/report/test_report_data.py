"""Data of a report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.stores import BORN_MS, StoreWriter
from tests.support.captures import expected_messages
from twisted_mq.spark.errors import NoCommitLog
from twisted_mq.spark.jobs.topics import TopicKind
from twisted_mq.spark.report.report_data import INTERVALS, QueueFigures, StoreReport, TopicFigures, collect_report


def test_all_figures_of_a_small_store(session: SparkSession, writer: StoreWriter) -> None:
    writer.append(topic="SELF_TEST_TOPIC")
    for offset, key in ((4, "k1"), (5, "k2"), (8, "k1")):
        writer.append(queue_id=1, queue_offset=offset, properties={"UNIQ_KEY": key})
    writer.overwrite(writer.append(), b"\xee")
    writer.append(topic="SELF_TEST_TOPIC")
    report = collect_report(session, writer.write())
    size = writer.positions[2] - writer.positions[1]
    first = BORN_MS + 2
    orders = QueueFigures("Orders", 1, 3, 3 * size, 4, 8, first + 1, first + 3, 0, gaps=1, missing=2)
    system = QueueFigures("SELF_TEST_TOPIC", 0, 2, 2 * writer.positions[1], 0, 1, first, first + 5, 0)
    assert report.topics == (
        TopicFigures("Orders", TopicKind.USER, (orders,), 2, 2, 2, duplicate_keys=1, extra=1),
        TopicFigures("SELF_TEST_TOPIC", TopicKind.SYSTEM, (system,), 2, 2, 2),
    )
    assert (report.files, report.file_bytes) == (1, 65536)
    assert [tuple(gap)[1:] for gap in report.gaps] == [("Orders", 1, 6, 7, 2, writer.positions[2], writer.positions[3])]
    sends = [("Orders", "k1", 0, 2, 1, writer.positions[1], writer.positions[3])]
    assert [tuple(duplicate) for duplicate in report.duplicates] == sends
    assert [damage.physical_offset for damage in report.damage] == [writer.positions[4]]
    assert (report.first_stored_ms, report.last_stored_ms) == (first, first + 5)
    assert (sum(report.latency_steps), report.latency_steps[3]) == (5, 5)
    assert (sum(report.over_time), len(report.over_time)) == (5, INTERVALS)
    totals = {name: report.total(name) for name in ("messages", "missing", "gaps", "extra", "bad_crc")}
    assert totals == {"messages": 5, "missing": 2, "gaps": 1, "extra": 1, "bad_crc": 0}


def test_a_recorded_store(session: SparkSession, captured: Callable[[str], str]) -> None:
    report = collect_report(session, captured("ha_master"))
    messages = expected_messages("ha_master")
    assert [topic.topic for topic in report.topics] == ["CapHa"]
    assert report.total("messages") == len(messages)
    assert report.total("size_bytes") == sum(message["storeSize"] for message in messages)
    assert (report.gaps, report.duplicates, report.damage) == ((), (), ())


def test_an_empty_store(session: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "commitlog").mkdir()
    empty = collect_report(session, str(tmp_path))
    assert empty == StoreReport(str(tmp_path), 0, 0, (), (), empty.latency_steps)
    assert set(empty.latency_steps) == {0}
    assert (empty.first_stored_ms, empty.last_stored_ms, empty.queues) == (None, None, [])


def test_no_store(session: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(NoCommitLog):
        collect_report(session, str(tmp_path / "absent"))
