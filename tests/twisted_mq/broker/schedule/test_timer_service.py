"""Messages for any time on a virtual clock: ticks, recalls, rolls, restarts and what a kill leaves behind."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.support.store_load import small_config
from tests.twisted_mq.broker.schedule.test_schedule_service import SettableClock, takes
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.broker.schedule.postpone import Postponement, set_properties
from twisted_mq.broker.schedule.timer_service import MESSAGES_A_TURN, TimerService
from twisted_mq.protocol.layouts.record_codec import decode_message
from twisted_mq.protocol.layouts.timer import MAGIC_DEFAULT
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.protocol.names.system_topics import TIMER_TOPIC
from twisted_mq.storage.config import FlushDiskType, StoreConfig
from twisted_mq.storage.errors import StoreFull
from twisted_mq.storage.interfaces import InnerMessage, PutResult, PutStatus
from twisted_mq.storage.memory.memory_store import MemoryMessageStore
from twisted_mq.storage.message_store import FileMessageStore
from twisted_mq.storage.timer.timer_checkpoint import TimerCheckpoint
from twisted_mq.storage.timer.timer_files import TimerFiles

SLOTS = 1000
"""Instead of a week's; the roll window is then 940 s at most."""


class Waiting:
    """A store in memory with a timer over files; `restart` throws the timer away as a kill would.

    `parts` are given to each timer that `restart` makes.
    """

    def __init__(self, root: Path, **options: Any) -> None:
        self.clock = SettableClock()
        self.root = root
        self.parts: dict[str, Any] = {}
        self.options = BrokerOptions(broker_name="b", mapped_file_size_timer_log=4096, **options)
        self.store = MemoryMessageStore(StoreConfig(store_path_root_dir="/nowhere"), self.clock)
        self.store.start()
        self.postponement = Postponement(self.options, self.clock, random.Random(1))
        self.restart()

    def restart(self, *, clean: bool = False) -> None:
        if clean:
            self.save()
            self.timer.files.close()
        self.files = TimerFiles(
            str(self.root),
            self.options.timer_precision_ms,
            self.options.mapped_file_size_timer_log,
            slots=SLOTS,
            sync=lambda descriptor: None,
        )
        self.timer = TimerService(self.store, self.files, self.options, self.clock, **self.parts)
        self.timer.start(clean=clean)

    def save(self) -> None:
        self.files.write(self.timer.progress())

    def send(self, body: bytes, delay_ms: int, topic: str = "T", queue_id: int = 0, **properties: str) -> InnerMessage:
        message = InnerMessage(topic, queue_id, body, b"", {}, 0, born_timestamp=self.clock.now)
        asked = {"UNIQ_KEY": f"K{body.decode()}", "TIMER_DELIVER_MS": str(self.clock.now + delay_ms), **properties}
        set_properties(message, asked)
        self.postponement.apply(message)
        assert self.store.put_message(message).status is PutStatus.PUT_OK
        self.store.dispatch()
        return message

    def recall(self, sent: InnerMessage) -> None:
        key = f"{sent.property_map['REAL_TOPIC']}+{sent.property_map['UNIQ_KEY']}"
        delay_ms = int(sent.property_map["TIMER_OUT_MS"]) + 1 - self.clock.now
        self.send(b"0", delay_ms, TIMER_DEL_UNIQKEY=key, UNIQ_KEY=sent.property_map["UNIQ_KEY"])

    def run(self, seconds: float = 0) -> None:
        """Let time pass in steps of at most a second, with all turns that are due."""
        end = self.clock.now + int(seconds * 1000)
        while True:
            self.clock.now = min(end, self.clock.now + 1000)
            while self.timer.turn():
                self.store.dispatch()
            self.store.dispatch()
            if self.clock.now == end:
                return

    def delivered(self, queue_id: int = 0, topic: str = "T") -> list[MessageExt]:
        count = self.store.max_offset_in_queue(topic, queue_id)
        reads = [self.store.get_message(topic, queue_id, at, 1, 1 << 20, None) for at in range(count)]
        return [decode_message(one.records[0]) for one in reads]

    def bodies(self, queue_id: int = 0) -> list[bytes]:
        return [one.body for one in self.delivered(queue_id)]


@pytest.fixture
def waiting(tmp_path: Path) -> Waiting:
    return Waiting(tmp_path)


