"""The timer's log, wheel, checkpoint and counters on disk."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

import pytest

from twisted_mq.protocol.bodies import DataVersion, TimerMetric
from twisted_mq.protocol.layouts.checkpoint import CHECKPOINT_FILE_BYTES
from twisted_mq.protocol.layouts.timer import LOG_UNIT, TIMER_LOG_UNIT, TIMER_WHEEL_SLOT, WHEEL_SLOT_BYTES, LogUnit
from twisted_mq.storage.errors import StoreFull
from twisted_mq.storage.timer.timer_checkpoint import TimerCheckpoint
from twisted_mq.storage.timer.timer_files import TimerFiles, is_recall, is_roll
from twisted_mq.storage.timer.timer_log import TimerLog
from twisted_mq.storage.timer.timer_metrics import TimerMetrics
from twisted_mq.storage.timer.timer_wheel import EMPTY, Slot, TimerWheel

NOW = 1_795_217_217_000
FILE = 400
"""Six units of 52 bytes, then a blank of 88."""


def no_space(descriptor: int, start: int, count: int) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def append(log: TimerLog, number: int) -> int:
    return log.append(-1, 1, NOW, 5000, 100 * number, 90, 7)


# log


def test_unit_lies_in_the_file_as_apache_writes_it(tmp_path: Path) -> None:
    log = TimerLog(str(tmp_path / "timerlog"), FILE)
    assert log.append(-1, 3, NOW, 5000, 240, 300, -7) == 0
    data = (tmp_path / "timerlog" / "00000000000000000000").read_bytes()
    assert (len(data), data[:52]) == (FILE, LOG_UNIT.pack(52, -1, 3, NOW, 5000, 240, 300, -7, 0))
    parsed = TIMER_LOG_UNIT.parse(data)
    assert (parsed.size, parsed.physical_offset, parsed.reserved) == (52, 240, 0)
    unit = log.unit(0)
    assert unit == LogUnit(52, -1, 3, NOW, 5000, 240, 300, -7, 0)
    assert unit is not None and unit.slot_ms == NOW + 5000


def test_file_ends_with_a_blank_and_the_next_begins_with_a_unit(tmp_path: Path) -> None:
    log = TimerLog(str(tmp_path / "timerlog"), FILE)
    positions = [append(log, number) for number in range(14)]
    assert positions == [*range(0, 364, 52), *range(400, 764, 52)]
    blank = (tmp_path / "timerlog" / "00000000000000000000").read_bytes()[364:380]
    assert blank == (36).to_bytes(4, "big") + bytes(8) + (0xCBD43194).to_bytes(4, "big")
    assert [position for position, _ in log.units()] == positions
    assert log.end == 764


@pytest.mark.parametrize("count", [0, 1, 6, 7, 14, 15])
def test_log_goes_on_where_it_was_cut(tmp_path: Path, count: int) -> None:
    log = TimerLog(str(tmp_path / "timerlog"), FILE)
    ends = [0]
    for number in range(count):
        append(log, number)
        ends.append(log.end)
    again = TimerLog(str(tmp_path / "timerlog"), FILE)
    assert again.load() == []
    again.cut(ends[-1])
    append(again, 99)
    units = [unit.physical_offset for _, unit in again.units()]
    assert units == [*(100 * number for number in range(count)), 9900]


def test_what_no_broker_wrote_ends_the_log(tmp_path: Path) -> None:
    log = TimerLog(str(tmp_path / "timerlog"), FILE)
    for number in range(4):
        append(log, number)
    path = tmp_path / "timerlog" / "00000000000000000000"
    data = bytearray(path.read_bytes())
    data[104:108] = (51).to_bytes(4, "big")
    path.write_bytes(data)
    again = TimerLog(str(tmp_path / "timerlog"), FILE)
    again.load()
    assert [position for position, _ in again.units()] == [0, 52]
    assert (again.unit(104), again.unit(-52), again.unit(FILE * 9)) == (None, None, None)


def test_files_whose_messages_have_left_the_commit_log_are_deleted(tmp_path: Path) -> None:
    log = TimerLog(str(tmp_path / "timerlog"), FILE)
    for number in range(20):
        append(log, number)
    assert log.delete_before(600) == 0
    assert log.delete_before(601) == 1
    assert (log.start, log.unit(0)) == (400, None)
    assert log.delete_before(10**9) == 1
    assert sorted(os.listdir(tmp_path / "timerlog")) == ["00000000000000000800"]


def test_full_disk_is_told_before_anything_is_written(tmp_path: Path) -> None:
    log = TimerLog(str(tmp_path / "timerlog"), FILE, allocate=no_space)
    with pytest.raises(StoreFull):
        append(log, 0)
    assert log.end == 0


# wheel


def test_slot_lies_in_the_file_as_apache_writes_it(tmp_path: Path) -> None:
    wheel = TimerWheel(str(tmp_path / "timerwheel"), 1000)
    assert wheel.open() is False
    wheel.put(NOW + 400, Slot(0, 52, 2))
    assert os.path.getsize(tmp_path / "timerwheel") == 38_707_200
    assert os.stat(tmp_path / "timerwheel").st_blocks * 512 <= 65536
    with open(tmp_path / "timerwheel", "rb") as file:
        file.seek(NOW // 1000 % 1_209_600 * WHEEL_SLOT_BYTES)
        parsed = TIMER_WHEEL_SLOT.parse(file.read(WHEEL_SLOT_BYTES))
    assert (parsed.time, parsed.first_position, parsed.last_position, parsed.count, parsed.magic) == (
        NOW // 1000, 0, 52, 2, 0,
    )  # fmt: skip


def test_slot_of_another_time_is_empty(tmp_path: Path) -> None:
    wheel = TimerWheel(str(tmp_path / "timerwheel"), 1000, slots=10)
    wheel.open()
    wheel.put(NOW, Slot(0, 52, 2))
    assert (wheel.get(NOW + 999), wheel.get(NOW + 1000), wheel.get(NOW + wheel.span_ms)) == (
        Slot(0, 52, 2),
        EMPTY,
        EMPTY,
    )
    wheel.put(NOW + wheel.span_ms, Slot(104, 104, 1))
    assert wheel.get(NOW) == EMPTY


@pytest.mark.parametrize("slots", [10, 500])
def test_what_waits_is_counted_from_a_time_to_another_over_pages_and_the_file_s_end(tmp_path: Path, slots: int) -> None:
    wheel = TimerWheel(str(tmp_path / "timerwheel"), 1000, slots=slots)
    wheel.open()
    for tick in range(2 * slots):
        wheel.put(NOW + tick * 1000, Slot(0, 0, tick))
    wheel.put(NOW + 3000 - wheel.span_ms, Slot(0, 0, 1_000_000))
    bounds = [(0, 1), (0, 2 * slots), (2, 7), (slots, slots), (slots - 1, 2 * slots)]
    told = [wheel.waiting(NOW + start * 1000, NOW + end * 1000) for start, end in bounds]
    assert told == [sum(tick for tick in range(start, end) if tick != 3) for start, end in bounds]


def test_wheel_is_kept_over_closing_and_emptied_by_clearing(tmp_path: Path) -> None:
    wheel = TimerWheel(str(tmp_path / "timerwheel"), 1000, slots=10)
    wheel.open()
    wheel.put(NOW, Slot(0, 0, 1))
    wheel.flush()
    wheel.close()
    wheel.close()
    again = TimerWheel(str(tmp_path / "timerwheel"), 1000, slots=10)
    assert (again.open(), again.get(NOW)) == (True, Slot(0, 0, 1))
    again.clear()
    assert again.get(NOW) == EMPTY
    again.close()
    assert TimerWheel(str(tmp_path / "timerwheel"), 1000, slots=20).open() is False


def test_wheel_on_a_full_disk_is_an_error_and_no_signal(tmp_path: Path) -> None:
    wheel = TimerWheel(str(tmp_path / "timerwheel"), 1000, slots=10, allocate=no_space)
    wheel.open()
    with pytest.raises(StoreFull):
        wheel.put(NOW, Slot(0, 0, 1))


# checkpoint and counters


def test_checkpoint_has_apaches_bytes(tmp_path: Path) -> None:
    path = str(tmp_path / "config" / "timercheck")
    assert TimerCheckpoint.load(path) == TimerCheckpoint()
    checkpoint = TimerCheckpoint(NOW, 104, 7, 7, 0, NOW + 5, 3)
    checkpoint.save(path)
    data = Path(path).read_bytes()
    assert len(data) == CHECKPOINT_FILE_BYTES
    assert data[:56] == b"".join(value.to_bytes(8, "big") for value in (NOW, 104, 7, 7, 0, NOW + 5, 3))
    assert TimerCheckpoint.load(path) == checkpoint


@pytest.mark.parametrize("data", [b"", b"\0" * 55, b"\xff" * 56])
def test_damaged_checkpoint_is_no_checkpoint(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "timercheck").write_bytes(data)
    assert TimerCheckpoint.load(str(tmp_path / "timercheck")) == TimerCheckpoint()


def test_counters_are_written_and_read(tmp_path: Path) -> None:
    path = str(tmp_path / "config" / "timermetrics")
    metrics = TimerMetrics(path)
    metrics.load()
    metrics.add("T", 2, NOW)
    metrics.add("T", -1, NOW + 1)
    assert metrics.save(metrics.body()) is True
    assert Path(path).read_bytes() == (
        b'{"dataVersion":{"counter":2,"stateVersion":0,"timestamp":1795217217001},'
        b'"timingCount":{"T":{"count":1,"timeStamp":1795217217001}}}'
    )
    again = TimerMetrics(path)
    again.load()
    assert (again.counts, again.data_version) == ({"T": TimerMetric(1, NOW + 1)}, DataVersion(0, NOW + 1, 2))


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="no file system in memory")
def test_looking_at_empty_slots_takes_no_memory_of_a_file_system_there(tmp_path: Path) -> None:
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as file:
        wheel = TimerWheel(file.name, 1000)
        wheel.open()
        assert {wheel.get(NOW + second * 1000) for second in range(5000)} == {EMPTY}
        assert os.stat(file.name).st_blocks == 0
        wheel.put(NOW, Slot(1, 2, 3))
        wheel.close()
        assert wheel.open() is True
        assert [wheel.get(NOW + second * 1000) for second in (0, 1, 4000)] == [Slot(1, 2, 3), EMPTY, EMPTY]
        assert os.stat(file.name).st_blocks == os.sysconf("SC_PAGESIZE") // 512
        wheel.close()


# together


def files(root: Path, **options: object) -> TimerFiles:
    return TimerFiles(str(root), 1000, FILE, 10, sync=lambda descriptor: None, **options)


def test_chain_of_a_tick_is_read_first_to_last(tmp_path: Path) -> None:
    timer = files(tmp_path)
    timer.open(clean=True, end_of_commit_log=0, end_of_queue=1 << 62)
    assert (timer.rebuilt, list(timer.positions(NOW)[0]), timer.count(NOW), timer.last_physical_offset()) == (
        True, [], 0, None,
    )  # fmt: skip
    for number in range(9):
        timer.add(NOW + 1000 * (number % 2), NOW, 1, number, 1, 7)
    timer.add(NOW, NOW, 1 | 4, 9, 1, 7)
    offsets = [timer.log.unit(position).physical_offset for position in timer.positions(NOW)[0]]
    assert (offsets, timer.count(NOW), timer.count(NOW + 1000)) == ([0, 2, 4, 6, 8, 9], 4, 4)
    assert timer.last_physical_offset() == 9


@pytest.mark.parametrize("clean", [True, False])
def test_wheel_is_filled_from_the_log_where_it_is_not_to_be_trusted(tmp_path: Path, clean: bool) -> None:
    timer = files(tmp_path)
    timer.open(clean=True, end_of_commit_log=0, end_of_queue=1 << 62)
    for number in range(9):
        timer.add(NOW + 1000 * (number % 2), NOW, 1, number, 1, 7)
    timer.write(timer.progress(NOW + 1000, 9, NOW))
    timer.wheel.put(NOW + 5000, Slot(0, 0, 99))
    timer.close()
    timer.close()
    again = files(tmp_path)
    again.open(clean=clean, end_of_commit_log=100, end_of_queue=1 << 62)
    assert again.checkpoint == TimerCheckpoint(NOW + 1000, again.log.end, 9, 9, 0, NOW, 1)
    assert [again.count(NOW + 1000 * second) for second in (0, 1, 5)] == ([5, 4, 99] if clean else [0, 4, 0])
    assert again.rebuilt is False


def test_log_that_was_given_up_is_marked_until_it_is_as_far_as_it_was(tmp_path: Path) -> None:
    timer = files(tmp_path)
    timer.open(clean=True, end_of_commit_log=0, end_of_queue=1 << 62)
    for number in range(9):
        timer.add(NOW, NOW, 1, number, 1, 7)
    timer.write(timer.progress(NOW, 9, NOW))
    timer.close()
    (tmp_path / "timerlog" / "00000000000000000000").write_bytes(b"short")
    again = files(tmp_path)
    again.open(clean=True, end_of_commit_log=100, end_of_queue=1 << 62)
    assert (again.rebuilt, again.log.end, again.count(NOW)) == (True, 0, 0)
    again.add(NOW, NOW, 1, 0, 1, 7)
    again.write(again.progress(NOW, 5, NOW))
    third = files(tmp_path)
    third.open(clean=False, end_of_commit_log=100, end_of_queue=1 << 62)
    assert (third.rebuilt, third.log.end) == (True, 0)
    third.add(NOW, NOW, 1, 0, 1, 7)
    third.write(third.progress(NOW, 9, NOW))
    last = files(tmp_path)
    last.open(clean=False, end_of_commit_log=100, end_of_queue=1 << 62)
    assert (last.rebuilt, last.count(NOW)) == (False, 1)


def test_checkpoint_names_no_message_that_the_topic_lost(tmp_path: Path) -> None:
    timer = files(tmp_path)
    timer.open(clean=True, end_of_commit_log=0, end_of_queue=9)
    for number in range(9):
        timer.add(NOW, NOW, 1, number, 1, 7)
    timer.write(timer.progress(NOW, 9, NOW))
    timer.close()
    shorter = files(tmp_path)
    shorter.open(clean=False, end_of_commit_log=5, end_of_queue=5)
    shorter.close()
    again = files(tmp_path)
    again.open(clean=False, end_of_commit_log=100, end_of_queue=9)
    assert (again.checkpoint.last_timer_queue_offset, again.count(NOW)) == (5, 5)


def test_magic_says_what_a_unit_is() -> None:
    found = [(is_roll(magic), is_recall(magic)) for magic in (1, 3, 5, 7)]
    assert found == [(False, False), (True, False), (False, True), (True, False)]


@pytest.mark.parametrize("previous", [52, 104, 60, -2], ids=["itself", "forward", "between units", "before the log"])
def test_damaged_chain_ends_where_it_is_damaged(tmp_path: Path, previous: int) -> None:
    timer = files(tmp_path)
    timer.open(clean=True, end_of_commit_log=0, end_of_queue=1 << 62)
    for number in range(3):
        timer.add(NOW, NOW, 1, number, 1, 7)
    path = tmp_path / "timerlog" / "00000000000000000000"
    with path.open("r+b") as file:
        file.seek(52)
        file.write(LOG_UNIT.pack(52, previous, 1, NOW, 0, 1, 1, 7, 0))
    assert list(timer.positions(NOW)[0]) == [52, 104]


def test_log_that_ends_with_the_last_unit_of_a_file_is_opened_again(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    timer = TimerFiles(str(tmp_path), 1000, 6 * 52 + 16, 10)
    timer.open(clean=True, end_of_commit_log=0, end_of_queue=1 << 62)
    for number in range(6):
        timer.add(NOW, NOW, 1, number, 1, 7)
    timer.write(timer.progress(NOW, 6, NOW))
    timer.close()
    timer.open(clean=True, end_of_commit_log=6, end_of_queue=1 << 62)
    assert [timer.log.end, *timer.positions(NOW)[0]] == [312, *range(0, 312, 52)]


def test_log_whose_only_file_is_too_short_is_made_anew(tmp_path: Path) -> None:
    (tmp_path / "timerlog").mkdir()
    (tmp_path / "timerlog" / "00000000000000000000").write_bytes(bytes(99))
    timer = files(tmp_path)
    timer.open(clean=True, end_of_commit_log=0, end_of_queue=1 << 62)
    timer.add(NOW, NOW, 1, 0, 1, 7)
    assert (timer.rebuilt, list(timer.positions(NOW)[0])) == (True, [0])
