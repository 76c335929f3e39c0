"""Expired files, refusals of a full disk, and their effects on readers."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.storage.conftest import START_MS, OpenFileStore, SettableClock, config, message, put
from tests.support.batches import batched
from twisted_mq.storage.index.index_service import IndexService
from twisted_mq.storage.interfaces import GetStatus, PutStatus
from twisted_mq.storage.message_store import FileMessageStore
from twisted_mq.storage.retention import (
    HOUR_MS,
    QUEUES_A_STEP,
    DiskUsage,
    Needed,
    Space,
    expired_count,
    is_hour_to_delete,
    remove_file,
    space,
)

EMPTY = DiskUsage(0.1, 0.1)
NEVER = {"delete_when": ""}


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (DiskUsage(0.75, 0.75), Space.PLENTY),
        (DiskUsage(0.76, 0.1), Space.SCARCE),
        (DiskUsage(0.1, 0.76), Space.SCARCE),
        (DiskUsage(-1.0, 0.1), Space.SCARCE),
        (DiskUsage(0.85, 0.1), Space.SCARCE),
        (DiskUsage(0.86, 0.1), Space.CRITICAL),
        (DiskUsage(0.1, 0.90), Space.CRITICAL),
        (DiskUsage(0.1, 0.91), Space.FULL),
    ],
)
def test_fuller_disk_decides(usage: DiskUsage, expected: Space, tmp_path: Path) -> None:
    assert space(config(tmp_path), usage) is expected


def test_limits_are_taken_within_apaches_bounds(tmp_path: Path) -> None:
    high = config(tmp_path, disk_space_warning_level_ratio=99, disk_space_clean_forcibly_ratio=99)
    assert [space(high, DiskUsage(ratio, 0)) for ratio in (0.86, 0.91)] == [Space.CRITICAL, Space.FULL]
    low = config(tmp_path, disk_space_warning_level_ratio=1, disk_space_clean_forcibly_ratio=1)
    assert [space(low, DiskUsage(ratio, 0)) for ratio in (0.3, 0.31, 0.36)] == [
        Space.PLENTY,
        Space.CRITICAL,
        Space.FULL,
    ]


def test_hours_to_delete() -> None:
    assert [hour for hour in range(24) if is_hour_to_delete("04;16; 9", hour)] == [4, 9, 16]
    assert not is_hour_to_delete("", 4)


def test_hours_that_are_none_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="delete_when must be hours from 0 to 23"):
        config(tmp_path, delete_when="04;24")


@pytest.mark.parametrize(
    ("times", "at_once", "most", "count"),
    [
        ([0, 0, 0], False, 10, 2),
        ([0, 95, 0], False, 10, 1),
        ([95, 0, 0], False, 10, 0),
        ([95, 95, 95], True, 10, 2),
        ([0, 0, 0, 0], False, 2, 2),
        ([0], True, 10, 0),
        ([], True, 10, 0),
    ],
)
def test_oldest_files_expire_but_never_the_last(times: list[int], at_once: bool, most: int, count: int) -> None:
    assert expired_count(times, 100, 10, at_once=at_once, most=most) == count


# On a store


def filled(store: FileMessageStore, files: int = 5, **fields: Any) -> None:
    """Fill `files` log files (20 records each), the last one partly."""
    put(store, *[message(body=bytes(100), **fields) for _ in range(20 * files - 10)])


def log_names(root: Path) -> list[int]:
    return sorted(int(path.name) for path in (root / "store" / "commitlog").iterdir())


def age(root: Path, hours: dict[int, float]) -> None:
    for offset, old in hours.items():
        stamp = (START_MS - old * HOUR_MS) / 1000
        os.utime(root / "store" / "commitlog" / f"{offset:020d}", (stamp, stamp))


def turn(store: FileMessageStore, usage: DiskUsage = EMPTY, hour: int = 4, now: int = START_MS) -> list[str]:
    """Run one whole turn and return the names of removed files."""
    paths = store.retention.expire_log(now, hour, usage)
    paths += [path for step in store.retention.trim() for path in step]
    for path in paths:
        remove_file(path)
    return [os.path.relpath(path, store.config.store_path_root_dir) for path in paths]


def test_expired_files_go_at_their_hour_with_their_queue_files(open_store: OpenFileStore, tmp_path: Path) -> None:
    store = open_store()
    filled(store)
    age(tmp_path, {0: 73, 4096: 72, 8192: 71, 12288: 100, 16384: 100})
    assert turn(store, hour=5) == []
    removed = turn(store)
    assert removed[:2] == ["commitlog/" + "0" * 20, "commitlog/" + f"{4096:020d}"]
    assert removed[2:] == [f"consumequeue/TopicA/0/{offset:020d}" for offset in (0, 200, 400, 600)]
    assert log_names(tmp_path) == [8192, 12288, 16384]
    assert (store.min_physical_offset(), store.min_offset_in_queue("TopicA", 0)) == (8192, 40)
    assert turn(store) == []


def needed(store: FileMessageStore, offset: int) -> Needed:
    return Needed("TopicA", 0, offset, store.queue_entries("TopicA", 0, offset, 1)[0][0])


def test_files_behind_a_message_that_is_needed_stay(open_store: OpenFileStore, tmp_path: Path) -> None:
    store = open_store()
    filled(store)
    age(tmp_path, {0: 100, 4096: 100, 8192: 100})
    for offset, first in ((19, 0), (20, 4096), (59, 8192)):
        store.retention.expire_log(START_MS, 4, EMPTY, [needed(store, 70), needed(store, offset)])
        assert store.min_physical_offset() == first
    assert store.deleted_unconsumed() == {}


def test_full_disk_deletes_what_is_needed_and_says_so(
    open_store: OpenFileStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = open_store()
    filled(store)
    store.retention.expire_log(START_MS, 12, DiskUsage(0.88, 0.1), [needed(store, 15), needed(store, 85)])
    assert store.min_physical_offset() == 16384
    assert store.deleted_unconsumed() == {("TopicA", 0): 65}
    found = store.get_message("TopicA", 0, 15, 32, 1 << 20, None)
    assert (found.status, found.next_begin_offset) == (GetStatus.OFFSET_TOO_SMALL, 80), "before the queues are trimmed"
    (line,) = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert line.endswith("deleted: topic=TopicA queue=0 first=15 messages=65")


def test_reader_of_an_expired_offset_is_told_where_to_go_on(open_store: OpenFileStore, tmp_path: Path) -> None:
    store = open_store()
    filled(store)
    age(tmp_path, {0: 73})
    held = store.get_message("TopicA", 0, 0, 32, 1 << 20, None)
    before = [bytes(record) for record in held.records]
    turn(store)
    assert [bytes(record) for record in held.records] == before
    found = store.get_message("TopicA", 0, 3, 32, 1 << 20, None)
    assert (found.status, found.next_begin_offset, found.min_offset) == (GetStatus.OFFSET_TOO_SMALL, 20, 20)
    assert store.get_message("TopicA", 0, 20, 32, 1 << 20, None).status is GetStatus.FOUND
    assert store.look_message(0) is None
    assert store.earliest_message_time("TopicA", 0) == START_MS


def test_read_between_log_and_queue_trimming_passes_over_what_is_gone(
    open_store: OpenFileStore, tmp_path: Path
) -> None:
    store = open_store()
    filled(store)
    age(tmp_path, {0: 73})
    for path in store.retention.expire_log(START_MS, 4, EMPTY):
        remove_file(path)
    found = store.get_message("TopicA", 0, 3, 32, 1 << 20, None)
    assert (found.status, found.next_begin_offset) == (GetStatus.MESSAGE_WAS_REMOVING, 10)


def test_queue_without_a_living_message_keeps_its_offsets(open_store: OpenFileStore, tmp_path: Path) -> None:
    store = open_store()
    put(store, *[message(queue_id=7) for _ in range(15)])
    filled(store)
    age(tmp_path, {0: 73, 4096: 73})
    turn(store)
    assert (store.min_offset_in_queue("TopicA", 7), store.max_offset_in_queue("TopicA", 7)) == (15, 15)
    found = store.get_message("TopicA", 7, 15, 32, 1 << 20, None)
    assert (found.status, found.next_begin_offset) == (GetStatus.OFFSET_OVERFLOW_ONE, 15)
    (result,) = put(store, message(queue_id=7))
    assert result.queue_offset == 15
    assert store.get_message("TopicA", 7, 15, 32, 1 << 20, None).status is GetStatus.FOUND


def test_trimmed_store_opens_again_clean_and_after_a_kill(open_store: OpenFileStore, tmp_path: Path) -> None:
    store = open_store()
    filled(store)
    age(tmp_path, {0: 73, 4096: 73})
    turn(store)
    store.close()
    again = open_store()
    assert [str(action) for action in again.recovery_report.actions] == []
    assert (again.min_physical_offset(), again.min_offset_in_queue("TopicA", 0)) == (8192, 40)
    again.close()
    (tmp_path / "store" / "abort").write_text("1")
    killed = open_store()
    assert (killed.min_offset_in_queue("TopicA", 0), killed.max_offset_in_queue("TopicA", 0)) == (40, 90)


def test_log_file_that_came_back_after_a_power_cut_is_no_damage(open_store: OpenFileStore, tmp_path: Path) -> None:
    """Queues were trimmed, the log's oldest file was not removed: its records are in no queue until it expires again."""
    store = open_store()
    filled(store)
    age(tmp_path, {0: 73})
    store.retention.expire_log(START_MS, 4, EMPTY)
    for step in store.retention.trim():
        for path in step:
            remove_file(path)
    store.close()
    again = open_store()
    assert (again.min_physical_offset(), again.min_offset_in_queue("TopicA", 0)) == (0, 20)


