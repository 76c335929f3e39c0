"""The queues of a store by topic and queue id."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.storage.conftest import config
from twisted_mq.storage.errors import IllegalTopicName
from twisted_mq.storage.queues.queue_table import DELETED_AT_ONCE, QueueTable


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


def filled(table: QueueTable, topic: str, count: int) -> None:
    for queue_id in range(count):
        table.make(topic, queue_id).append_at(0, 0, 100, 0)


def test_many_queues_are_gone_at_once_and_their_files_by_and_by(table: QueueTable, tmp_path: Path) -> None:
    count = 2 * DELETED_AT_ONCE + 1
    filled(table, "A", count)
    directory = tmp_path / "consumequeue" / "A"
    assert len(table.remove({"A"})) == count
    assert (table.topics(), len(os.listdir(directory))) == ([], DELETED_AT_ONCE + 1)
    assert [table.delete_more(), len(os.listdir(directory))] == [True, 1]
    assert [table.delete_more(), directory.exists(), table.delete_more()] == [False, False, False]


def test_a_queue_made_anew_has_none_of_the_files_that_are_still_to_go(table: QueueTable, tmp_path: Path) -> None:
    filled(table, "A", DELETED_AT_ONCE + 2)
    table.remove({"A"})
    again = table.make("A", DELETED_AT_ONCE + 1)
    again.append_at(0, 500, 100, 7)
    while table.delete_more():
        pass
    assert os.listdir(tmp_path / "consumequeue" / "A") == [str(DELETED_AT_ONCE + 1)]
    assert (again.max_offset, again.entry(0)) == (1, (500, 100, 7))


def test_files_that_cannot_be_deleted_are_tried_again(table: QueueTable, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(table, "A", 2)
    with monkeypatch.context() as broken, pytest.raises(PermissionError):
        broken.setattr(os, "unlink", lambda path: (_ for _ in ()).throw(PermissionError(path)))
        table.remove({"A"})
    assert (table.topics(), table.delete_more()) == ([], False)
