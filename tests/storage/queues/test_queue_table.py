"""The queues of a store by topic and queue id."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.storage.conftest import config
from twisted_mq.storage.errors import IllegalTopicName
from twisted_mq.storage.queues.queue_table import QueueTable


@pytest.fixture
def table(tmp_path: Path) -> QueueTable:
    return QueueTable(config(tmp_path))


def test_queues_are_found_and_listed(table: QueueTable) -> None:
    made = [table.make("B", 0), table.make("A", 10), table.make("A", 2)]
    assert (table.get("A", 10), table.get("A", 3)) == (made[1], None)
    assert (table.topics(), table.queue_ids("A"), table.queue_ids("C")) == (["A", "B"], [2, 10], [])
    assert list(table) == made


def test_new_queue_leaves_no_trace_on_disk(table: QueueTable, tmp_path: Path) -> None:
    table.make("A", 0)
    assert os.listdir(tmp_path) == []


def test_names_that_are_no_topics_are_refused(table: QueueTable) -> None:
    with pytest.raises(IllegalTopicName):
        table.make("../A", 0)
    assert table.topics() == []


def test_removing_deletes_files_and_empty_directories(table: QueueTable, tmp_path: Path) -> None:
    for topic, queue_id in (("A", 0), ("A", 1), ("B", 0)):
        table.make(topic, queue_id).append_at(0, 0, 100, 0)
    (tmp_path / "consumequeue" / "B" / "note").write_bytes(b"")
    removed = table.remove({"A", "B", "C"})
    assert [(queue.topic, queue.queue_id) for queue in removed] == [("A", 0), ("A", 1), ("B", 0)]
    assert (table.topics(), os.listdir(tmp_path / "consumequeue")) == ([], ["B"])
    assert os.listdir(tmp_path / "consumequeue" / "B") == ["note"]
