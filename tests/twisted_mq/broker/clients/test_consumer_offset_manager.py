"""No committed offset is behind the end of its queue, wherever it comes from."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from tests.support.broker import MemoryTable
from twisted_mq.broker.clients.consumer_offset_manager import ConsumerOffsetManager
from twisted_mq.storage.tables.config_tables import ConsumerOffsetTable


class Queues:
    """The ends of the queues of topic T."""

    def __init__(self, *ends: int) -> None:
        self.ends = list(ends)

    def end_of(self, topic: str, queue_id: int) -> int:
        return self.ends[queue_id] if topic == "T" and queue_id < len(self.ends) else 0


def manager(queues: Queues, **offsets: dict[int, int]) -> ConsumerOffsetManager:
    table = MemoryTable(offsets={f"T@{group}": row for group, row in offsets.items()})
    return ConsumerOffsetManager(table, table.save, queues.end_of)


def test_log_that_lost_its_end_takes_no_offset_of_it_into_the_next_messages(tmp_path: Path) -> None:
    """The power was cut: the table is on disk, the log's end is not. Another power cut must not bring it back, in no copy."""
    path = str(tmp_path / "consumerOffset.json")
    table = ConsumerOffsetTable(path)
    for offset in (24, 25):
        table.offsets = {"T@G": {0: offset, 1: 3}, "gone@G": {0: 7}}
        table.save()
    restarted = ConsumerOffsetTable(path)
    restarted.load()
    queues = Queues(22, 4)
    ConsumerOffsetManager(restarted, restarted.save, queues.end_of)
    for present in (path, path + ".bak"):
        found = ConsumerOffsetTable(present)
        found.load()
        assert found.offsets == {"T@G": {0: 22, 1: 3}, "gone@G": {0: 0}}


def test_table_that_fits_its_log_is_not_written(tmp_path: Path) -> None:
    path = str(tmp_path / "consumerOffset.json")
    table = ConsumerOffsetTable(path)
    table.offsets = {"T@G": {0: 22}}
    ConsumerOffsetManager(table, table.save, Queues(22).end_of)
    assert not os.path.exists(path)


def test_what_is_lowered_is_told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    manager(Queues(22), G={0: 25})
    assert [one.getMessage() for one in caplog.records] == [
        "consumer offset lowered to the end of its queue: group=G topic=T queue=0 from=25 to=22"
    ]


def test_commit_of_what_the_log_lost_counts_up_to_its_end(caplog: pytest.LogCaptureFixture) -> None:
    """A consumer from before the power cut commits its consumed offset again, each time; it is logged once."""
    offsets = manager(Queues(22), G={0: 20})
    caplog.set_level(logging.WARNING)
    for _ in range(3):
        offsets.commit("G", "T", 0, 25)
    assert (offsets.query("G", "T", 0), len(caplog.records)) == (22, 1)


def test_reset_and_copy_of_a_master_end_with_the_queue() -> None:
    queues = Queues(22, 9)
    offsets = manager(queues)
    offsets.reset("G", "T", 0, 30)
    assert (offsets.query("G", "T", 0), offsets.take_reset("G", "T", 0)) == (22, 22)
    assert not offsets.merge({"T@G": {0: 25, 1: 9}}, None)
    assert offsets.offsets == {"T@G": {0: 22, 1: 9}}
    queues.ends = [25, 9]
    assert offsets.merge({"T@G": {0: 25, 1: 9}}, None)
    assert offsets.offsets == {"T@G": {0: 25, 1: 9}}
