"""Metrics of a store with known contents, and of one that Apache's broker wrote."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.spark.commands.planted import DEAD, RETRY, STEP_MS, plant
from tests.spark.stores import BORN_MS
from twisted_mq.spark.commands import consumers, contents
from twisted_mq.spark.commands.search import search
from twisted_mq.spark.commands.stores import Stores
from twisted_mq.spark.findings.findings import Findings
from twisted_mq.spark.jobs import stretches
from twisted_mq.spark.jobs.topics import TopicKind, topic_kind
from twisted_mq.storage.files.paths import StorePaths
from twisted_mq.storage.store_reader import StoreReader
from twisted_mq.storage.tools.config_check import consumer_offsets
from twisted_mq.storage.tools.sizes import measure

HOUR_MS = BORN_MS - BORN_MS % 3_600_000


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("planted") / "store"
    plant(root)
    return root


@pytest.fixture
def stores(session: SparkSession, planted: Path) -> Stores:
    return Stores.opened(session, [str(planted)])


def figures(findings: Findings) -> dict[str, int]:
    return {one.name: one.value for one in findings.figures}


def rows(findings: Findings, name: str, *columns: str) -> list[tuple[Any, ...]]:
    """These columns of a table that is shown as a whole."""
    (table,) = (one for one in findings.tables if one.name == name)
    assert table.total == len(table.rows)
    places = [list(table.kinds).index(column) for column in columns or table.kinds]
    return [tuple(row[place] for place in places) for row in table.rows]


def test_volume_is_what_mq_store_sizes_says(session: SparkSession, captured: Callable[[str], str]) -> None:
    found = contents.volume(Stores.opened(session, [captured("st")]), 50, "minute")
    said = measure(captured("st")).topics.values()
    columns = ("topic", "messages", "bytes", "files", "firstStored", "lastStored")
    assert sorted(rows(found, "Topics", *columns)) == sorted(
        (one.topic, one.messages, one.log_bytes, one.files, one.oldest, one.newest) for one in said if one.messages
    )
    assert figures(found)["bytes"] == sum(one.log_bytes for one in said)
    assert sum(row[1] for row in rows(found, "Over time")) == figures(found)["messages"]


def test_gaps_and_duplicates(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stretches, "STRETCH_OFFSETS", 2)
    found = contents.gaps(stores, 50)
    assert (figures(found), found.sound) == ({"gaps": 1, "missing offsets": 2}, False)
    assert rows(found, "Gaps", "topic", "queueId", "firstMissing", "lastMissing") == [("Orders", 0, 3, 4)]
    twice = contents.duplicates(stores, 50)
    assert rows(twice, "Duplicates", "topic", "uniqKey", "sends", "extra") == [("Orders", "K1", 2, 1)]
    assert (figures(twice), twice.sound) == ({"keys sent again": 1, "extra messages": 1}, False)


def test_latency_by_hour_host_and_topic(stores: Stores) -> None:
    found = contents.latency(stores, 50, ("hour", "host", "topic"))
    orders = [row for row in rows(found, "By hour, host, topic") if row[2] == "Orders"]
    assert orders == [
        (HOUR_MS, "10.0.0.7", "Orders", 6, 10, 30, 30, 30, 30),
        (HOUR_MS + 3_600_000, "10.0.0.7", "Orders", 1, 2, 2, 2, 2, 2),
    ]
    assert found.sound


def test_lag_at_rest_and_over_time(stores: Stores) -> None:
    found = consumers.lag(stores, 50, "hour")
    newest = BORN_MS + STEP_MS * 21 + 3_600_000
    assert figures(found) == {"groups": 2, "groups behind": 1, "messages not read": 5}
    assert rows(found, "Queues", "group", "topic", "queueId", "committed", "end", "lag") == [
        ("audit", "Orders", 0, 2, 7, 3),
        ("audit", "Orders", 1, 0, 2, 2),
        ("done", "Orders", 0, 7, 7, 0),
    ]
    behind = rows(found, "Queues", "behind")
    assert behind[1:] == [(newest + 2 - (BORN_MS + 5 * STEP_MS + 30),), (None,)]
    assert rows(found, "Stored, not read") == [
        (HOUR_MS, "audit", "Orders", 4),
        (HOUR_MS + 3_600_000, "audit", "Orders", 1),
    ]


def test_what_retention_would_lose(stores: Stores) -> None:
    found = contents.retention(stores, 50, (0, 1, 48), None)
    by_hours = {row[0]: row[1:] for row in rows(found, "Gone")}
    assert set(by_hours) == {0, 1}
    assert by_hours[0] == by_hours[1]
    files, messages, size = by_hours[0]
    assert files > 0 and 0 < messages < 22 and 0 < size < 2048 * files
    assert rows(found, "Deleted and not read") == [(hours, "audit", "Orders", 6) for hours in (0, 1)]


def test_dead_letters_retries_and_storms(stores: Stores) -> None:
    found = consumers.dead_letters(stores, 50, "hour", 2)
    assert figures(found) == {"dead letters": 1, "retries": 2, "storms": 1}
    assert rows(found, "Dead letters", "group", "origin", "messages") == [("audit", "Orders", 1)]
    assert rows(found, "Retries") == [("audit", 2, 1, 2)]
    assert rows(found, "Storms") == [(HOUR_MS, "audit", 2)]


def test_half_messages_and_timers(stores: Stores) -> None:
    found = consumers.unfinished(stores, 50, 1000)
    assert figures(found) == {
        "half messages committed": 1,
        "half messages rolled back": 1,
        "half messages given up": 0,
        "half messages asked about": 1,
        "half messages open": 2,
    }
    assert rows(found, "Half messages without an end", "topic", "producerGroup", "uniqKey") == [
        ("Paid", "payers", "T2"),
        ("Paid", "payers", "T3"),
    ]
    assert rows(found, "Overdue", "topic", "uniqKey") == [("Later", "D1")]
    assert rows(found, "Timers") == [("Later", 2, 1, 40, 700, 700)]
    assert not found.sound


def test_transactions_of_a_recorded_store(session: SparkSession, captured: Callable[[str], str]) -> None:
    found = consumers.unfinished(Stores.opened(session, [captured("st")]), 50, 5000)
    assert list(figures(found).values()) == [5, 3, 1, 17, 0]
    late = rows(found, "Timers", "topic", "delivered", "waiting")
    assert ("CapDelay", 3, 1) in late and ("%RETRY%CG_retry", 6, 0) in late
    assert found.sound


def test_a_recorded_store_says_what_its_records_and_mq_store_sizes_say(
    session: SparkSession, captured: Callable[[str], str]
) -> None:
    path = captured("st")
    stores, said, messages = Stores.opened(session, [path]), measure(path), list(StoreReader(path).messages())
    counts = {topic: one.messages for topic, one in said.topics.items() if one.messages}
    assert dict(rows(contents.latency(stores, 50, ("topic",)), "By topic", "topic", "messages")) == counts
    dead = consumers.dead_letters(stores, 50, "hour", 1000)
    assert figures(dead) == {
        "dead letters": counts["%DLQ%CG_retry"],
        "retries": sum(count for topic, count in counts.items() if topic.startswith("%RETRY%")),
        "storms": 0,
    }
    kept = contents.retention(stores, 50, (0,), None)
    deletable = said.files[:-1]
    assert rows(kept, "Gone", "files", "bytes") == [(len(deletable), sum(file.record_bytes for file in deletable))]
    unread = {f"{topic}@{group}" for topic, group in rows(kept, "Deleted and not read", "topic", "group")}
    assert unread == set[str]().union(*(file.unread for file in deletable))
    left = [
        (key, queue)
        for key, queues in consumer_offsets(StorePaths(path)).items()
        for queue, offset in queues.items()
        for one in messages
        if (one.topic, one.queue_id) == (key.partition("@")[0], queue) and one.queue_offset >= offset
    ]
    assert figures(consumers.lag(stores, 50, "hour"))["messages not read"] == len(left) > 0
    sends = {
        (one.topic, one.unique_key, one.reconsume_times, one.queue_id, one.store_timestamp)
        for one in messages
        if one.unique_key and topic_kind(one.topic) is not TopicKind.SYSTEM
    }
    again = [key for key, times in Counter(send[:3] for send in sends).items() if times > 1]
    assert figures(contents.duplicates(stores, 50))["keys sent again"] == len(again)


def test_a_key_is_found_by_scanning_where_there_is_no_index(stores: Stores) -> None:
    found = search(stores, 50, "order-0", (), False)
    events = [("stored", "Orders"), ("retry 1", RETRY), ("retry 2", RETRY), ("dead letter", DEAD)]
    assert rows(found, "Timeline", "event", "topic") == events
    assert [row[0] for row in rows(search(stores, 50, "T0", ("Paid",), True), "Timeline", "event")] == [
        "half message",
        "committed",
    ]


def test_the_index_leads_to_what_a_scan_finds(session: SparkSession, captured: Callable[[str], str]) -> None:
    stores = Stores.opened(session, [captured("st")])
    by_index, by_scan = (search(stores, 50, "bad2", (), scan) for scan in (False, True))
    assert rows(by_index, "Timeline") == rows(by_scan, "Timeline")
    assert figures(by_index) == {**figures(by_scan), "places that the index names": 15}
    assert figures(by_scan)["records"] == 15
