"""Flushing: group commit, time limits, failures, and what synchronous flush makes visible."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.storage.conftest import START_MS, OpenFileStore, SettableClock, config, message, put
from tests.support.batches import batched
from twisted_mq.storage.appending.gate import Gate
from twisted_mq.storage.config import FlushDiskType
from twisted_mq.storage.files.checkpoint import Checkpoint
from twisted_mq.storage.flushing.flush import FlushService
from twisted_mq.storage.interfaces import GetStatus, PutStatus
from twisted_mq.storage.log.commit_log import CommitLog
from twisted_mq.storage.message_store import FileMessageStore

SYNC = {"flush_disk_type": FlushDiskType.SYNC_FLUSH}
WAIT_SECONDS = 10.0


@attrs.define
class Disk:
    """Replacement of fdatasync that counts, and can be held or made to fail."""

    calls: int = 0
    error: OSError | None = None
    open: threading.Event = attrs.field(factory=threading.Event)
    entered: threading.Event = attrs.field(factory=threading.Event)

    def __attrs_post_init__(self) -> None:
        self.open.set()

    def __call__(self, descriptor: int) -> None:
        self.entered.set()
        assert self.open.wait(WAIT_SECONDS)
        self.calls += 1
        if self.error is not None:
            raise self.error


class Answers:
    """Collects what flush callbacks say, and the threads they come from."""

    def __init__(self) -> None:
        self.values: list[bool] = []
        self.threads: set[str] = set()
        self._more = threading.Condition()

    def __call__(self, done: bool) -> None:
        with self._more:
            self.values.append(done)
            self.threads.add(threading.current_thread().name)
            self._more.notify_all()

    def wait_for(self, count: int) -> list[bool]:
        with self._more:
            assert self._more.wait_for(lambda: len(self.values) >= count, WAIT_SECONDS)
            return list(self.values)


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def open_on(open_store: OpenFileStore, disk: Disk) -> Callable[..., FileMessageStore]:
    def open_one(**fields: Any) -> FileMessageStore:
        return open_store(keywords={"sync": disk}, flush_interval_commit_log_ms=3_600_000, **fields)

    return open_one


def test_waiting_callback_is_answered_when_the_log_is_on_disk(open_on: Any) -> None:
    store, answers = open_on(), Answers()
    (result,) = put(store, message())
    assert store.flushed_offset() == 0
    store.when_flushed(result.end_offset, answers)
    assert answers.wait_for(1) == [True]
    assert store.flushed_offset() == result.end_offset
    assert answers.threads == {"store-flush"}


def test_one_flush_answers_all_that_wait(open_on: Any, disk: Disk) -> None:
    store, first, rest = open_on(), Answers(), Answers()
    disk.open.clear()
    (result,) = put(store, message())
    store.when_flushed(result.end_offset, first)
    assert disk.entered.wait(WAIT_SECONDS)
    for result in put(store, *[message() for _ in range(20)]):
        store.when_flushed(result.end_offset, rest)
    disk.open.set()
    assert rest.wait_for(20) == [True] * 20
    assert (first.values, disk.calls) == ([True], 2)


def test_flushed_offset_is_answered_without_another_flush(open_on: Any, disk: Disk) -> None:
    store, answers = open_on(), Answers()
    (result,) = put(store, message())
    store.when_flushed(result.end_offset, answers)
    answers.wait_for(1)
    calls = disk.calls
    store.when_flushed(result.end_offset, answers)
    assert (answers.wait_for(2), disk.calls) == ([True, True], calls)


def test_hanging_disk_is_answered_false_in_time(open_store: OpenFileStore, disk: Disk) -> None:
    seconds = [100.0]
    store = open_store(keywords={"sync": disk, "monotonic": lambda: seconds[0]}, sync_flush_timeout_ms=50)
    answers = Answers()
    disk.open.clear()
    (result,) = put(store, message())
    store.when_flushed(result.end_offset, answers)
    assert disk.entered.wait(WAIT_SECONDS)
    seconds[0] += 0.05
    assert answers.wait_for(1) == [False]
    assert answers.threads == {"store-flush-watcher"}
    disk.open.set()
    store.when_flushed(result.end_offset, answers)
    assert answers.wait_for(2) == [False, True]


def test_failed_flush_is_final(open_on: Any, disk: Disk, tmp_path: Path) -> None:
    store, answers = open_on(), Answers()
    (result,) = put(store, message())
    disk.error = OSError(5, "Input/output error")
    store.when_flushed(result.end_offset, answers)
    assert answers.wait_for(1) == [False]
    disk.error = None
    assert store.put_message(message()).status is PutStatus.SERVICE_NOT_AVAILABLE
    assert store.put_messages(batched([message()])).status is PutStatus.SERVICE_NOT_AVAILABLE
    store.when_flushed(result.end_offset, answers)
    assert answers.wait_for(2) == [False, False]
    with pytest.raises(OSError, match="Input/output error"):
        store.close()
    assert (tmp_path / "store" / "abort").exists()
    store.start()
    assert store.recovery_report.clean is False
    assert put(store, message())[0].queue_offset == 1


def test_closing_shows_nothing_that_a_failed_flush_lost(by_hand: ByHand, disk: Disk) -> None:
    store, flush, _ = by_hand
    heard: list[int] = []

    def arrived(topic: str, queue_id: int, queue_offset: int, *_: int) -> None:
        heard.append(queue_offset)

    put(store, message())
    flush.turn()
    store.put_message(message())
    store.dispatch(arrived)
    disk.error = OSError(5, "Input/output error")
    flush.turn()
    with pytest.raises(OSError, match="Input/output error"):
        store.close()
    assert (heard, store.max_offset_in_queue("TopicA", 0)) == ([0], 1)
    disk.error = None
    store.start()
    assert store.max_offset_in_queue("TopicA", 0) == 2
    put(store, message())
    flush = store._flush
    assert flush is not None
    flush.turn()
    store.dispatch(arrived)
    assert heard == [0, 2]


def test_synchronous_flush_hides_what_is_not_on_disk(open_on: Any, disk: Disk) -> None:
    store, answers = open_on(**SYNC), Answers()
    disk.open.clear()
    (result,) = put(store, message())
    assert store.max_offset_in_queue("TopicA", 0) == 0
    store.when_flushed(result.end_offset, answers)
    disk.open.set()
    answers.wait_for(1)
    assert store.max_offset_in_queue("TopicA", 0) == 0
    store.dispatch()
    assert store.get_message("TopicA", 0, 0, 32, 1 << 20, None).status is GetStatus.FOUND


def test_synchronous_flush_wakes_for_messages_nobody_waits_for(open_on: Any, disk: Disk) -> None:
    store = open_on(**SYNC)
    put(store, message())
    assert disk.entered.wait(WAIT_SECONDS)
    answers = Answers()
    store.when_flushed(0, answers)
    answers.wait_for(1)
    store.dispatch()
    assert store.max_offset_in_queue("TopicA", 0) == 1


def test_closing_makes_everything_visible_and_durable(open_on: Any, disk: Disk, clock: SettableClock) -> None:
    store = open_on(**SYNC)
    (result,) = put(store, message())
    store.close()
    assert store.flushed_offset() == result.end_offset
    store.start()
    assert (store.recovery_report.clean, store.max_offset_in_queue("TopicA", 0)) == (True, 1)


def test_waiting_callbacks_are_answered_on_close(open_on: Any, disk: Disk) -> None:
    store, answers = open_on(), Answers()
    disk.open.clear()
    (result,) = put(store, message())
    for _ in range(3):
        store.when_flushed(result.end_offset, answers)
    disk.open.set()
    store.close()
    assert answers.values == [True] * 3


def test_closing_saves_the_checkpoint(open_on: Any, tmp_path: Path, clock: SettableClock) -> None:
    store = open_on()
    put(store, message())
    clock.now += 1000
    put(store, message())
    store.close()
    saved = Checkpoint.load(str(tmp_path / "store" / "checkpoint"))
    assert (saved.physic_msg_timestamp, saved.logics_msg_timestamp) == (START_MS + 1000, START_MS + 1000)
    assert (tmp_path / "store" / "checkpoint").stat().st_size == 4096


def test_periodic_work_flushes_log_queues_and_checkpoint(open_store: OpenFileStore, disk: Disk, tmp_path: Path) -> None:
    store = open_store(
        keywords={"sync": disk},
        flush_interval_commit_log_ms=1,
        flush_commit_log_thorough_interval_ms=0,
        flush_interval_consume_queue_ms=0,
        flush_consume_queue_thorough_interval_ms=0,
        flush_checkpoint_interval_ms=0,
    )
    (result,) = put(store, message())
    answers = Answers()
    for _ in range(1000):
        store.when_flushed(result.end_offset, answers)
        answers.wait_for(1)
        saved = Checkpoint.load(str(tmp_path / "store" / "checkpoint"))
        if saved.logics_msg_timestamp == START_MS:
            break
        threading.Event().wait(0.005)
    assert (saved.physic_msg_timestamp, saved.logics_msg_timestamp) == (START_MS, START_MS)
    assert store.flushed_offset() == result.end_offset


def test_asynchronous_flush_waits_for_four_pages(open_on: Any, disk: Disk) -> None:
    store = open_on(mapped_file_size_commit_log=1 << 20, flush_commit_log_thorough_interval_ms=3_600_000)
    flush = store._flush
    put(store, message(body=bytes(3 * 4096)))
    flush._flush_what_is_due()
    assert store.flushed_offset() == 0
    put(store, message(body=bytes(4096)))
    flush._flush_what_is_due()
    assert store.flushed_offset() == store.max_physical_offset()


def test_topic_deleted_while_flushing_is_no_error(open_on: Any) -> None:
    store = open_on()
    put(store, message())
    queues = list(store._queues)
    store.delete_topics({"TopicA"})
    for queue in queues:
        queue.flush(0)
    assert store.topics() == []


def test_log_is_flushed_as_soon_as_enough_is_written_where_no_interval_is_kept(open_on: Any, disk: Disk) -> None:
    """flushCommitLogTimed=false: two pages, but one page is left for the interval."""
    store = open_on(flush_commit_log_timed=False, flush_commit_log_least_pages=2, mapped_file_size_commit_log=1 << 20)
    put(store, message(body=bytes(6000)))
    assert (disk.calls, store.flushed_offset()) == (0, 0)
    disk.entered.clear()
    (result,) = put(store, message(body=bytes(6000)))
    assert disk.entered.wait(WAIT_SECONDS)
    answers = Answers()
    store.when_flushed(result.end_offset, answers)
    assert answers.wait_for(1) == [True]
    assert disk.calls == 1


class Seconds:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def by_hand(
    open_store: OpenFileStore, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> tuple[FileMessageStore, FlushService, Seconds]:
    """A store under synchronous flush whose flush thread's turns are taken by the test."""
    monkeypatch.setattr(FlushService, "start", lambda self: None)
    seconds = Seconds()
    store = open_store(keywords={"sync": disk, "monotonic": seconds}, **SYNC)
    assert store._flush is not None
    return store, store._flush, seconds


