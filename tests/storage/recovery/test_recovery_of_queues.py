"""A start repairs or removes queues that are damaged, expired, or of another kind, and puts queues on disk."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
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
from twisted_mq.protocol.layouts.record_codec import decode_message
from twisted_mq.storage.files.checkpoint import Checkpoint
from twisted_mq.storage.queues.queue_table import DELETED_AT_ONCE
from twisted_mq.storage.recovery.recovered_entries import RecoveredEntries

HOLE = "entries after a hole are rewritten from the log"


@pytest.mark.parametrize("killed", [False, True])
def test_hole_of_long_ago_is_filled_although_the_walk_would_begin_behind_it(
    open_store: OpenFileStore, root: Path, killed: bool
) -> None:
    """The hole is in the second of six log files. The other queue reaches the last one."""
    store = open_store()
    put(store, *[message(body=body_of(number)) for number in range(PER_FILE + 15)])
    put(store, *[message(queue_id=1, body=body_of(number)) for number in range(4 * PER_FILE + 5)])
    store.close()
    if killed:
        (root / "abort").touch()
        Checkpoint(str(root / "checkpoint"), START_MS * 2, START_MS * 2).save()
    overwrite(queue_file(root, 2), 5 * 20, bytes(40))
    store.start()
    report = store.recovery_report
    assert (report.scan_start, actions(report, root)) == (4096, [("consumequeue/TopicA/0", PER_FILE + 5, HOLE)])
    assert (bodies(store), bodies(store, 1)) == (list(range(PER_FILE + 15)), list(range(4 * PER_FILE + 5)))


def hole(root: Path, known_topics: dict[str, bool]) -> None:
    overwrite(queue_file(root, 0), 5 * 20, bytes(40))


def odd_file(root: Path, known_topics: dict[str, bool]) -> None:
    os.truncate(queue_file(root, 0), 199)


def other_kind(root: Path, known_topics: dict[str, bool]) -> None:
    known_topics["TopicA"] = True


@pytest.mark.parametrize("damage", [hole, odd_file, other_kind])
def test_before_a_clean_start_removes_entries_its_mark_is_on_disk(
    open_store: OpenFileStore,
    root: Path,
    known_topics: dict[str, bool],
    monkeypatch: pytest.MonkeyPatch,
    damage: Callable[[Path, dict[str, bool]], None],
) -> None:
    store = open_store()
    put(store, *[message(body=body_of(number)) for number in range(8)])
    store.close()
    damage(root, known_topics)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(RecoveredEntries, "take", interrupt)
    with pytest.raises(KeyboardInterrupt):
        store.start()
    path = queue_file(root, 0)
    assert not path.exists() or path.read_bytes()[5 * 20 :] == bytes(5 * 20)
    assert (root / "abort").exists()
    assert Checkpoint.load(str(root / "checkpoint")).logics_msg_timestamp == 0


def test_once_lost_entries_are_on_disk_again_the_checkpoint_says_so(open_store: OpenFileStore, root: Path) -> None:
    store = open_store()
    put(store, *[message(body=body_of(number)) for number in range(8)])
    store.close()
    hole(root, {})
    Checkpoint(str(root / "checkpoint"), START_MS - 1, START_MS - 1).save()
    store.start()
    found = Checkpoint.load(str(root / "checkpoint"))
    assert (found.physic_msg_timestamp, found.logics_msg_timestamp) == (START_MS, START_MS)


def test_entries_behind_the_end_of_the_log_are_dropped_although_the_store_was_closed(
    open_store: OpenFileStore, root: Path
) -> None:
    store = open_store()
    put(store, *[message(body=body_of(number)) for number in range(5)])
    store.close()
    overwrite(log_file(root, 0), 4 * RECORD + 120, b"\xff")
    store.start()
    dropped = f"1 entries dropped that point past the end of the log at {4 * RECORD}"
    assert actions(store.recovery_report, root)[1:] == [("consumequeue/TopicA/0", 4, dropped)]
    assert put(store, message(body=body_of(9)))[0].queue_offset == 4
    assert bodies(store) == [0, 1, 2, 3, 9]


def test_entries_that_are_removed_after_the_start_set_no_mark(open_store: OpenFileStore, root: Path) -> None:
    store = open_store()
    put(store, *[message(body=body_of(number)) for number in range(8)])
    store.close()
    store.start()
    before = Checkpoint.load(str(root / "checkpoint"))
    (queue,) = store._queues
    assert queue.truncate(5) == 3
    assert Checkpoint.load(str(root / "checkpoint")) == before
    assert before.logics_msg_timestamp == START_MS
    store.close()


def test_queue_whose_records_are_all_gone_keeps_its_end(open_store: OpenFileStore, root: Path) -> None:
    store = open_store()
    put(store, *[message(body=body_of(number)) for number in range(5)])
    put(store, *[message(queue_id=1, body=body_of(number)) for number in range(PER_FILE)])
    store.close()
    os.unlink(log_file(root, 0))
    store.start()
    assert actions(store.recovery_report, root) == []
    assert put(store, message())[0].queue_offset == 5


@pytest.mark.parametrize("first_is_wrong", [False, True])
def test_queue_that_leads_to_foreign_records_is_built_anew_from_what_the_log_still_has(
    open_store: OpenFileStore, root: Path, first_is_wrong: bool
) -> None:
    """The log has ten of 30 records of queue 0, and the last entry is wrong. The walk begins behind all of them."""
    store = open_store(mapped_file_size_consume_queue=15 * 20)
    put(store, *[message(body=body_of(number)) for number in range(PER_FILE + 10)])
    put(store, *[message(queue_id=1, body=body_of(number)) for number in range(5 * PER_FILE)])
    store.close()
    os.unlink(log_file(root, 0))
    queue = root / "consumequeue" / "TopicA" / "0"
    os.unlink(queue / f"{0:020d}")
    last = queue / f"{15 * 20:020d}"
    overwrite(last, 14 * 20, (4096 + 15 * RECORD).to_bytes(8, "big"))
    if first_is_wrong:
        overwrite(last, 0, (4096 + 15 * RECORD).to_bytes(8, "big"))
    store.start()
    offset, said = PER_FILE + 9, "points to a wrong record; rebuilt"
    assert actions(store.recovery_report, root) == [("consumequeue/TopicA/0", offset, said)]
    ends = store.min_offset_in_queue("TopicA", 0), store.max_offset_in_queue("TopicA", 0)
    assert ends == (PER_FILE, PER_FILE + 10)
    found = store.get_message("TopicA", 0, PER_FILE, 32, 1 << 20, None)
    assert [decode_message(record).body for record in found.records] == [*map(body_of, range(PER_FILE, PER_FILE + 10))]


def test_queue_is_built_anew_only_if_its_topic_has_another_kind(
    open_store: OpenFileStore, root: Path, known_topics: dict[str, bool]
) -> None:
    known_topics["TopicA"] = True
    store = open_store()
    put(store, *[message(body=body_of(number)) for number in range(3)])
    store.close()
    store.start()
    assert actions(store.recovery_report, root) == []
    store.close()
    known_topics["TopicA"] = False
    store.start()
    said = "TopicA has queues of another kind; the queue is rebuilt from the log"
    assert actions(store.recovery_report, root) == [("batchconsumequeue/TopicA/0", 0, said)]
    assert os.listdir(root / "batchconsumequeue") == []
    assert bodies(store) == [0, 1, 2]


def test_start_puts_on_disk_what_a_kill_may_have_left_in_memory(
    open_store: OpenFileStore, root: Path, tmp_path: Path
) -> None:
    """After a kill that is the log from the beginning of the walk, and the queues. After a close there is nothing."""
    synced: set[str] = set()

    def sync(descriptor: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        synced.add("/".join((path.relative_to(tmp_path).parts[1], path.name)))

    def files(first: int) -> set[str]:
        return {"commitlog/00000000000000008192", *[f"consumequeue/{200 * n:020d}" for n in range(first, 6)]}

    store = open_store(keywords={"sync": sync})
    put(store, *[message(body=body_of(number)) for number in range(2 * PER_FILE + 12)])
    store.close()
    shutil.copytree(root, tmp_path / "killed")
    synced.clear()
    store.start()
    assert synced == set()
    put(store, message())
    store.close()
    assert synced - {"checkpoint/checkpoint"} == files(5)
    (tmp_path / "killed" / "abort").touch()
    Checkpoint(str(tmp_path / "killed" / "checkpoint"), START_MS * 2, START_MS * 2).save()
    synced.clear()
    again = open_store(tmp_path / "killed", keywords={"sync": sync})
    assert again._log.flushed_offset == again.max_physical_offset() == 2 * 4096 + 12 * RECORD
    assert synced - {"checkpoint/checkpoint"} == files(0)


def test_files_of_all_queues_without_a_log_are_gone_before_their_next_message(
    open_store: OpenFileStore, root: Path
) -> None:
    """A running broker deletes the files of few queues at a time."""
    store = open_store()
    put(store, *[message(queue_id=number) for number in range(DELETED_AT_ONCE + 2)])
    store.close()
    shutil.rmtree(root / "commitlog")
    store.start()
    assert os.listdir(root / "consumequeue") == []
    assert put(store, message(queue_id=DELETED_AT_ONCE + 1, body=body_of(7)))[0].queue_offset == 0
    store.close()
    store.start()
    assert bodies(store, DELETED_AT_ONCE + 1) == [7]
