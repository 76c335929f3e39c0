"""A log that another broker writes: the bytes of one store appended to another, cut anywhere."""

from __future__ import annotations

import errno
import os
import random
from pathlib import Path
from typing import Any

import pytest

from tests.storage.conftest import LOG_FILE_BYTES, OpenFileStore, SettableClock, config, message, put, tagged
from tests.support.batches import batched
from twisted_mq.protocol.flags import MessageSysFlag
from twisted_mq.protocol.layouts.record import PHYSICAL_OFFSET_POSITION, encode_blank
from twisted_mq.protocol.layouts.record_codec import encode_record
from twisted_mq.storage.config import FlushDiskType
from twisted_mq.storage.errors import LogMismatch, ReplicaDamaged, StoreClosed, StoreFull
from twisted_mq.storage.files.system_calls import posix_fallocate
from twisted_mq.storage.interfaces import ArrivalListener, PutStatus
from twisted_mq.storage.memory.memory_store import MemoryMessageStore


@pytest.fixture
def master(open_store: OpenFileStore) -> Any:
    """A store of three log files, with messages of several queues and one that enters none."""
    store = open_store()
    put(store, *(tagged("AB"[n % 2], 65 + n % 2, queue_id=n % 3, body=b"%d" % n * 20) for n in range(60)))
    put(store, message(sys_flag=4), message("TopicB", body=b"last"))
    assert store.max_physical_offset() > 2 * LOG_FILE_BYTES
    return store


@pytest.fixture(params=["file", "memory"])
def slave(request: pytest.FixtureRequest, open_store: OpenFileStore, tmp_path: Path, clock: SettableClock) -> Any:
    if request.param == "file":
        return open_store(tmp_path / "slave")
    store = MemoryMessageStore(config(tmp_path), clock)
    store.start()
    return store


def pieces(store: Any, start: int, size: int) -> list[tuple[int, bytes]]:
    found = []
    while start < store.max_physical_offset():
        data = store.read_log(start, size)
        found.append((start, bytes(data)))
        start += len(data)
    return found


def log(store: Any, start: int = 0) -> bytes:
    return b"".join(data for _, data in pieces(store, start, 1 << 20))


def queues(store: Any) -> dict[tuple[str, int], list[bytes]]:
    found = {}
    for topic in store.topics():
        for queue_id in store.queue_ids(topic):
            end = store.max_offset_in_queue(topic, queue_id)
            results, offset = [], 0
            while offset < end:
                result = store.get_message(topic, queue_id, offset, 32, 1 << 20, None)
                results += [bytes(record) for record in result.records]
                offset = result.next_begin_offset
            found[topic, queue_id] = results
    return found


def copy(master: Any, slave: Any, size: int = 1 << 20, arrived: ArrivalListener | None = None) -> None:
    for offset, data in pieces(master, slave.max_physical_offset(), size):
        slave.append_log(offset, data)
        slave.dispatch(arrived)


def test_reading_the_log_stops_at_the_end_of_a_file_and_of_the_log(open_store: OpenFileStore, master: Any) -> None:
    end = master.max_physical_offset()
    assert len(master.read_log(0, 10)) == 10
    assert len(master.read_log(0, 1 << 20)) == LOG_FILE_BYTES
    assert len(master.read_log(LOG_FILE_BYTES - 3, 100)) == 3
    assert len(master.read_log(end - 7, 100)) == 7
    assert master.read_log(end, 100) == b""
    assert master.read_log(end + 1, 100) is None
    assert master.read_log(-1, 100) is None
    assert open_store(Path(master.config.store_path_root_dir).parent / "empty").read_log(0, 100) == b""


def test_newest_file_is_that_of_the_logs_end(master: Any, memory_store: Any) -> None:
    assert master.newest_file_offset() == 2 * LOG_FILE_BYTES
    assert memory_store.newest_file_offset() == 0


@pytest.mark.parametrize("size", [1, 7, 100, 1000, 1 << 20])
def test_replica_is_equal_however_the_bytes_are_cut(master: Any, slave: Any, size: int) -> None:
    heard: list[tuple[Any, ...]] = []
    copy(master, slave, size, lambda *event: heard.append(event))
    assert log(slave) == log(master)
    assert queues(slave) == queues(master)
    assert (len(heard), heard[0][:4], heard[-1][:4]) == (61, ("TopicA", 0, 0, 65), ("TopicB", 0, 0, 0))
    assert slave.check() == []