def test_scarce_disk_lets_expired_files_go_at_any_hour(open_store: OpenFileStore, tmp_path: Path) -> None:
    store = open_store(**NEVER)
    filled(store)
    age(tmp_path, {0: 73})
    turn(store, DiskUsage(0.8, 0.1), hour=5)
    assert log_names(tmp_path) == [4096, 8192, 12288, 16384]
    assert turn(store, DiskUsage(0.8, 0.1), hour=5) == []


def test_critical_disk_lets_young_files_go_in_portions(open_store: OpenFileStore, tmp_path: Path) -> None:
    store = open_store(**NEVER, delete_file_batch_max=2)
    filled(store)
    turn(store, DiskUsage(0.86, 0.1))
    assert log_names(tmp_path) == [8192, 12288, 16384]
    turn(store, DiskUsage(0.86, 0.1))
    turn(store, DiskUsage(0.86, 0.1))
    assert log_names(tmp_path) == [16384]
    assert put(store, message())[0].status is PutStatus.PUT_OK


def test_young_files_stay_where_forcing_is_switched_off(open_store: OpenFileStore, tmp_path: Path) -> None:
    store = open_store(**NEVER, clean_file_forcibly_enable=False)
    filled(store)
    assert turn(store, DiskUsage(0.95, 0.1)) == []