ByHand = tuple[FileMessageStore, FlushService, Seconds]


def test_requests_during_a_flush_wait_in_the_other_list(by_hand: ByHand, disk: Disk) -> None:
    store, flush, _ = by_hand
    first, second = Answers(), Answers()
    for result in put(store, message(), message()):
        store.when_flushed(result.end_offset, first)

    def ask_meanwhile(descriptor: int) -> None:
        Disk.__call__(disk, descriptor)
        if not second.values and len(flush._requests) == 0 and disk.calls == 1:
            (result,) = put(store, message())
            store.when_flushed(result.end_offset, second)

    flush._sync = ask_meanwhile
    assert (first.values, disk.calls) == ([], 0)
    flush.turn()
    assert (first.values, second.values, disk.calls) == ([True, True], [], 1)
    flush.turn()
    assert (second.values, disk.calls) == ([True], 2)


def test_what_nobody_waits_for_is_on_disk_after_ten_milliseconds(by_hand: ByHand, disk: Disk) -> None:
    store, flush, seconds = by_hand
    store.put_message(message())
    assert flush.turn_seconds == 0.01
    seconds.now += flush.turn_seconds
    flush.turn()
    assert (store.flushed_offset(), disk.calls) == (store.max_physical_offset(), 1)
    flush.turn()
    assert disk.calls == 1