def test_random_cuts_with_both_stores_at_work(open_store: OpenFileStore, tmp_path: Path) -> None:
    chance = random.Random(7)
    master, slave = open_store(), open_store(tmp_path / "slave")
    for number in range(300):
        put(master, message(queue_id=chance.randrange(3), body=b"x" * chance.randrange(1, 700)))
        if number % 3 == 0:
            copy(master, slave, chance.choice([13, 300, 5000]))
    copy(master, slave)
    assert log(slave) == log(master)
    assert queues(slave) == queues(master)


def test_half_a_record_is_invisible_and_a_restart_asks_for_it_anew(
    open_store: OpenFileStore, tmp_path: Path, master: Any
) -> None:
    slave = open_store(tmp_path / "slave")
    data = log(master)
    slave.append_log(0, data[:1000])
    slave.dispatch()
    whole = sum(len(record) for records in queues(slave).values() for record in records)
    assert slave.max_physical_offset() == 1000
    assert 0 < whole < 1000
    assert slave.check() == []
    slave.close()
    slave.start()
    assert slave.recovery_report.actions == []
    assert slave.max_physical_offset() == whole
    copy(master, slave)
    assert queues(slave) == queues(master)


def test_empty_replica_begins_where_the_master_does(open_store: OpenFileStore, tmp_path: Path, master: Any) -> None:
    slave = open_store(tmp_path / "slave")
    start = master.newest_file_offset()
    for offset, data in pieces(master, start, 100):
        slave.append_log(offset, data)
    slave.dispatch()
    assert (slave.min_physical_offset(), slave.max_physical_offset()) == (start, master.max_physical_offset())
    assert log(slave, start) == log(master, start)
    newest = master.get_message("TopicB", 0, 0, 1, 1 << 20, None).records
    assert slave.get_message("TopicB", 0, 0, 1, 1 << 20, None).records == newest
    assert slave.max_offset_in_queue("TopicA", 0) == 20
    assert slave.min_offset_in_queue("TopicA", 0) > 0
    slave.close()
    slave.start()
    assert slave.recovery_report.actions == []


def test_bytes_that_do_not_continue_the_log_are_refused(master: Any, slave: Any) -> None:
    data = log(master)
    slave.append_log(0, data[:500])
    for offset in (0, 499, 501):
        with pytest.raises(LogMismatch, match=f"ends at 500, but the master sends bytes from {offset} on"):
            slave.append_log(offset, data[offset : offset + 100])
    assert log(slave) == data[:500]


def test_damaged_bytes_are_taken_out_again(master: Any, slave: Any) -> None:
    """The first record is whole and stays; the second has a flipped bit in its own offset."""
    data = bytearray(log(master))
    first = int.from_bytes(data[:4], "big")
    data[first + PHYSICAL_OFFSET_POSITION] ^= 1
    with pytest.raises(ReplicaDamaged, match=f"the master's bytes at {first} do not continue this log"):
        slave.append_log(0, bytes(data[:1000]))
    slave.dispatch()
    assert slave.max_physical_offset() == first
    assert log(slave) == data[:first]
    copy(master, slave)
    assert queues(slave) == queues(master)