def test_full_disk_refuses_until_it_has_space_again(open_store: OpenFileStore, tmp_path: Path) -> None:
    store = open_store(**NEVER)
    filled(store, 1)
    end = store.max_physical_offset()
    turn(store, DiskUsage(0.1, 0.95))
    refused = [
        store.put_message(message()),
        store.put_message(message("Other")),
        store.put_messages(batched([message(), message()])),
    ]
    assert [result.status for result in refused] == [PutStatus.SERVICE_NOT_AVAILABLE] * 3
    store.dispatch()
    assert store.max_physical_offset() == end
    assert store.get_message("TopicA", 0, 0, 32, 1 << 20, None).status is GetStatus.FOUND
    turn(store, DiskUsage(0.87, 0.1))
    assert [result.queue_offset for result in put(store, message(), message("Other"))] == [10, 0]


def test_request_by_hand_deletes_at_any_hour_for_twenty_turns(open_store: OpenFileStore, tmp_path: Path) -> None:
    store = open_store(**NEVER)
    filled(store)
    age(tmp_path, {0: 73})
    assert turn(store) == []
    store.delete_expired_log()
    assert turn(store) != []
    for _ in range(19):
        turn(store)
    age(tmp_path, {4096: 73})
    assert turn(store) == []


def test_queues_that_lead_nowhere_are_deleted_by_hand(open_store: OpenFileStore, tmp_path: Path) -> None:
    store = open_store(delete_when="04")
    put(store, message("Old"), message("Old", 1), message("SCHEDULE_TOPIC_XXXX"))
    filled(store)
    put(store, message("Old", 1))
    age(tmp_path, {0: 73})
    turn(store)
    assert store.clean_expired_queues() == 1
    assert (store.queue_ids("Old"), store.topics()) == ([1], ["Old", "SCHEDULE_TOPIC_XXXX", "TopicA"])
    assert sorted(os.listdir(tmp_path / "store" / "consumequeue" / "Old")) == ["1"]
    assert store.clean_expired_queues() == 0


