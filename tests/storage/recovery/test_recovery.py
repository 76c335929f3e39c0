"""Repairs at a start: crashes, torn tails, damage in log, queues and checkpoint."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.storage.conftest import START_MS, OpenFileStore, SettableClock, message, put
from twisted_mq.protocol.layouts.record_codec import decode_message
from twisted_mq.storage.check import check_store
from twisted_mq.storage.errors import MissingLogFile, WrongFileSize
from twisted_mq.storage.files.checkpoint import Checkpoint
from twisted_mq.storage.interfaces import GetStatus
from twisted_mq.storage.message_store import FileMessageStore
from twisted_mq.storage.recovery.recovery_report import RecoveryReport

RECORD = 91 + 6 + 100
"""Bytes of a record with a body of 100 in TopicA."""
PER_FILE = 4096 // RECORD


def body_of(number: int) -> bytes:
    return bytes([number]) * 100


def bodies(store: FileMessageStore, queue_id: int = 0) -> list[int]:
    """The first byte of every body that pulls give."""
    found: list[int] = []
    offset = 0
    while (result := store.get_message("TopicA", queue_id, offset, 32, 1 << 20, None)).status is GetStatus.FOUND:
        found += [decode_message(record).body[0] for record in result.records]
        offset = result.next_begin_offset
    return found


def actions(report: RecoveryReport, root: Path) -> list[tuple[str, int, str]]:
    return [(str(Path(one.path).relative_to(root)), one.offset, one.done) for one in report.actions]


@pytest.fixture
def crash(open_store: OpenFileStore, tmp_path: Path) -> Callable[..., Path]:
    """A copy of a store's directory, taken while the store was open with `count` messages in it."""

    def crash_one(count: int, **fields: Any) -> Path:
        store = open_store(tmp_path / "living", **fields)
        put(store, *[message(body=body_of(number)) for number in range(count)])
        copy = tmp_path / "crashed"
        shutil.copytree(tmp_path / "living", copy)
        return copy

    return crash_one