@pytest.mark.parametrize(
    "data",
    [b"\0" * 100, b"\x11" * 100, encode_blank(LOG_FILE_BYTES // 2) + b"\0" * 100],
    ids=["zeros", "garbage", "blank of another file size"],
)
def test_bytes_that_are_no_records_are_refused(open_store: OpenFileStore, tmp_path: Path, data: bytes) -> None:
    slave = open_store(tmp_path / "slave")
    with pytest.raises(ReplicaDamaged):
        slave.append_log(0, data)
    assert (slave.max_physical_offset(), slave.check()) == (0, [])


def test_logs_with_other_file_sizes_are_refused(open_store: OpenFileStore, tmp_path: Path, master: Any) -> None:
    slave = open_store(tmp_path / "slave", mapped_file_size_commit_log=2 * LOG_FILE_BYTES)
    with pytest.raises(ReplicaDamaged, match="mappedFileSizeCommitLog must be the master's"):
        copy(master, slave)


def test_replica_takes_no_messages(master: Any, slave: Any) -> None:
    slave.append_log(0, log(master)[:500])
    slave.dispatch()
    assert slave.put_message(message()).status is PutStatus.SERVICE_NOT_AVAILABLE
    assert slave.put_messages(batched([message()])).status is PutStatus.SERVICE_NOT_AVAILABLE
    assert slave.put_message(message("TopicNew")).status is PutStatus.SERVICE_NOT_AVAILABLE


def test_replica_that_flushes_first_shows_only_what_is_on_disk(
    open_store: OpenFileStore, tmp_path: Path, master: Any
) -> None:
    slave = open_store(tmp_path / "slave", flush_disk_type=FlushDiskType.SYNC_FLUSH)
    data = log(master)
    flushed: list[bool] = []
    slave.append_log(0, data)
    slave.when_flushed(len(data), flushed.append)
    slave.close()
    assert flushed == [True]
    slave.start()
    assert queues(slave) == queues(master)


def test_full_disk_keeps_whole_records_and_goes_on_later(
    open_store: OpenFileStore, tmp_path: Path, master: Any
) -> None:
    full = False

    def allocate(descriptor: int, start: int, count: int) -> None:
        if full:
            raise OSError(errno.ENOSPC, "No space left on device")
        posix_fallocate(descriptor, start, count)

    slave = open_store(tmp_path / "slave", keywords={"allocate": allocate}, commit_log_allocation_step=64)
    slave.append_log(0, log(master)[:1000])
    full = True
    with pytest.raises(StoreFull):
        slave.append_log(1000, log(master)[1000:4000])
    slave.dispatch()
    full = False
    assert slave.check() == []
    copy(master, slave)
    assert queues(slave) == queues(master)


def test_closed_store_takes_no_bytes(slave: Any) -> None:
    slave.close()
    with pytest.raises(StoreClosed):
        slave.append_log(0, b"x")


def test_remade_topic_begins_its_queue_anew(open_store: OpenFileStore, tmp_path: Path) -> None:
    master, slave = open_store(), open_store(tmp_path / "slave")
    put(master, *(message(body=b"%d" % n) for n in range(5)))
    copy(master, slave)
    master.delete_topics(["TopicA"])
    put(master, message(body=b"new"))
    copy(master, slave)
    assert slave.max_offset_in_queue("TopicA", 0) == 1
    assert queues(slave) == queues(master)


def test_queues_follow_a_part_at_a_time(open_store: OpenFileStore, tmp_path: Path) -> None:
    master, slave = open_store(), open_store(tmp_path / "slave")
    put(master, *(message(body=b"x" * 500) for _ in range(1200)))
    for offset, data in pieces(master, 0, 1 << 20):
        slave.append_log(offset, data)
    ends = []
    while slave.dispatch():
        ends.append(slave.max_offset_in_queue("TopicA", 0))
        assert slave.check() == []
    assert len(ends) > 1
    assert ends == sorted(set(ends))
    assert slave.max_offset_in_queue("TopicA", 0) == 1200
    assert queues(slave) == queues(master)


def test_closing_gives_the_queues_all(open_store: OpenFileStore, tmp_path: Path, master: Any) -> None:
    slave = open_store(tmp_path / "slave")
    for offset, data in pieces(master, 0, 1 << 20):
        slave.append_log(offset, data)
    slave.close()
    slave.start()
    assert (slave.recovery_report.clean, slave.recovery_report.entries_written) == (True, 0)
    assert queues(slave) == queues(master)


def test_queues_catch_up_when_the_disk_has_room_again(open_store: OpenFileStore, tmp_path: Path, master: Any) -> None:
    full = True

    def allocate(descriptor: int, start: int, count: int) -> None:
        if full and "consumequeue" in os.readlink(f"/proc/self/fd/{descriptor}"):
            raise OSError(errno.ENOSPC, "No space left on device")
        posix_fallocate(descriptor, start, count)

    slave = open_store(tmp_path / "slave", keywords={"allocate": allocate})
    for offset, data in pieces(master, 0, 1 << 20):
        slave.append_log(offset, data)
    assert slave.dispatch() is False
    assert (slave.topics(), slave.max_offset_in_queue("TopicA", 0)) == (["TopicA"], 0)
    full = False
    slave.dispatch()
    assert queues(slave) == queues(master)


def test_delayed_messages_have_their_delivery_time(open_store: OpenFileStore, tmp_path: Path) -> None:
    master, slave = open_store(), open_store(tmp_path / "slave")
    delayed = {"properties": b"DELAY\x013\x02TAGS\x01TagA\x02", "property_map": {"DELAY": "3", "TAGS": "TagA"}}
    put(master, *(message("SCHEDULE_TOPIC_XXXX", 2, **delayed) for _ in range(5)), message())
    copy(master, slave)
    entries = slave.queue_entries("SCHEDULE_TOPIC_XXXX", 2, 0, 10)
    assert entries == master.queue_entries("SCHEDULE_TOPIC_XXXX", 2, 0, 10)
    assert queues(slave) == queues(master)


def test_record_that_is_damaged_inside_enters_no_queue(
    open_store: OpenFileStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its topic's length does not fit to its size: the master's log has it so."""
    master, slave = open_store(), open_store(tmp_path / "slave")
    offsets = [
        one.physical_offset for one in put(master, *(message(topic) for topic in ("TopicA", "TopicB", "TopicC")))
    ]
    data = bytearray(log(master))
    data[offsets[1] + 88 + len(b"hello")] += 1
    slave.append_log(0, bytes(data))
    slave.dispatch()
    assert (slave.topics(), slave.max_physical_offset()) == (["TopicA", "TopicC"], len(data))
    assert f"enters no queue: offset={offsets[1]}" in caplog.text
    assert slave.check()[0].offset == offsets[1]
    slave.close()


def test_damaged_queue_offset_takes_no_disk_space(
    open_store: OpenFileStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A gap longer than a queue's file is not filled, as in recovery."""
    slave = open_store(tmp_path / "slave")
    for queue_offset in (0, 10_000, 1):
        start = slave.max_physical_offset()
        slave.append_log(start, record(start, queue_offset))
    slave.dispatch()
    assert slave.max_offset_in_queue("TopicA", 0) == 2
    assert "too many are missing before it: offset=98 topic=TopicA queue=0 from=1 to=10000" in caplog.text
    assert os.listdir(slave.config.paths.queue("TopicA", 0)) == ["0" * 20]
    assert [one.offset for one in slave.check()] == [10_000]
    slave.close()


def record(physical_offset: int, queue_offset: int, sys_flag: int = 0, properties: bytes = b"") -> bytes:
    return encode_record(
        b"TopicA", b"x", properties, queue_id=0, queue_offset=queue_offset, physical_offset=physical_offset,
        born_timestamp=0, born_host=bytes(8), store_timestamp=1, store_host=bytes(8), sys_flag=sys_flag,
    )  # fmt: skip


def test_queue_becomes_one_for_batches_when_the_disk_has_room_again(open_store: OpenFileStore, tmp_path: Path) -> None:
    full = False

    def allocate(descriptor: int, start: int, count: int) -> None:
        if full:
            raise OSError(errno.ENOSPC, "No space left on device")
        posix_fallocate(descriptor, start, count)

    slave = open_store(tmp_path / "slave", keywords={"allocate": allocate})
    plain = record(0, 0)
    batch = record(len(plain), 1, MessageSysFlag.INNER_BATCH_FLAG, b"INNER_NUM\x013\x02INNER_BASE\x011\x02")
    slave.append_log(0, plain)
    slave.dispatch()
    slave.append_log(len(plain), batch)
    full = True
    slave.dispatch()
    assert slave.max_offset_in_queue("TopicA", 0) == 1
    full = False
    slave.dispatch()
    assert slave.max_offset_in_queue("TopicA", 0) == 4
    assert [bytes(one) for one in slave.get_message("TopicA", 0, 0, 32, 1 << 20, None).records] == [plain, batch]