def test_unused_topics_are_deleted_by_hand(any_store: Any) -> None:
    put(any_store, message("A"), message("B"), message("rmq_sys_x"), message("%LMQ%q"))
    assert any_store.clean_unused_topics({"B"}) == 1
    assert any_store.topics() == ["%LMQ%q", "B", "rmq_sys_x"]
    assert any_store.clean_expired_queues() == 0
    any_store.delete_expired_log()


def test_file_that_will_not_go_is_tried_again_later(open_store: OpenFileStore, clock: SettableClock) -> None:
    retention = open_store().retention
    assert retention.hanged_files(START_MS) == []
    retention.could_not_remove(["a", "b"], START_MS)
    assert retention.hanged_files(START_MS + 120_000) == []
    assert retention.hanged_files(START_MS + 120_001) == ["a", "b"]
    assert retention.hanged_files(START_MS + 240_003) == []


def test_removing_a_file_twice_is_no_error_but_a_refusal_is(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x")
    remove_file(str(path))
    remove_file(str(path))
    with pytest.raises(OSError) as error:
        remove_file(str(tmp_path))
    assert error.value.errno in (errno.EISDIR, errno.EPERM)


def test_index_is_trimmed_to_the_same_minimum(
    open_store: OpenFileStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    minima: list[int] = []
    monkeypatch.setattr(IndexService, "trim", lambda self, minimum: minima.append(minimum) or [])
    store = open_store()
    filled(store)
    age(tmp_path, {0: 73})
    turn(store)
    turn(store)
    assert minima == [4096]


def test_many_queues_are_trimmed_in_steps(open_store: OpenFileStore, tmp_path: Path) -> None:
    store = open_store(mapped_file_size_commit_log=1 << 17)
    for queue_id in range(520):
        put(store, message(queue_id=queue_id, body=bytes(400)))
    os.utime(tmp_path / "store" / "commitlog" / ("0" * 20), (0, 0))
    store.retention.expire_log(START_MS, 4, EMPTY)
    assert list(store.retention.trim()) == [[]] * (520 // QUEUES_A_STEP)


def test_changed_limits_hold_from_the_next_turn_on(open_store: OpenFileStore, tmp_path: Path) -> None:
    store = open_store()
    filled(store)
    age(tmp_path, {0: 2})
    assert turn(store) == []
    store.configure(attrs.evolve(store.config, file_reserved_time=1))
    assert turn(store)[0] == "commitlog/" + "0" * 20
