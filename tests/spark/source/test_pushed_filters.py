"""Ranges of a read with a query's conditions."""

from __future__ import annotations

import datetime
import re
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

from tests.spark.stores import BORN_MS, StoreWriter
from twisted_mq.spark.columns.selection import MessageConditions
from twisted_mq.spark.source.options import ReadOptions
from twisted_mq.spark.source.pushed_filters import narrowed

NOON = datetime.datetime(2026, 11, 20, 12, tzinfo=datetime.UTC)
NOON_MS = 1_795_176_000_000


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ([EqualTo(("topic",), "a")], {"topics": ("a",)}),
        ([In(("topic",), ("a", "b", "c")), In(("topic",), ("b", "c", "d"))], {"topics": ("b", "c")}),
        ([StringStartsWith(("topic",), "a.b")], {"topic_pattern": re.compile(r"a\.b(?s:.*)")}),
        ([EqualTo(("queueId",), 0)], {"queue_ids": (0,)}),
        ([In(("tags",), ("x", None))], {"tags": ("x",)}),
        ([GreaterThan(("storeTimestamp",), NOON)], {"start_time_ms": NOON_MS}),
        ([LessThanOrEqual(("storeTimestamp",), NOON)], {"end_time_ms": NOON_MS + 1}),
        (
            [GreaterThanOrEqual(("storeTimestamp",), NOON), LessThan(("storeTimestamp",), NOON)],
            {"start_time_ms": NOON_MS, "end_time_ms": NOON_MS + 1},
        ),
        ([IsNotNull(("topic",)), Not(EqualTo(("topic",), "a")), EqualTo(("body",), b"x")], {}),
        ([EqualTo(("properties", "topic"), "a")], {}),
    ],
    ids=str,
)
def test_selections(filters: list[Filter], expected: dict[str, Any]) -> None:
    assert narrowed(ReadOptions(("/a",)), filters) == ReadOptions(("/a",), selection=MessageConditions(**expected))


def test_offsets_and_what_nothing_can_match() -> None:
    given = ReadOptions(("/a",), start_offset=50, selection=MessageConditions(topics=("a",)))
    found = narrowed(given, [GreaterThan(("physicalOffset",), 100), LessThan(("physicalOffset",), 200)])
    assert (found.start_offset, found.least_offset, found.end_offset) == (50, 100, 201)
    assert narrowed(given, [EqualTo(("topic",), "b")]).end_offset == 0


def test_spark_hands_them_over_where_its_session_allows_it(session: SparkSession, writer: StoreWriter) -> None:
    for number in range(100):
        writer.append(topic=("Orders", "Payments")[number % 2], queue_id=number % 4)
    store = writer.write()

    def answers() -> list[Any]:
        frame = session.read.format("rocketmq").load(store)
        later = datetime.datetime.fromtimestamp((BORN_MS + 50) / 1000, datetime.UTC)
        conditions = [
            "topic = 'Orders' and queueId = 2",
            "topic like 'Pay%'",
            "topic = 'None'",
            f"physicalOffset >= {writer.positions[90]}",
            f"storeTimestamp >= timestamp '{later:%Y-%m-%d %H:%M:%S.%f}'",
        ]
        return [frame.where(condition).count() for condition in conditions]

    plain = answers()
    session.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        assert answers() == plain == [25, 50, 0, 10, 52]
        frame = session.read.format("rocketmq").option("maxPartitionBytes", "4k").load(store)
        assert frame.rdd.getNumPartitions() > 2
        assert frame.where(f"physicalOffset < {writer.positions[10]}").rdd.getNumPartitions() == 1
    finally:
        session.conf.unset("spark.sql.python.filterPushdown.enabled")