def overwrite(path: Path, position: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        file.write(data)


def log_file(root: Path, number: int) -> Path:
    return root / "commitlog" / f"{number * 4096:020d}"


def queue_file(root: Path, number: int, queue_id: int = 0) -> Path:
    return root / "consumequeue" / "TopicA" / str(queue_id) / f"{number * 200:020d}"


def test_clean_start_finds_everything(open_store: OpenFileStore, tmp_path: Path) -> None:
    store = open_store()
    put(store, *[message(body=body_of(number)) for number in range(50)])
    end = store.max_physical_offset()
    store.close()
    assert not (tmp_path / "store" / "abort").exists()
    store.start()
    assert (tmp_path / "store" / "abort").exists()
    report = store.recovery_report
    assert (report.clean, report.entries_written, report.actions, report.end_offset) == (True, 0, [], end)
    assert (bodies(store), store.max_physical_offset()) == (list(range(50)), end)
    assert put(store, message())[0].queue_offset == 50


def test_clean_start_walks_through_the_last_three_files(open_store: OpenFileStore) -> None:
    store = open_store()
    put(store, *[message(body=body_of(number)) for number in range(5 * PER_FILE)])
    store.close()
    store.start()
    assert (store.recovery_report.scan_start, store.recovery_report.records_checked) == (2 * 4096, 3 * PER_FILE)


def test_clean_start_walks_no_further_than_allowed(open_store: OpenFileStore) -> None:
    store = open_store(recovery_scan_bytes=10 * RECORD)
    put(store, *[message(queue_id=number % 3, body=body_of(number)) for number in range(18)])
    store.close()
    store.start()
    report = store.recovery_report
    assert (report.scan_start, report.records_checked, report.actions) == (8 * RECORD, 10, [])


def test_unclean_start_walks_no_further_than_the_checkpoint_demands(
    open_store: OpenFileStore, clock: SettableClock, tmp_path: Path
) -> None:
    store = open_store(tmp_path / "living")
    for number in range(18):
        put(store, message(queue_id=number % 3, body=body_of(number)))
        clock.now += 1000
    shutil.copytree(tmp_path / "living", tmp_path / "crashed")
    covered = START_MS + 7500 + 3000
    Checkpoint(str(tmp_path / "crashed" / "checkpoint"), covered, covered).save()
    again = open_store(tmp_path / "crashed", recovery_scan_bytes=RECORD)
    report = again.recovery_report
    assert (report.scan_start, report.records_checked, report.actions) == (7 * RECORD, 11, [])
    assert bodies(again, 1) == [1, 4, 7, 10, 13, 16]


@pytest.mark.parametrize("abort", [True, False], ids=["unclean", "clean"])
def test_a_start_reads_no_more_of_a_larger_store(
    open_store: OpenFileStore, clock: SettableClock, tmp_path: Path, abort: bool
) -> None:
    """The same number of records must be replayed after 4 and after 20 files, so a start walks through as many."""
    walked = {}
    for files in (4, 20):
        store = open_store(tmp_path / f"living{files}")
        for number in range(files * PER_FILE):
            put(store, message(queue_id=number % 3, body=body_of(number % 256)))
            clock.now += 1000
        covered = clock.now - 5000
        root = tmp_path / f"left{files}"
        if not abort:
            store.close()
        shutil.copytree(tmp_path / f"living{files}", root)
        Checkpoint(str(root / "checkpoint"), covered, covered).save()
        again = open_store(root, recovery_scan_bytes=12 * RECORD)
        report = again.recovery_report
        walked[files] = (report.clean, report.records_checked, report.entries_written)
        assert again.max_offset_in_queue("TopicA", 0) == -(-files * PER_FILE // 3)
    assert walked[4] == walked[20]
    assert walked[4][1] < PER_FILE


def test_unclosed_store_keeps_every_dispatched_message(crash: Any, open_store: OpenFileStore) -> None:
    store = open_store(crash(50))
    assert (store.recovery_report.clean, store.recovery_report.actions) == (False, [])
    assert bodies(store) == list(range(50))


def test_messages_that_were_not_dispatched_are(open_store: OpenFileStore, tmp_path: Path) -> None:
    store = open_store(tmp_path / "living")
    put(store, *[message(body=body_of(number)) for number in range(5)])
    for number in range(5, 20):
        store.put_message(message(body=body_of(number)))
    shutil.copytree(tmp_path / "living", tmp_path / "crashed")
    again = open_store(tmp_path / "crashed")
    assert bodies(again) == list(range(20))
    assert put(again, message())[0].queue_offset == 20


@pytest.mark.parametrize("torn", [3, 9, 50, 95, 108, 109, RECORD - 8, RECORD - 5, RECORD - 4])
def test_torn_tail_loses_the_last_message_only(crash: Any, open_store: OpenFileStore, torn: int) -> None:
    root = crash(10)
    overwrite(log_file(root, 0), 10 * RECORD - torn, bytes(torn))
    store = open_store(root)
    assert bodies(store) == list(range(9))
    assert store.max_physical_offset() == 9 * RECORD
    assert [action.offset for action in store.recovery_report.actions] == [9 * RECORD, 9]
    assert put(store, message(body=body_of(77)))[0].queue_offset == 9
    assert bodies(store) == [*range(9), 77]


def test_stale_bytes_behind_a_cut_never_come_back(crash: Any, open_store: OpenFileStore, tmp_path: Path) -> None:
    """The new record ends just where an old one begins, which would look intact after the next crash."""
    root = crash(10)
    overwrite(log_file(root, 0), 4 * RECORD + 120, b"\xff")
    store = open_store(root)
    assert bodies(store) == list(range(4))
    put(store, message(body=body_of(99)))
    shutil.copytree(root, tmp_path / "again")
    again = open_store(tmp_path / "again")
    assert bodies(again) == [*range(4), 99]


def test_damage_in_the_middle_cuts_the_log_and_keeps_what_followed(crash: Any, open_store: OpenFileStore) -> None:
    root = crash(3 * PER_FILE)
    overwrite(log_file(root, 1), 5 * RECORD + 120, b"\xff")
    end = 4096 + 5 * RECORD
    store = open_store(root)
    assert bodies(store) == list(range(PER_FILE + 5))
    saved = root / "damaged" / f"{end:020d}"
    (cut, dropped) = actions(store.recovery_report, root)
    assert cut[:2] == ("commitlog", end)
    assert cut[2].startswith("the log was cut here (the body's CRC is ")
    assert cut[2].endswith(f"files deleted: {8192:020d}; the removed part is kept in {saved}")
    assert dropped == (
        "consumequeue/TopicA/0",
        PER_FILE + 5,
        f"{2 * PER_FILE - 5} entries dropped that point past the end of the log at {end}",
    )
    assert sorted(path.name for path in (root / "damaged").iterdir()) == [f"{end:020d}", f"{8192:020d}"]
    kept = saved.read_bytes()
    assert decode_message(kept, RECORD).body == body_of(PER_FILE + 6)
    assert decode_message((root / "damaged" / f"{8192:020d}").read_bytes()).body == body_of(2 * PER_FILE)


def test_zeros_in_the_middle_count_as_damage(crash: Any, open_store: OpenFileStore) -> None:
    root = crash(2 * PER_FILE)
    overwrite(log_file(root, 0), 3 * RECORD, bytes(2 * RECORD))
    store = open_store(root)
    assert bodies(store) == [0, 1, 2]
    assert "(nothing was written here)" in store.recovery_report.actions[0].done
    assert (root / "damaged").is_dir()


@pytest.mark.parametrize(
    ("position", "data", "problem"),
    [
        pytest.param(4, b"\0\0\0\1", "magic 0x00000001 is not a message's", id="magic"),
        pytest.param(0, b"\0\0\0\x20", "a body of 100 bytes in a record of 32", id="size"),
        pytest.param(0, b"\x7f\xff\xff\xff", "a record of 2147483647 bytes", id="long"),
        pytest.param(28, b"\0\0\0\0\0\0\0\1", "the record says it is at 1", id="own offset"),
        pytest.param(84, b"\0\0\0\1", "properties of 771 bytes where 102 are left", id="body length"),
    ],
)
def test_each_kind_of_damage_is_named(
    crash: Any, open_store: OpenFileStore, position: int, data: bytes, problem: str
) -> None:
    root = crash(4)
    overwrite(log_file(root, 0), 3 * RECORD + position, data)
    store = open_store(root)
    assert bodies(store) == [0, 1, 2]
    assert f"the log was cut here ({problem}" in store.recovery_report.actions[0].done


def test_unclean_start_begins_at_the_file_the_checkpoint_covers(
    open_store: OpenFileStore, clock: SettableClock, tmp_path: Path
) -> None:
    store = open_store(tmp_path / "living")
    for number in range(4 * PER_FILE):
        put(store, message(body=body_of(number)))
        clock.now += 1000
    shutil.copytree(tmp_path / "living", tmp_path / "crashed")
    covered = START_MS + 2 * PER_FILE * 1000 + 4000
    Checkpoint(str(tmp_path / "crashed" / "checkpoint"), covered, covered).save()
    again = open_store(tmp_path / "crashed")
    report = again.recovery_report
    assert (report.scan_start, report.records_checked, report.actions) == (2 * 4096, 2 * PER_FILE, [])
    assert bodies(again) == list(range(4 * PER_FILE))


def test_checkpoint_of_the_future_still_leads_to_the_last_file(crash: Any, open_store: OpenFileStore) -> None:
    root = crash(3 * PER_FILE)
    Checkpoint(str(root / "checkpoint"), START_MS * 2, START_MS * 2).save()
    store = open_store(root)
    assert store.recovery_report.scan_start == 2 * 4096
    assert bodies(store) == list(range(3 * PER_FILE))


@pytest.mark.parametrize("content", [b"", b"abc", b"\xff" * 4096], ids=["empty", "short", "nonsense"])
def test_damaged_checkpoint_means_the_whole_log_is_walked(
    crash: Any, open_store: OpenFileStore, content: bytes
) -> None:
    root = crash(3 * PER_FILE)
    (root / "checkpoint").write_bytes(content)
    store = open_store(root)
    assert store.recovery_report.scan_start == 0
    assert bodies(store) == list(range(3 * PER_FILE))


@pytest.mark.parametrize("abort", [True, False], ids=["unclean", "clean"])
def test_lost_queues_are_built_anew(crash: Any, open_store: OpenFileStore, abort: bool) -> None:
    root = crash(3 * PER_FILE)
    shutil.rmtree(root / "consumequeue")
    if not abort:
        (root / "abort").unlink()
    store = open_store(root)
    assert bodies(store) == list(range(3 * PER_FILE))
    assert store.recovery_report.entries_written == 3 * PER_FILE


@pytest.mark.parametrize("size", [0, 1, 199, 201, 4096], ids=str)
@pytest.mark.parametrize("abort", [True, False], ids=["unclean", "clean"])
def test_queue_file_of_another_size_is_built_anew(
    crash: Any, open_store: OpenFileStore, size: int, abort: bool
) -> None:
    root = crash(25)
    if not abort:
        (root / "abort").unlink()
    path = queue_file(root, 1)
    path.write_bytes(path.read_bytes().ljust(size, b"\0")[:size])
    store = open_store(root)
    assert bodies(store) == list(range(25))
    assert actions(store.recovery_report, root)[0] == (
        str(path.relative_to(root)),
        0,
        f"has {size} bytes; the queue is rebuilt from the log",
    )


def test_empty_last_queue_file_is_no_damage(crash: Any, open_store: OpenFileStore) -> None:
    root = crash(20)
    queue_file(root, 2).write_bytes(b"")
    store = open_store(root)
    assert (bodies(store), store.recovery_report.actions) == (list(range(20)), [])


def test_missing_queue_file_is_built_anew(crash: Any, open_store: OpenFileStore) -> None:
    root = crash(25)
    queue_file(root, 1).unlink()
    store = open_store(root)
    assert bodies(store) == list(range(25))
    assert actions(store.recovery_report, root) == [
        (
            f"consumequeue/TopicA/0/{200:020d}",
            0,
            "is missing; the queue is rebuilt from the log",
        )
    ]


@pytest.mark.parametrize("abort", [True, False], ids=["unclean", "clean"])
def test_hole_in_a_queue_is_filled(crash: Any, open_store: OpenFileStore, abort: bool) -> None:
    root = crash(25)
    if not abort:
        (root / "abort").unlink()
    overwrite(queue_file(root, 1), 60, bytes(40))
    store = open_store(root)
    assert bodies(store) == list(range(25))
    assert actions(store.recovery_report, root)[0] == (
        "consumequeue/TopicA/0",
        13,
        "entries after a hole are rewritten from the log",
    )


def test_queue_that_leads_to_foreign_records_is_built_anew(open_store: OpenFileStore, tmp_path: Path) -> None:
    root = tmp_path / "store"
    store = open_store(root)
    put(store, *[message(body=body_of(number)) for number in range(3)], message(queue_id=1, body=body_of(9)))
    store.close()
    overwrite(queue_file(root, 0), 40, (3 * RECORD).to_bytes(8, "big"))
    store.start()
    assert (bodies(store), bodies(store, 1)) == ([0, 1, 2], [9])
    said = f"was (591, {RECORD}, 0), the record says (394, {RECORD}, 0); put right"
    assert actions(store.recovery_report, root) == [("consumequeue/TopicA/0", 2, said)]


def test_queue_that_led_to_foreign_records_long_ago_is_built_anew(open_store: OpenFileStore, tmp_path: Path) -> None:
    root = tmp_path / "store"
    store = open_store(root)
    put(store, *[message(body=body_of(number)) for number in range(3)])
    put(store, *[message(queue_id=1, body=body_of(number)) for number in range(5 * PER_FILE)])
    store.close()
    overwrite(queue_file(root, 0), 40, (3 * RECORD).to_bytes(8, "big"))
    store.start()
    assert (bodies(store), bodies(store, 1)) == ([0, 1, 2], list(range(5 * PER_FILE)))
    assert actions(store.recovery_report, root) == [("consumequeue/TopicA/0", 2, "points to a wrong record; rebuilt")]


def test_wrong_entry_in_the_middle_of_a_queue_is_put_right(crash: Any, open_store: OpenFileStore) -> None:
    root = crash(5)
    (root / "abort").unlink()
    overwrite(queue_file(root, 0), 20 + 12, (9).to_bytes(8, "big"))
    overwrite(queue_file(root, 0), 40, (1 << 40).to_bytes(8, "big"))
    store = open_store(root)
    assert bodies(store) == list(range(5))
    assert actions(store.recovery_report, root) == [
        ("consumequeue/TopicA/0", 1, f"was (197, {RECORD}, 9), the record says (197, {RECORD}, 0); put right"),
        (
            "consumequeue/TopicA/0",
            2,
            f"was (1099511627776, {RECORD}, 0), the record says (394, {RECORD}, 0); put right",
        ),
    ]


def test_last_log_file_that_was_cut_off_is_made_whole(crash: Any, open_store: OpenFileStore) -> None:
    root = crash(PER_FILE + 5)
    file = log_file(root, 1)
    os.truncate(file, 3 * RECORD + 10)
    store = open_store(root)
    assert bodies(store) == list(range(PER_FILE + 3))
    assert actions(store.recovery_report, root)[0] == (
        "commitlog/00000000000000004096",
        3 * RECORD + 10,
        "the file ended here; it was filled with zeros",
    )
    assert file.stat().st_size == 4096


def test_empty_queue_file_of_a_closed_store_is_written_anew(crash: Any, open_store: OpenFileStore) -> None:
    root = crash(12)
    (root / "abort").unlink()
    file = queue_file(root, 0).with_name(f"{200:020d}")
    os.truncate(file, 0)
    store = open_store(root)
    assert bodies(store) == list(range(12))
    assert actions(store.recovery_report, root) == [
        ("consumequeue/TopicA/0/00000000000000000200", 0, "was empty; its entries are rewritten from the log")
    ]


def test_wrong_entry_at_the_end_of_a_queue_is_replaced(crash: Any, open_store: OpenFileStore) -> None:
    root = crash(5)
    (root / "abort").unlink()
    overwrite(queue_file(root, 0), 80, (2 * RECORD).to_bytes(8, "big"))
    store = open_store(root)
    assert bodies(store) == list(range(5))
    assert actions(store.recovery_report, root) == [
        ("consumequeue/TopicA/0", 4, f"was (394, {RECORD}, 0), the record says (788, {RECORD}, 0); put right")
    ]


def test_queues_without_a_log_are_dropped(crash: Any, open_store: OpenFileStore) -> None:
    root = crash(5)
    shutil.rmtree(root / "commitlog")
    store = open_store(root)
    assert store.topics() == []
    assert actions(store.recovery_report, root) == [
        ("consumequeue/TopicA/0", 0, "deleted, because the commit log has no files")
    ]
    assert put(store, message())[0].queue_offset == 0


def test_log_file_of_another_size_is_refused_with_advice(crash: Any, open_store: OpenFileStore) -> None:
    root = crash(2 * PER_FILE)
    with pytest.raises(WrongFileSize) as caught:
        open_store(root, mapped_file_size_commit_log=8192)
    assert str(caught.value) == (
        f"{log_file(root, 0)}: is 4096 bytes long, mappedFileSizeCommitLog says 8192; set mappedFileSizeCommitLog to "
        f"the size the log was written with, or move the file away"
    )
    assert bodies(open_store(root)) == list(range(2 * PER_FILE))


def test_empty_last_log_file_is_deleted(crash: Any, open_store: OpenFileStore) -> None:
    root = crash(PER_FILE)
    log_file(root, 1).write_bytes(b"")
    store = open_store(root)
    assert not log_file(root, 1).exists()
    assert bodies(store) == list(range(PER_FILE))


def test_hole_between_log_files_is_refused_with_advice(crash: Any, open_store: OpenFileStore) -> None:
    root = crash(3 * PER_FILE)
    log_file(root, 1).unlink()
    with pytest.raises(MissingLogFile) as caught:
        open_store(root)
    assert str(caught.value) == (
        f"{log_file(root, 1)}: is missing between two commit log files; restore it, or move the older files away"
    )


def test_expired_log_files_raise_the_minimum(crash: Any, open_store: OpenFileStore) -> None:
    root = crash(3 * PER_FILE)
    log_file(root, 0).unlink()
    store = open_store(root)
    assert (store.min_physical_offset(), store.min_offset_in_queue("TopicA", 0)) == (4096, PER_FILE)
    early = store.get_message("TopicA", 0, 0, 32, 1 << 20, None)
    assert (early.status, early.next_begin_offset) == (GetStatus.OFFSET_TOO_SMALL, PER_FILE)
    assert store.earliest_message_time("TopicA", 0) == START_MS


def test_queue_built_from_a_log_without_its_beginning_keeps_its_offsets(crash: Any, open_store: OpenFileStore) -> None:
    root = crash(3 * PER_FILE)
    log_file(root, 0).unlink()
    shutil.rmtree(root / "consumequeue")
    store = open_store(root)
    ends = store.min_offset_in_queue("TopicA", 0), store.max_offset_in_queue("TopicA", 0)
    assert ends == (PER_FILE, 3 * PER_FILE)
    found = store.get_message("TopicA", 0, PER_FILE, 32, 1 << 20, None)
    assert decode_message(found.records[0]).body == body_of(PER_FILE)
    store.close()
    store.start()
    assert (store.min_offset_in_queue("TopicA", 0), store.recovery_report.actions) == (PER_FILE, [])


def test_topic_made_anew_begins_anew_after_a_crash(open_store: OpenFileStore, tmp_path: Path) -> None:
    store = open_store(tmp_path / "living")
    put(store, *[message(body=body_of(number)) for number in range(15)])
    store.delete_topics({"TopicA"})
    put(store, *[message(body=body_of(number)) for number in (100, 101)])
    shutil.copytree(tmp_path / "living", tmp_path / "crashed")
    shutil.rmtree(tmp_path / "crashed" / "consumequeue")
    again = open_store(tmp_path / "crashed")
    assert bodies(again) == [100, 101]


def test_second_recovery_finds_nothing_to_do(crash: Any, open_store: OpenFileStore) -> None:
    root = crash(2 * PER_FILE)
    overwrite(log_file(root, 1), 4 * RECORD + 3, b"\1")
    open_store(root).close()
    store = open_store(root)
    assert (store.recovery_report.clean, store.recovery_report.actions) == (True, [])


def test_offline_check_names_what_a_start_repairs(crash: Any, open_store: OpenFileStore) -> None:
    root = crash(10)
    assert check_store(str(root)) == []
    overwrite(log_file(root, 0), 9 * RECORD + 120, b"\xff")
    found = [(problem.path, problem.offset, problem.problem.split(" ")[0]) for problem in check_store(str(root))]
    assert found == [
        (str(root / "commitlog"), 9 * RECORD, "damaged"),
        (str(root / "consumequeue" / "TopicA" / "0"), 9, "leads"),
    ]
    open_store(root)
    assert check_store(str(root)) == []


def test_crc_is_not_checked_where_the_configuration_says_so(crash: Any, open_store: OpenFileStore) -> None:
    root = crash(3)
    overwrite(log_file(root, 0), 2 * RECORD + 120, b"\xff")
    store = open_store(root, check_crc_on_recover=False)
    assert store.max_offset_in_queue("TopicA", 0) == 3
    store.close()


def test_store_is_sound_after_a_crash_at_any_byte(open_store: OpenFileStore, tmp_path: Path) -> None:
    """The log ends at every position of the last two records, as a crash of the machine may leave it."""
    store = open_store(tmp_path / "living")
    put(store, *[message(body=bytes([number])) for number in range(4)])
    size = 91 + 6 + 1
    for end in range(2 * size, 4 * size, 7):
        root = tmp_path / f"crashed{end}"
        shutil.copytree(tmp_path / "living", root)
        overwrite(log_file(root, 0), end, bytes(4096 - end))
        again = open_store(root)
        # a record without properties ends with two zero bytes, so it is whole without them
        assert bodies(again) == list(range((end + 2) // size))
        assert again.check() == []
        again.close()