def test_a_request_is_answered_false_when_its_time_is_over(by_hand: ByHand) -> None:
    store, flush, seconds = by_hand
    answers, later = Answers(), Answers()
    (result,) = put(store, message())
    store.when_flushed(result.end_offset, answers)
    assert flush.answer_late() == 1.0
    seconds.now += 4.5
    store.when_flushed(result.end_offset, later)
    assert (flush.answer_late(), answers.values) == (0.5, [])
    seconds.now += 0.5
    assert (flush.answer_late(), answers.values, later.values) == (1.0, [False], [])
    flush.turn()
    assert (answers.values, later.values) == ([False], [True])


@pytest.fixture
def at_intervals(
    open_store: OpenFileStore, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> tuple[FileMessageStore, FlushService, Seconds]:
    """The same under asynchronous flush, with Apache's intervals."""
    monkeypatch.setattr(FlushService, "start", lambda self: None)
    seconds = Seconds()
    store = open_store(
        keywords={"sync": disk, "monotonic": seconds},
        mapped_file_size_commit_log=1 << 20,
        mapped_file_size_consume_queue=20 << 10,
    )
    assert store._flush is not None
    return store, store._flush, seconds


def test_less_than_four_pages_of_the_log_wait_ten_seconds(at_intervals: ByHand) -> None:
    store, flush, seconds = at_intervals
    assert flush.turn_seconds == 0.5
    put(store, message())
    seconds.now += 9.9
    flush.turn()
    assert store.flushed_offset() == 0
    seconds.now += 0.1
    flush.turn()
    assert store.flushed_offset() == store.max_physical_offset()


def test_queues_are_flushed_by_pages_each_second_and_wholly_each_minute(at_intervals: ByHand) -> None:
    store, flush, seconds = at_intervals
    queue = {number: store._queues.make("TopicA", number) for number in range(2)}
    put(store, *[message(body=b"") for _ in range(2 * 4096 // 20 + 1)], message(queue_id=1))
    flush.turn()
    assert (queue[0].flushed_offset, queue[1].flushed_offset) == (0, 0)
    seconds.now += 1
    flush.turn()
    assert (queue[0].flushed_offset, queue[1].flushed_offset) == (queue[0].max_offset, 0)
    seconds.now += 58.9
    flush.turn()
    assert queue[1].flushed_offset == 0
    seconds.now += 1
    flush.turn()
    assert queue[1].flushed_offset == 1


def test_the_checkpoint_says_what_was_put_on_disk_before_it(
    at_intervals: ByHand, disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Log, then queues, then the checkpoint with the times that both had then."""
    store, flush, seconds = at_intervals
    order: list[str] = []

    def noted(descriptor: int) -> None:
        order.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).relative_to(tmp_path / "store").parts[0])

    flush._sync = noted
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    put(store, message())
    seconds.now += 61
    flush.turn()
    assert order == ["commitlog", "consumequeue", "checkpoint"]
    saved = Checkpoint.load(str(tmp_path / "store" / "checkpoint"))
    assert (saved.physic_msg_timestamp, saved.logics_msg_timestamp) == (START_MS, START_MS)


def test_what_is_truncated_during_a_flush_and_written_anew_is_not_on_disk(tmp_path: Path) -> None:
    """A slave removes bytes that its master must send again; the disk may be writing them."""
    log = CommitLog(str(tmp_path / "commitlog"), 4096, 4096)

    def write_anew(descriptor: int) -> None:
        if log.max_offset == 100:
            log.truncate(60)
            log.append_bytes(b"y" * 100)

    checkpoint = Checkpoint(str(tmp_path / "checkpoint"))
    flush = FlushService(config(tmp_path), log, checkpoint, Gate(), list, lambda: 0, sync=write_anew)
    log.append_bytes(b"x" * 100)
    flush.flush_log()
    assert (log.flushed_offset, log.max_offset) == (60, 160)
    flush.flush_log()
    assert log.flushed_offset == 160


def test_a_shortage_of_descriptors_passes(open_store: OpenFileStore, disk: Disk) -> None:
    """Strangers may hold all descriptors for a while; what the disk itself says is for good."""
    store = open_store(keywords={"sync": disk}, **SYNC)
    answers: list[bool] = []
    disk.error = OSError(errno.EMFILE, "Too many open files", "/store/commitlog/0")
    (result,) = put(store, message())
    answered = threading.Event()
    store.when_flushed(result.end_offset, lambda done: (answers.append(done), answered.set()))
    assert answered.wait(WAIT_SECONDS)
    disk.error = None
    assert store.put_message(message()).status is PutStatus.PUT_OK
    later = threading.Event()
    store.when_flushed(store.max_physical_offset(), lambda done: (answers.append(done), later.set()))
    assert later.wait(WAIT_SECONDS)
    assert answers == [False, True]
