"""The entries that a start writes or corrects: which records are taken at once, and what a start notes of them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection
from pathlib import Path

import pytest

from tests.storage.conftest import START_MS, OpenFileStore, message, put
from tests.storage.recovery.test_recovery import (
    PER_FILE,
    RECORD,
    actions,
    bodies,
    body_of,
    log_file,
    overwrite,
    queue_file,
)
from twisted_mq.protocol.layouts.record_codec import DispatchFields
from twisted_mq.storage.files.checkpoint import Checkpoint
from twisted_mq.storage.queues.consume_queue import ConsumeQueue
from twisted_mq.storage.recovery.recovered_entries import RecoveredEntries


@pytest.fixture
def one_by_one(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Returns the physical offsets of the records that are decoded whole, which takes many times as long."""
    offsets: list[int] = []
    real = RecoveredEntries.take

    def take(self: RecoveredEntries, record: DispatchFields, only: Collection[tuple[str, int]] | None) -> None:
        offsets.append(record.physical_offset)
        real(self, record, only)

    monkeypatch.setattr(RecoveredEntries, "take", take)
    return offsets


def left(open_store: OpenFileStore, queue_ids: Collection[int], *, killed: bool = False) -> None:
    """Leave a store with a message for each queue id in turn."""
    store = open_store()
    put(store, *[message(queue_id=queue_id, body=body_of(number)) for number, queue_id in enumerate(queue_ids)])
    store.close()
    if killed:
        Path(store.config.paths.abort).touch()


def test_records_that_follow_in_their_queues_are_taken_at_once(
    open_store: OpenFileStore, one_by_one: list[int]
) -> None:
    count = PER_FILE + 1
    left(open_store, [number % 2 for number in range(count)], killed=True)
    report = open_store().recovery_report
    assert (report.clean, report.records_checked, report.entries_written) == (False, count, count)
    assert one_by_one == []


def test_records_that_have_their_entries_are_taken_at_once_up_to_the_first_without(
    open_store: OpenFileStore, root: Path, one_by_one: list[int]
) -> None:
    left(open_store, [1, *[0] * 8, 1])
    overwrite(queue_file(root, 0, queue_id=1), 20, bytes(20))
    store = open_store(recovery_scan_bytes=8 * RECORD)
    report = store.recovery_report
    assert (report.scan_start, report.records_checked, report.entries_written) == (RECORD, 9, 1)
    assert one_by_one == [9 * RECORD]
    assert bodies(store, 1) == [0, 9]


@pytest.mark.parametrize("lost", [True, False], ids=["one by one", "at once"])
def test_the_last_record_is_noted(open_store: OpenFileStore, root: Path, one_by_one: list[int], lost: bool) -> None:
    left(open_store, [0] * 10, killed=True)
    if lost:
        shutil.rmtree(root / "consumequeue")
    store = open_store()
    assert len(one_by_one) == (10 if lost else 0)
    assert (store.recovery_report.records_checked, store.recovery_report.entries_written) == (10, 10)
    assert (store._checkpoint.confirm_physical_offset, store._log.last_record_offset) == (9 * RECORD, 9 * RECORD)
    assert store._log.last_store_timestamp == START_MS


def test_wrong_first_entry_is_put_right(open_store: OpenFileStore, root: Path) -> None:
    left(open_store, [0] * 3)
    overwrite(queue_file(root, 0), 12, (9).to_bytes(8, "big"))
    store = open_store()
    said = f"was (0, {RECORD}, 9), the record says (0, {RECORD}, 0); put right"
    assert actions(store.recovery_report, root) == [("consumequeue/TopicA/0", 0, said)]


def test_start_after_a_kill_needs_no_other_mark_to_write_entries(open_store: OpenFileStore, root: Path) -> None:
    left(open_store, [0] * 3, killed=True)
    known = Checkpoint(str(root / "checkpoint"), START_MS - 1, START_MS - 1)
    known.save()
    assert open_store().recovery_report.entries_written == 3
    assert Checkpoint.load(known.path) == known


def test_before_a_clean_start_writes_an_entry_its_mark_is_on_disk(
    open_store: OpenFileStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left(open_store, [0] * 3)
    shutil.rmtree(root / "consumequeue")

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ConsumeQueue, "append_at", interrupt)
    with pytest.raises(KeyboardInterrupt):
        open_store()
    assert (root / "abort").exists()
    assert Checkpoint.load(str(root / "checkpoint")).logics_msg_timestamp == 0


@pytest.mark.parametrize("claimed", [1, 2])
def test_record_with_a_damaged_queue_offset_takes_no_other_records_entry(
    open_store: OpenFileStore, root: Path, claimed: int
) -> None:
    left(open_store, [0] * 5, killed=True)
    overwrite(log_file(root, 0), 3 * RECORD + 20, claimed.to_bytes(8, "big"))
    store = open_store()
    said = f"no entry for the record at {3 * RECORD}, another record is there"
    assert ("consumequeue/TopicA/0", claimed, said) in actions(store.recovery_report, root)
    assert set(bodies(store)) == {0, 1, 2, 4}
    store.close()


def test_record_with_a_damaged_queue_offset_takes_no_filler(open_store: OpenFileStore, root: Path) -> None:
    """Queue files have 15 entries: the first record of the log has offset 20, so the offsets from 15 on are fillers."""
    sizes = {"mapped_file_size_consume_queue": 15 * 20}
    store = open_store(**sizes)
    put(store, *[message(body=body_of(number)) for number in range(2 * PER_FILE)])
    store.close()
    shutil.rmtree(root / "consumequeue")
    os.unlink(log_file(root, 0))
    overwrite(log_file(root, 1), (PER_FILE - 1) * RECORD + 20, (17).to_bytes(8, "big"))
    store = open_store(**sizes)
    assert actions(store.recovery_report, root) == []
    ends = store.min_offset_in_queue("TopicA", 0), store.max_offset_in_queue("TopicA", 0)
    assert ends == (PER_FILE, 2 * PER_FILE - 1)
    store.close()
