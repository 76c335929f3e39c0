"""What a start does to queues that are damaged, expired, or of another kind, and what it puts on disk."""

from __future__ import annotations

import os
import shutil
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
from twisted_mq.storage.files.checkpoint import Checkpoint
from twisted_mq.storage.recovery.recovered_entries import RecoveredEntries

HOLE = "entries after a hole are rewritten from the log"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "store"


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


def test_before_a_clean_start_removes_entries_its_mark_is_on_disk(
    open_store: OpenFileStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store()
    put(store, *[message(body=body_of(number)) for number in range(8)])
    store.close()
    overwrite(queue_file(root, 0), 5 * 20, bytes(40))

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(RecoveredEntries, "take", interrupt)
    with pytest.raises(KeyboardInterrupt):
        store.start()
    assert queue_file(root, 0).read_bytes()[5 * 20 :] == bytes(5 * 20)
    assert (root / "abort").exists()
    assert Checkpoint.load(str(root / "checkpoint")).logics_msg_timestamp == 0


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