def test_message_comes_within_the_second_behind_its_time_and_never_before(waiting: Waiting) -> None:
    waiting.send(b"x", 3300, queue_id=2, TAGS="A")
    begin = waiting.clock.now
    while not waiting.bodies(2):
        waiting.run(0.1)
    (message,) = waiting.delivered(2)
    assert 3300 <= message.store_timestamp - begin <= 4300
    out_ms = (begin + 3300) // 1000 * 1000
    assert message.properties == {
        "UNIQ_KEY": "Kx", "TAGS": "A", "TIMER_DELIVER_MS": str(begin + 3300), "TIMER_OUT_MS": str(out_ms),
        "REAL_TOPIC": "T", "REAL_QID": "2", "TIMER_ENQUEUE_MS": str((begin + 100) // 1000 * 1000),
        "TIMER_DEQUEUE_MS": str(message.store_timestamp),
    }  # fmt: skip


def test_whole_second_is_delivered_in_its_first_moment(waiting: Waiting) -> None:
    waiting.send(b"x", 5000)
    waiting.run(4.9)
    assert waiting.bodies() == []
    waiting.run(0.1)
    assert waiting.bodies() == [b"x"]


def test_order_is_that_of_the_times_and_within_a_second_that_of_the_sends(waiting: Waiting) -> None:
    for number, delay in enumerate((9000, 3000, 3100, 9000, 1000, 3050)):
        waiting.send(b"%d" % number, delay)
    waiting.run(20)
    assert waiting.bodies() == [b"4", b"1", b"2", b"5", b"0", b"3"] or waiting.bodies() == [
        b"4", b"1", b"5", b"2", b"0", b"3",
    ]  # fmt: skip


def test_files_are_made_with_the_first_message(waiting: Waiting) -> None:
    waiting.run(5)
    assert sorted(path.name for path in waiting.root.iterdir()) == []
    waiting.send(b"x", 5000)
    waiting.run(1)
    waiting.save()
    assert sorted(path.name for path in waiting.root.iterdir()) == ["config", "timerlog", "timerwheel"]
    assert (waiting.root / "timerwheel").stat().st_size == 2 * SLOTS * 32
    assert sorted(path.name for path in (waiting.root / "config").iterdir()) == ["timercheck", "timermetrics"]


def test_recalled_message_is_not_delivered_and_its_neighbours_are(waiting: Waiting) -> None:
    waiting.send(b"before", 5000)
    sent = waiting.send(b"x", 5000)
    waiting.send(b"after", 5000)
    waiting.send(b"x", 9000, topic="U")
    waiting.run(2)
    waiting.recall(sent)
    waiting.run(20)
    assert waiting.bodies() == [b"before", b"after"]
    assert [one.body for one in waiting.delivered(topic="U")] == [b"x"]
    assert {topic: one.count for topic, one in waiting.files.metrics.counts.items()} == {"T": 0, "U": 0}


def test_recall_right_behind_its_send_and_just_before_the_tick_works(waiting: Waiting) -> None:
    waiting.recall(waiting.send(b"at once", 5000))
    late = waiting.send(b"late", 5000)
    waiting.run(3.9)
    waiting.recall(late)
    waiting.run(10)
    assert waiting.bodies() == []


def test_message_past_the_roll_window_is_put_anew_until_its_time(tmp_path: Path) -> None:
    waiting = Waiting(tmp_path, timer_roll_window_slot=30)
    begin = waiting.clock.now
    waiting.send(b"x", 100_000)
    waiting.run(99)
    assert waiting.bodies() == []
    waiting.run(2)
    (message,) = waiting.delivered()
    assert message.store_timestamp - begin == 100_000
    assert int(message.properties["TIMER_ROLL_TIMES"]) == waiting.store.max_offset_in_queue(TIMER_TOPIC, 0) - 1 > 2


def test_recall_of_a_message_past_the_roll_window_reaches_it(tmp_path: Path) -> None:
    waiting = Waiting(tmp_path, timer_roll_window_slot=30)
    sent = waiting.send(b"x", 100_000)
    waiting.run(50)
    waiting.recall(sent)
    waiting.run(100)
    assert waiting.bodies() == []


def test_many_of_one_second_are_delivered_in_turns(waiting: Waiting) -> None:
    count = MESSAGES_A_TURN * 3 + 7
    for number in range(count):
        waiting.send(b"%d" % number, 2000)
    waiting.timer.turn()
    assert waiting.timer.queue_offset == 32
    waiting.run(1)
    assert waiting.files.count(waiting.clock.now) == count
    waiting.clock.now += 1000
    assert waiting.timer.turn() is True
    waiting.run()
    assert waiting.bodies() == [b"%d" % number for number in range(count)]


def test_timer_that_was_stopped_for_an_hour_delivers_what_became_due_in_order(waiting: Waiting) -> None:
    waiting.send(b"second", 60_000)
    waiting.send(b"first", 30_000)
    waiting.run(1)
    waiting.restart(clean=True)
    waiting.clock.now += 3_600_000
    waiting.send(b"third", 10_000)
    waiting.run(11)
    assert waiting.bodies() == [b"first", b"second", b"third"]


def test_stop_longer_than_the_wheel_loses_nothing(waiting: Waiting) -> None:
    waiting.send(b"old", 30_000)
    waiting.run(1)
    waiting.restart(clean=True)
    waiting.clock.now += (3 * SLOTS) * 1000
    for number in range(50):
        waiting.send(b"%d" % number, 1000 + 10_000 * number)
    waiting.run(600)
    assert waiting.bodies() == [b"old"] + [b"%d" % number for number in range(50)]


def test_switches_stop_taking_and_delivering(waiting: Waiting) -> None:
    waiting.options.timer_stop_enqueue = True
    waiting.send(b"x", 1000)
    waiting.run(5)
    assert (waiting.bodies(), waiting.timer.queue_offset) == ([], 0)
    waiting.options.timer_stop_enqueue, waiting.options.timer_stop_dequeue = False, True
    waiting.send(b"y", 1000)
    waiting.run(5)
    assert waiting.timer.queue_offset == 2
    waiting.options.timer_stop_dequeue = False
    waiting.run(1)
    assert sorted(waiting.bodies()) == [b"x", b"y"]


def test_message_that_came_behind_its_tick_says_so(waiting: Waiting) -> None:
    waiting.options.timer_stop_enqueue = True
    waiting.send(b"x", 1000)
    waiting.run(5)
    waiting.options.timer_stop_enqueue = False
    waiting.run(1)
    assert [one.properties["TIMER_ENQUEUE_MS"] for one in waiting.delivered()] == [str(2**63 - 1)]


def test_store_that_takes_nothing_delays_and_loses_nothing(waiting: Waiting) -> None:
    waiting.send(b"x", 1000)
    waiting.send(b"y", 1000)
    put = waiting.store.put_message
    waiting.store.put_message = takes(put, 1)
    waiting.run(5)
    assert waiting.bodies() == [b"x"]
    waiting.store.put_message = put
    waiting.run(1)
    assert waiting.bodies() == [b"x", b"y"]


def test_full_disk_delays_and_loses_nothing(waiting: Waiting, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object) -> None:
        raise StoreFull("timerlog", OSError(28, "No space left on device"))

    with monkeypatch.context() as patch:
        patch.setattr(waiting.files, "add", full)
        waiting.send(b"x", 5000)
        waiting.run(1)
        assert waiting.timer.queue_offset == 0
    waiting.run(5)
    assert waiting.bodies() == [b"x"]


def test_foreign_messages_in_the_timers_topic_are_passed_over(waiting: Waiting) -> None:
    for properties in ({}, {"TIMER_OUT_MS": "soon"}, {"TIMER_OUT_MS": "5"}):
        text = "".join(f"{name}\x01{value}\x02" for name, value in properties.items()).encode()
        waiting.store.put_message(InnerMessage(TIMER_TOPIC, 0, b"?", text, properties, 0))
    waiting.send(b"x", 1000)
    waiting.run(3)
    assert (waiting.bodies(), waiting.timer.queue_offset) == ([b"x"], 4)


def test_properties_without_room_for_the_timers_own_are_delivered_without(waiting: Waiting) -> None:
    size = 32767 - len(waiting.send(b"measure", 1000, P="").properties)
    waiting.send(b"x______", 1000, P="p" * size)
    waiting.run(3)
    (first, second) = waiting.delivered()
    assert ("TIMER_DEQUEUE_MS" in first.properties, "TIMER_DEQUEUE_MS" in second.properties) == (True, False)


# Restarts


def settle(waiting: Waiting, seconds: int) -> list[int]:
    waiting.run(seconds)
    return sorted(int(body) for queue_id in (0, 1) for body in waiting.bodies(queue_id))


def lose_log(root: Path) -> None:
    for path in (root / "timerlog").iterdir():
        path.unlink()


def lose_wheel(root: Path) -> None:
    (root / "timerwheel").unlink(missing_ok=True)


def lose_checkpoint(root: Path) -> None:
    (root / "config" / "timercheck").unlink(missing_ok=True)


def lose_nothing(root: Path) -> None:
    return


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("lose", [lose_nothing, lose_log, lose_wheel, lose_checkpoint])
def test_after_kills_nothing_is_lost_nothing_comes_twice_and_recalls_hold(
    tmp_path: Path, seed: int, lose: Callable[[Path], None]
) -> None:
    """The timer is thrown away between two deliveries; its files lie as they were, or one of them is gone."""
    chance = random.Random(seed)
    waiting = Waiting(tmp_path, timer_roll_window_slot=40)
    sent: dict[int, InnerMessage] = {}
    recalled = set()
    put = waiting.store.put_message
    for number in range(80):
        sent[number] = waiting.send(b"%d" % number, chance.randrange(1000, 90_000), queue_id=chance.randrange(2))
        if chance.random() < 0.2:
            victim = chance.choice(list(sent))
            if int(sent[victim].property_map["TIMER_OUT_MS"]) > waiting.clock.now + 2000:
                waiting.recall(sent[victim])
                recalled.add(victim)
        if chance.random() < 0.5:
            waiting.store.put_message = takes(put, chance.randrange(4))
            waiting.run(chance.randrange(3))
            waiting.store.put_message = put
        if chance.random() < 0.2:
            waiting.save()
        if chance.random() < 0.15:
            if (tmp_path / "timerlog").exists():
                lose(tmp_path)
            waiting.restart()
    assert settle(waiting, 120) == sorted(set(sent) - recalled)


def test_copy_is_found_after_a_kill_although_a_clock_was_set_back(tmp_path: Path) -> None:
    """The queue's store times go back, so that a search by time begins behind the copy."""
    waiting = Waiting(tmp_path)
    config = small_config(tmp_path / "store", flush_disk_type=FlushDiskType.ASYNC_FLUSH)
    waiting.store = FileMessageStore(config, waiting.clock)  # type: ignore[assignment]
    waiting.store.start()
    waiting.restart()
    waiting.send(b"delayed", 5000)
    waiting.run(6)
    waiting.clock.now -= 60_000
    for number in range(5):
        message = InnerMessage("T", 0, b"%d" % number, b"", {}, 0)
        assert waiting.store.put_message(message).status is PutStatus.PUT_OK
    waiting.store.dispatch()
    waiting.clock.now += 120_000
    lose_log(waiting.root)
    lose_checkpoint(waiting.root)
    waiting.restart()
    waiting.run(5)
    bodies = waiting.bodies()
    waiting.store.close()
    assert bodies.count(b"delayed") == 1


@pytest.mark.parametrize("clean", [True, False])
def test_restart_finds_the_waiting_messages_where_they_were(waiting: Waiting, clean: bool) -> None:
    for number in range(200):
        waiting.send(b"%d" % number, 10_000 + 100 * number)
    waiting.run(1)
    before = [waiting.files.count(waiting.clock.now + 1000 * second) for second in range(40)]
    waiting.restart(clean=clean)
    assert [waiting.files.count(waiting.clock.now + 1000 * second) for second in range(40)] == before
    assert (sum(before), waiting.timer.queue_offset, waiting.files.metrics.counts.get("T") is not None) == (
        200, 200, clean,
    )  # fmt: skip
    assert settle(waiting, 40) == list(range(200))


def test_log_whose_end_was_lost_with_the_commit_logs_is_cut(waiting: Waiting) -> None:
    """After a power cut: units that speak of messages that are not in the commit log are forgotten."""
    waiting.send(b"1", 5000)
    waiting.run(1)
    end = waiting.files.log.end
    waiting.files.add(waiting.clock.now + 5000, waiting.clock.now, 1, 10_000_000, 100, 7)
    waiting.restart()
    assert waiting.files.log.end == end
    assert settle(waiting, 10) == [1]


def test_put_result_of_a_refused_message_is_told_once_and_it_is_passed_over(waiting: Waiting) -> None:
    waiting.send(b"1", 1000)
    waiting.send(b"2", 1000)
    put = waiting.store.put_message
    waiting.store.put_message = lambda message: (
        PutResult(PutStatus.MESSAGE_ILLEGAL) if message.body == b"1" else put(message)
    )
    assert settle(waiting, 3) == [2]


def test_recall_holds_for_a_message_that_rolled_while_the_broker_was_stopped(tmp_path: Path) -> None:
    """Both are put into the topic again in one tick, with their time in the past: they are recorded before the delivery."""
    waiting = Waiting(tmp_path, timer_roll_window_slot=30)
    waiting.recall(waiting.send(b"1", 70_000))
    waiting.send(b"2", 70_000)
    waiting.run(1)
    waiting.restart(clean=True)
    waiting.clock.now += 500_000
    assert settle(waiting, 5) == [2]


def test_what_comes_leaves_and_how_far_ahead_it_is_asked_for_is_counted_by_topic(tmp_path: Path) -> None:
    waiting = Waiting(tmp_path)
    waiting.send(b"soon", 5_000)
    waiting.send(b"later", 90_000, topic="Other")
    waiting.run(10)
    counts = waiting.timer.counts
    assert (counts.noted, counts.taken) == ({"T": 1, "Other": 1}, {"T": 1})
    assert {topic: (spread.counts[:3], spread.total) for topic, spread in counts.delays.items()} == {
        "T": ([1, 0, 0], 4.0),
        "Other": ([0, 1, 0], 89.0),
    }


def test_a_recall_names_messages_of_its_own_topic_alone(waiting: Waiting) -> None:
    """Any client can send one, with the right to publish to some topic."""
    sent = waiting.send(b"a", 5000)
    delay_ms = int(sent.property_map["TIMER_OUT_MS"]) + 1 - waiting.clock.now
    waiting.send(b"0", delay_ms, topic="Mine", TIMER_DEL_UNIQKEY="T+Ka", UNIQ_KEY="Ka")
    waiting.run(10)
    assert [one.body for one in waiting.delivered()] == [b"a"]


def test_a_message_that_the_timers_files_name_too_early_waits_for_its_own_time(waiting: Waiting) -> None:
    waiting.send(b"a", 60_000)
    waiting.run(1)
    ((at, size, _),) = waiting.store.queue_entries(TIMER_TOPIC, 0, 0, 1)
    soon = waiting.clock.now // 1000 * 1000 + 2000
    waiting.files.add(soon, waiting.clock.now, MAGIC_DEFAULT, at, size, 0)
    waiting.run(30)
    assert waiting.delivered() == []
    waiting.run(40)
    assert {one.body for one in waiting.delivered()} == {b"a"}


def test_a_masters_progress_passes_over_nothing_that_waits_here(waiting: Waiting) -> None:
    """A broker that was a master is a slave for a while, and then a master again: its log may lack its master's copies."""
    waiting.send(b"1", 2000)
    waiting.send(b"2", 30_000)
    waiting.run(1)
    waiting.save()
    waiting.timer.files.close()
    waiting.clock.now += 10_000
    theirs = TimerCheckpoint(waiting.clock.now // 1000 * 1000, master_timer_queue_offset=2)
    theirs.save(str(waiting.root / "config" / "timercheck"), sync=lambda descriptor: None)
    waiting.restart()
    assert settle(waiting, 3) == [1]
    assert settle(waiting, 30) == [1, 2]


def test_a_checkpoint_of_a_time_far_ahead_delivers_nothing_early(waiting: Waiting) -> None:
    waiting.send(b"a", 60_000)
    waiting.run(1)
    waiting.save()
    path = waiting.root / "config" / "timercheck"
    known = TimerCheckpoint.load(str(path))
    attrs.evolve(known, last_read_time_ms=1 << 60).save(str(path), sync=lambda descriptor: None)
    waiting.restart()
    waiting.run(1)
    waiting.send(b"b", 30_000)
    waiting.run(10)
    assert waiting.delivered() == []
    waiting.run(60)
    assert sorted(one.body for one in waiting.delivered()) == [b"a", b"b"]
