"""Small topics through their consume queues: the rows of a scan, few bytes read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.spark.read_counts import ReadCounts
from tests.spark.stores import StoreWriter
from tests.support.captures import STORES, expected_messages
from twisted_mq.protocol.layouts.queue_entry import FILLER_ENTRY
from twisted_mq.spark.errors import DamagedLog, WrongOption
from twisted_mq.spark.source.options import read_options
from twisted_mq.spark.source.queue_reads import QueueSplit
from twisted_mq.spark.source.store_reader import StoreReader


def rows(path: str, **options: str) -> list[tuple[Any, ...]]:
    names = ("topic", "queueId", "queueOffset", "physicalOffset", "tags", "body")
    reader = StoreReader(read_options({"path": path, **options}), names)
    batches = [batch for split in reader.partitions() for batch in reader.read(split)]
    return sorted((tuple(row.values()) for batch in batches for row in batch.to_pylist()), key=lambda row: row[3])


def mixed(root: Path, count: int = 4000) -> StoreWriter:
    """A log in which every hundredth message is of a small topic."""
    writer = StoreWriter(root, file_size=1 << 18)
    for number in range(count):
        topic = "Small" if number % 100 == 7 else f"Large{number % 3}"
        writer.append(topic, b"x" * (number % 300), {"TAGS": "ab"[number // 100 % 2]}, number // 100 % 4)
    return writer


@pytest.mark.parametrize("store", STORES)
def test_recorded_topics_equal_a_scan(captured: Callable[[str], str], store: str) -> None:
    for topic in sorted({message["topic"] for message in expected_messages(store)}):
        scanned = rows(captured(store), topic=topic)
        assert rows(captured(store), topic=topic, through="queues") == scanned


def test_a_small_topic_is_read_alone(tmp_path: Path, read_counts: ReadCounts) -> None:
    path = mixed(tmp_path / "store").write()
    scanned = rows(path, topic="Small")
    whole = read_counts.take()
    assert rows(path, topic="Small", through="queues") == scanned
    assert len(scanned) == 40
    assert read_counts.of("commitlog") < read_counts.end_search + 40 * 700
    assert whole.total > 40 * 20_000


@pytest.mark.parametrize(
    "options",
    [
        {"topicPattern": "S.*|Large1"},
        {"topic": "Small", "queueId": "1,2"},
        {"topic": "Small", "tags": "b"},
        {"topic": "Small", "startOffset": "100000", "endOffset": "300001"},
        {"topic": "None"},
    ],
    ids=str,
)
def test_selections_equal_a_scan(tmp_path: Path, options: dict[str, str]) -> None:
    path = mixed(tmp_path / "store").write()
    assert rows(path, through="queues", **options) == rows(path, **options)


def test_what_is_not_dispatched_yet_is_sought_in_the_log(tmp_path: Path) -> None:
    writer = mixed(tmp_path / "store", 1000)
    writer.write()
    for number in range(1000, 1300):
        writer.append("Small" if number % 100 == 7 else "Large0", b"late")
    path = writer.write(queues=False)
    found = rows(path, topic="Small", through="queues")
    assert found == rows(path, topic="Small")
    assert len(found) == 13


def test_fillers_and_entries_that_lead_nowhere(writer: StoreWriter) -> None:
    for _ in range(20):
        writer.append("Small")
        writer.append("Large")
    path = writer.write()
    queue = Path(path, "consumequeue", "Small", "0", f"{0:020d}")
    entries = bytearray(queue.read_bytes())
    entries[:20] = FILLER_ENTRY
    entries[5 * 20 + 7] ^= 1
    queue.write_bytes(entries)
    assert [row[2] for row in rows(path, topic="Small", through="queues")] == [1, 2, 3, 4, *range(6, 20)]
    with pytest.raises(DamagedLog, match="a queue entry points here: magic"):
        rows(path, topic="Small", through="queues", failOnDamage="true")


def test_it_needs_topics_and_queues(writer: StoreWriter) -> None:
    writer.append()
    path = writer.write(queues=False)
    with pytest.raises(WrongOption, match="has no consume queues; read it through=log"):
        rows(path, topic="Orders", through="queues")
    with pytest.raises(WrongOption, match="set topic or topicPattern"):
        rows(path, through="queues")


def test_large_queues_give_several_tasks(writer: StoreWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twisted_mq.spark.source.queue_reads.ENTRIES_A_TASK", 7)
    for _ in range(30):
        writer.append()
    reader = StoreReader(read_options({"path": writer.write(), "topic": "Orders", "through": "queues"}), ["topic"])
    splits = [split for split in reader.partitions() if isinstance(split, QueueSplit)]
    assert [(split.part.begin, split.part.end) for split in splits] == [
        (0, 7), (7, 14), (14, 21), (21, 28), (28, 35), (35, 40),
    ]  # fmt: skip
    assert len(rows(str(writer.root), topic="Orders", through="queues")) == 30


def test_a_topic_of_a_thousandth_needs_a_twentieth_of_the_bytes(tmp_path: Path, read_counts: ReadCounts) -> None:
    """All that is read of the log counts, the search for its end too."""
    writer = StoreWriter(tmp_path / "store", file_size=1 << 24)
    for number in range(10_000):
        writer.append("Small" if number % 1000 == 500 else "Large", b"x" * 4000)
    path = writer.write()
    scanned = rows(path, topic="Small")
    whole = read_counts.take()
    assert rows(path, topic="Small", through="queues") == scanned
    assert len(scanned) == 10
    assert whole.total > writer.position
    assert read_counts.total * 20 <= whole.total
