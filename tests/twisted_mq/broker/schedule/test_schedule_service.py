"""Delay levels on a virtual clock: order, time, offsets, restarts and what a kill leaves behind."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.support.broker import BrokerInMemory, MemoryTable, Peer
from tests.support.captures import unpack_store
from twisted_mq.broker.schedule.schedule_service import MESSAGES_A_TURN, ScheduleMessageService
from twisted_mq.protocol.bodies import KVTable, decode_body
from twisted_mq.protocol.layouts.record_codec import decode_message, iterate_messages
from twisted_mq.protocol.requests.registry import RequestCode
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.storage.config import StoreConfig
from twisted_mq.storage.interfaces import GetResult, InnerMessage, Places, PlainMessages, PutResult, PutStatus
from twisted_mq.storage.memory.memory_store import MemoryMessageStore
from twisted_mq.storage.message_store import FileMessageStore
from twisted_mq.storage.tables.escaped_table import EscapedTable
from twisted_mq.storage.tables.small_tables import DelayOffsetTable

LEVELS = "1s 5s 10s"
DELAYS = (1, 2, 3, 5, 8, 13)
SCHEDULE = "SCHEDULE_TOPIC_XXXX"


def running(**options: object) -> tuple[BrokerInMemory, Peer]:
    """A broker that delivers."""
    broker = BrokerInMemory(**options)
    broker.controller.waiting.start()
    return broker, broker.connect()


def send(peer: Peer, body: bytes, properties: str, queue: str = "1", topic: str = "T") -> RemotingCommand:
    fields = {"a": "P", "b": topic, "c": "TBW102", "d": "4", "e": queue, "f": "0", "g": "1795217217000", "h": "0",
              "i": f"UNIQ_KEY\x01K{body.decode()}\x02{properties}", "j": "0"}  # fmt: skip
    return peer.ask(RequestCode.SEND_MESSAGE_V2, fields, body)


def bodies(broker: BrokerInMemory, queue_id: int = 1) -> list[bytes]:
    result = broker.store.get_message("T", queue_id, 0, 32, 1 << 20, None)
    return [decode_message(record).body for record in result.records]


def test_message_arrives_after_its_delay_as_it_was_sent() -> None:
    broker, peer = running()
    answer = send(peer, b"x", "DELAY\x012\x02TAGS\x01A\x02WAIT\x01true\x02")
    assert (answer.code, answer.ext_fields["queueId"], answer.ext_fields["queueOffset"]) == (0, "1", "0")
    assert "recallHandle" not in answer.ext_fields
    sent_ms = broker.now_ms()
    broker.clock.advance(4.9)
    assert bodies(broker) == []
    broker.clock.advance(0.1)
    (message,) = [decode_message(one) for one in broker.store.get_message("T", 1, 0, 9, 999, {65}).records]
    assert (message.topic, message.queue_id, message.body) == ("T", 1, b"x")
    assert (message.born_timestamp, message.born_host) == (1795217217000, "127.0.0.1:52174")
    assert message.store_timestamp == sent_ms + 5000
    assert message.properties == {
        "UNIQ_KEY": "Kx", "DELAY": "2", "TAGS": "A", "WAIT": "true", "CLUSTER": "CapCluster", "TRACE_ON": "true",
        "MSG_REGION": "DefaultRegion", "REAL_TOPIC": "T", "REAL_QID": "1",
    }  # fmt: skip


def test_answer_carries_the_schedule_queues_offset_and_the_real_queue() -> None:
    """As printed in the scenario producer_delay: queue ids 1, 0, 1, 0 with offsets 0, 0, 1, 0 for levels 1, 9, 1, 2."""
    _, peer = running()
    answers = [
        send(peer, b"%d" % number, f"DELAY\x01{level}\x02", queue)
        for number, (level, queue) in enumerate([(1, "1"), (9, "0"), (1, "1"), (2, "0")])
    ]
    found = [(one.ext_fields["queueId"], one.ext_fields["queueOffset"]) for one in answers]
    assert found == [("1", "0"), ("0", "0"), ("1", "1"), ("0", "0")]


def test_delivery_wakes_the_pull_that_waits() -> None:
    broker, peer = running()
    send(peer, b"x", "DELAY\x011\x02")
    pull_next(peer, 0)
    assert peer.received() == []
    broker.clock.advance(1)
    (answer,) = peer.received()
    assert (answer.code, decode_message(answer.body).body) == (0, b"x")


def test_levels_do_not_hold_each_other_back_and_each_keeps_its_order() -> None:
    broker, peer = running()
    for number in range(6):
        send(peer, b"%d" % number, f"DELAY\x01{2 - number % 2}\x02")
        broker.clock.advance(0.01)
    broker.clock.advance(1)
    assert bodies(broker) == [b"1", b"3", b"5"]
    broker.clock.advance(4)
    assert bodies(broker) == [b"1", b"3", b"5", b"0", b"2", b"4"]


@pytest.mark.parametrize("seed", range(6))
def test_late_turns_deliver_all_that_is_due_level_by_level_to_the_pull_that_waits(seed: int) -> None:
    """On a clock that jumps as on a busy machine: nothing early, nothing left for a later turn, short delays first."""
    chance = random.Random(seed)
    broker, peer = running(message_delay_level=" ".join(f"{seconds}s" for seconds in DELAYS))
    consumer = broker.connect()
    send(peer, b"at once", "")
    sent: list[tuple[int, int, bytes]] = []  # level, due, body
    taken = [b"at once"]
    pull_next(consumer, len(taken))
    for _ in range(40):
        for _ in range(chance.randrange(4)):
            level = chance.randrange(1, len(DELAYS) + 1)
            body = b"%d" % len(sent + taken)
            sent.append((level, broker.now_ms() + DELAYS[level - 1] * 1000, body))
            send(peer, body, f"DELAY\x01{level}\x02")
        broker.clock.advance(chance.choice((0.2, 0.2, 0.7, 4, 15)))
        due = sorted((one for one in sent if one[1] <= broker.now_ms()), key=lambda one: one[0])
        sent = [one for one in sent if one not in due]
        answers = consumer.received()
        came = [message.body for answer in answers for message in iterate_messages(answer.body)]
        assert came == [body for _, _, body in due]
        if answers:
            taken += came
            pull_next(consumer, len(taken))
    assert len(taken) > 30


def pull_next(peer: Peer, offset: int) -> None:
    """Wait for the messages of queue 1 from an offset on, for longer than any test goes."""
    fields = {"consumerGroup": "G", "topic": "T", "queueId": "1", "queueOffset": str(offset), "maxMsgNums": "32",
              "sysFlag": "6", "commitOffset": "0", "suspendTimeoutMillis": "1000000", "subscription": "*",
              "subVersion": "0"}  # fmt: skip
    peer.send(RemotingCommand(RequestCode.PULL_MESSAGE, ext_fields=fields))


def test_a_level_that_fails_does_not_hold_the_others_back_and_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    store, clock = memory_store()
    waiting(store, 1, b"unreadable")
    waiting(store, 2, b"good")
    service = ScheduleMessageService(store, MemoryTable(), LEVELS, clock, 200)
    read = store.get_message

    def read_some(topic: str, queue_id: int, *rest: Any) -> GetResult:
        if (topic, queue_id) == (SCHEDULE, 0):
            raise OSError("disk")
        return read(topic, queue_id, *rest)

    store.get_message = read_some
    clock.now += 5000
    while service.turn():
        store.dispatch()
    service.turn()
    assert service.offsets == {2: 1}
    assert [one.message for one in caplog.records if "failed" in one.message] == [
        "delivery of a delay level failed, retrying: level=1"
    ]
    store.get_message = read
    while service.turn():
        store.dispatch()
    assert service.offsets == {1: 1, 2: 1}


def test_a_burst_of_many_due_at_once_is_delivered_whole_and_in_order() -> None:
    broker, peer = running()
    count = MESSAGES_A_TURN * 3 + 5
    for number in range(count):
        send(peer, b"%d" % number, "DELAY\x011\x02")
    broker.clock.advance(1)
    assert broker.store.max_offset_in_queue("T", 1) == count
    offsets = [broker.store.get_message("T", 1, at, 1, 9999, None).records[0] for at in range(count)]
    assert [decode_message(one).body for one in offsets] == [b"%d" % number for number in range(count)]
    assert broker.controller.waiting.schedule.offsets == {1: count}


LONG_TOPIC = "%RETRY%" + "G" * 130
ODD: dict[str, dict[str, Any]] = {
    "nothing": {},
    "another host": {"born_host": bytes(8)},
    "another flag": {"flag": 3},
    "another number of deliveries": {"reconsume_times": 2},
    "a new queue": {"real": {"REAL_TOPIC": "New", "REAL_QID": "1"}},
    "a long topic": {"real": {"REAL_TOPIC": LONG_TOPIC, "REAL_QID": "0"}},
    "no place": {"real": {}},
    "a body too long": {"body": bytes(5000)},
}
"""The fields of the fourth of seven messages, each of which ends a write."""


@pytest.mark.parametrize("odd", ODD)
def test_copies_of_one_write_are_those_that_would_be_stored_one_by_one(odd: str) -> None:
    stored: list[list[bytes]] = []
    written: list[int] = []
    for one_by_one in (True, False):
        store, clock = memory_store()
        for topic in ("T", "Other", LONG_TOPIC):
            put_plain(store, topic)
        for number in range(7):
            topic = "Other" if number == 1 else "T"
            fields = {"real": {"REAL_TOPIC": topic, "REAL_QID": "0", "TAGS": "A"}, "body": b"%d" % number}
            waiting(store, 1, **fields | (ODD[odd] if number == 3 else {}))
        store.configure(attrs.evolve(store.config, max_message_size=4096))
        end, put = store.max_physical_offset(), store.put_plain

        def put_counted(messages: PlainMessages, put: Callable[[PlainMessages], Places] = put) -> Places:
            places = put(messages)
            written.append(len(places))
            return places

        store.put_plain = (lambda messages: Places()) if one_by_one else put_counted
        service = ScheduleMessageService(store, MemoryTable(), LEVELS, clock, 200)
        clock.now += 1000
        while service.turn():
            store.dispatch()
        store.dispatch()
        assert service.offsets == {1: 7}
        stored.append([bytes(store.look_message(at) or b"") for at in places_behind(store, end)])
    assert stored[0] == stored[1]
    assert len(stored[0]) == (6 if odd in ("no place", "a body too long") else 7)
    assert written == ([7] if odd == "nothing" else [3, 3])


def test_copies_of_messages_from_an_ipv6_host_are_those_that_would_be_stored_one_by_one() -> None:
    stored: list[list[bytes]] = []
    for one_by_one in (True, False):
        store, clock = memory_store()
        put_plain(store)
        for number in range(4):
            waiting(store, 1, b"%d" % number, born_host=bytes(range(20)))
        end = store.max_physical_offset()
        if one_by_one:
            store.put_plain = lambda messages: Places()
        else:
            store.put_message = takes(store.put_message, 4)
        service = ScheduleMessageService(store, MemoryTable(), LEVELS, clock, 200)
        clock.now += 1000
        service.turn()
        store.dispatch()
        stored.append([bytes(store.look_message(at) or b"") for at in places_behind(store, end)])
    assert stored[0] == stored[1]
    assert len(stored[0]) == 4


def places_behind(store: MemoryMessageStore, begin: int) -> list[int]:
    """The places of the log's records from there on."""
    places = []
    while begin < store.max_physical_offset():
        places.append(begin)
        begin += len(store.look_message(begin) or b"")
    return places


def test_deliveries_in_one_write_are_counted_as_single_ones_are() -> None:
    found = []
    for one_by_one in (True, False):
        broker, peer = running()
        for number in range(7):
            send(peer, b"%d" % number, "" if number < 2 else "DELAY\x011\x02", queue=str(number % 2))
        if one_by_one:
            broker.store.put_plain = lambda messages: Places()
        else:
            broker.store.put_message = takes(broker.store.put_message, 5)  # those of the write
        broker.clock.advance(1)
        statistics = broker.controller.statistics
        puts, taken = statistics.puts["T"], statistics.gets[f"{SCHEDULE}@SCHEDULE_CONSUMER"]
        counts = {queue_id: (one.times, one.more, one.bytes) for queue_id, one in puts.items()}
        sizes = puts.sizes()
        found.append((counts, (taken[0].times, taken[0].bytes), statistics.put_messages, sizes.total, sizes.counts))
    assert found[0] == found[1]
    assert found[0][1][0] == 5


def test_write_ends_at_what_another_master_has() -> None:
    store, clock = memory_store()
    put_plain(store)
    for number in range(5):
        waiting(store, 1, b"%d" % number)
    escaped = EscapedTable("unused")
    escaped.note_level(1, 3, (0, 0))
    service = ScheduleMessageService(store, MemoryTable(), LEVELS, clock, 200, escaped=escaped)
    clock.now += 1000
    service.turn()
    store.dispatch()
    assert service.offsets == {1: 5}
    records = store.get_message("T", 0, 1, 32, 1 << 20, None).records
    assert [decode_message(one).body for one in records] == [b"0", b"1", b"2", b"4"]


def test_store_that_takes_nothing_delays_and_loses_nothing() -> None:
    broker, peer = running()
    put = broker.store.put_message
    send(peer, b"x", "DELAY\x011\x02")
    broker.store.put_message = lambda message: PutResult(PutStatus.SERVICE_NOT_AVAILABLE)
    broker.clock.advance(2)
    broker.store.put_message = put
    assert bodies(broker) == []
    broker.clock.advance(0.1)
    assert bodies(broker) == [b"x"]


def test_clock_that_went_back_delivers_at_once_what_would_wait_longer_than_its_level() -> None:
    store, clock = memory_store()
    service = ScheduleMessageService(store, MemoryTable(), LEVELS, clock, 200)
    waiting(store, 2, b"x")
    assert service.turn() is False
    clock.now -= 3_600_000
    service.turn()
    store.dispatch()
    assert store.max_offset_in_queue("T", 0) == 1


def test_damaged_and_placeless_messages_are_passed_over() -> None:
    store, clock = memory_store()
    waiting(store, 1, b"lost", real={})
    waiting(store, 1, b"half", real={"REAL_TOPIC": "RMQ_SYS_TRANS_HALF_TOPIC", "REAL_QID": "0"})
    waiting(store, 1, b"good")
    service = ScheduleMessageService(store, MemoryTable(), LEVELS, clock, 200)
    clock.now += 1000
    while service.turn():
        store.dispatch()
    store.dispatch()
    assert (service.offsets, store.topics()) == ({1: 3}, [SCHEDULE, "T"])


def test_offsets_outside_their_queue_are_brought_into_it() -> None:
    store, clock = memory_store()
    waiting(store, 1, b"x")
    service = ScheduleMessageService(store, MemoryTable(offsets={1: 9, 3: 4}), LEVELS, clock, 200)
    service.start()
    assert service.offsets == {1: 1, 3: 0}


def test_offsets_of_what_a_log_lost_are_lowered_on_disk_before_anything_takes_its_place(tmp_path: Path) -> None:
    path = str(tmp_path / "delayOffset.json")
    table = DelayOffsetTable(path)
    for offset in (8, 9):
        table.offsets, table.log_offset = {1: offset, 2: 0}, 1 << 40
        table.save()
    store, clock = memory_store()
    waiting(store, 1, b"x")
    ScheduleMessageService(store, table, LEVELS, clock, 200).start()
    for present in (path, path + ".bak"):
        found = DelayOffsetTable(present)
        found.load()
        assert (found.offsets, found.log_offset) == ({1: 1, 2: 0}, store.max_physical_offset())


def test_levels_of_an_earlier_configuration_are_delivered_after_the_longest_delay() -> None:
    store, clock = memory_store()
    waiting(store, 7, b"x")
    service = ScheduleMessageService(store, MemoryTable(), LEVELS, clock, 200)
    clock.now += 9_999
    service.turn()
    store.dispatch()
    assert store.max_offset_in_queue("T", 0) == 0
    clock.now += 1
    service.turn()
    store.dispatch()
    assert store.max_offset_in_queue("T", 0) == 1


def test_data_version_moves_on_each_step_of_deliveries() -> None:
    store, clock = memory_store()
    for number in range(7):
        waiting(store, 1, b"%d" % number)
    service = ScheduleMessageService(store, MemoryTable(), LEVELS, clock, 3)
    clock.now += 1000
    service.turn()
    assert (service.data_version.counter, service.data_version.timestamp) == (2, clock.now)


def test_offsets_are_written_only_when_the_copies_are_on_disk() -> None:
    broker, peer = running(hold_flushes=True)
    table = broker.tables["delays"]
    send(peer, b"x", "DELAY\x011\x02")
    broker.clock.advance(1)
    broker.controller.waiting.save_delay_offsets()
    assert (table.saved, table.offsets) == (0, {})
    broker.store.flush()
    assert (table.saved, table.offsets) == (1, {1: 1})
    broker.controller.waiting.save_delay_offsets()
    broker.store.flush()
    assert table.saved == 1


def test_slave_delivers_nothing() -> None:
    broker, peer = running(broker_role="SLAVE")
    send(peer, b"x", "DELAY\x011\x02")
    broker.clock.advance(5)
    assert (bodies(broker), broker.clock.getDelayedCalls()) == ([], [])


# Restarts


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("saved", [True, False], ids=["offsets saved at times", "offsets never saved"])
def test_after_a_kill_at_any_moment_nothing_is_lost_and_nothing_comes_twice(seed: int, saved: bool) -> None:
    """The service is discarded between two deliveries and created again from the last written state."""
    chance = random.Random(seed)
    store, clock = memory_store()
    table = MemoryTable()
    for number in range(60):
        waiting(store, chance.choice((1, 2, 3)), b"%d" % number, queue_id=chance.randrange(2))
        clock.now += chance.randrange(300)
    for _ in range(12):
        service = ScheduleMessageService(store, table, LEVELS, clock, 200)
        service.start()
        put = store.put_message
        store.put_message = takes(put, chance.randrange(9))
        for _ in range(chance.randrange(1, 5)):
            clock.now += chance.randrange(2000)
            service.turn()
            store.dispatch()
            if saved and chance.random() < 0.3:
                service.snapshot()()
        store.put_message = put
    last = ScheduleMessageService(store, table, LEVELS, clock, 200)
    last.start()
    clock.now += 20_000
    while last.turn():
        store.dispatch()
    store.dispatch()
    delivered = [
        int(decode_message(store.get_message("T", queue_id, at, 1, 9999, None).records[0]).body)
        for queue_id in (0, 1)
        for at in range(store.max_offset_in_queue("T", queue_id))
    ]
    assert sorted(delivered) == list(range(60))


def test_same_message_sent_twice_is_delivered_twice_also_over_a_kill() -> None:
    store, clock = memory_store()
    waiting(store, 1, b"x")
    waiting(store, 1, b"x")
    clock.now += 1000
    first = ScheduleMessageService(store, MemoryTable(), LEVELS, clock, 200)
    put = store.put_message
    store.put_message = takes(put, 1)
    first.turn()
    store.dispatch()
    store.put_message = put
    second = ScheduleMessageService(store, MemoryTable(), LEVELS, clock, 200)
    second.start()
    assert second.offsets == {1: 1}
    second.turn()
    store.dispatch()
    assert store.max_offset_in_queue("T", 0) == 2


@pytest.mark.parametrize("delivered_first", [True, False])
def test_clock_that_went_back_brings_nothing_twice_over_a_kill(delivered_first: bool) -> None:
    """As where a master whose clock was ahead is replaced by one that has its slave's store."""
    store, clock = memory_store()
    waiting(store, 1, b"x")
    first = ScheduleMessageService(store, MemoryTable(), LEVELS, clock, 200)
    if delivered_first:
        clock.now += 1000
        first.turn()
    clock.now -= 90_000
    first.turn()
    store.dispatch()
    second = ScheduleMessageService(store, MemoryTable(), LEVELS, clock, 200)
    second.start()
    assert second.offsets == {1: 1}
    second.turn()
    store.dispatch()
    assert store.max_offset_in_queue("T", 0) == 1


@pytest.mark.parametrize("saved_first", [True, False])
@pytest.mark.parametrize("level", [1, 3])
def test_copies_are_found_over_a_kill_among_times_that_went_back(level: int, saved_first: bool) -> None:
    """Behind the copy lie messages of a clock that was set back by less than the message's delay, or by more."""
    store, clock = memory_store()
    table = MemoryTable()
    waiting(store, level, b"w")
    first = ScheduleMessageService(store, table, LEVELS, clock, 200)
    if saved_first:
        first.snapshot()()
    waiting(store, level, b"x")
    clock.now += 10_000
    first.turn()
    for _ in range(3):
        clock.now -= 2_000
        put_plain(store)
    second = ScheduleMessageService(store, table, LEVELS, clock, 200)
    second.start()
    assert second.offsets == {level: 2}
    assert table.log_offset == (0 if not saved_first else store.queue_entries(SCHEDULE, level - 1, 1, 1)[0][0])


@pytest.mark.parametrize("with_table", [True, False], ids=["delayOffset.json", "without it"])
def test_store_of_apaches_broker_goes_on_where_that_stopped(tmp_path: Path, with_table: bool) -> None:
    root = unpack_store("st", tmp_path)
    store = FileMessageStore(
        StoreConfig(
            store_path_root_dir=str(root), mapped_file_size_commit_log=65536, mapped_file_size_consume_queue=400
        ),
        lambda: 1_795_217_000_000,
    )
    store.start()
    path = root / "config" / "delayOffset.json"
    if not with_table:
        path.unlink()
        path.with_name(path.name + ".bak").unlink()
    table = DelayOffsetTable(str(path))
    table.load()
    service = ScheduleMessageService(store, table, "1s 5s 10s 30s 1m 2m 3m 4m 5m", lambda: 1_795_217_000_000)
    service.start()
    offsets = {level: offset for level, offset in service.offsets.items() if offset}
    end = store.max_physical_offset()
    service.turn()
    assert (offsets, store.max_physical_offset()) == ({1: 20, 2: 1}, end)
    store.close()


# Stores with messages that wait


class SettableClock:
    def __init__(self) -> None:
        self.now = 1_795_217_217_000

    def __call__(self) -> int:
        return self.now


def memory_store() -> tuple[MemoryMessageStore, SettableClock]:
    clock = SettableClock()
    store = MemoryMessageStore(StoreConfig(store_path_root_dir="/nowhere", message_delay_level=LEVELS), clock)
    store.start()
    return store, clock


def takes(put: Callable[[InnerMessage], PutResult], count: int) -> Callable[[InnerMessage], PutResult]:
    """A put that takes so many messages and no more."""
    taken: list[InnerMessage] = []

    def put_some(message: InnerMessage) -> PutResult:
        taken.append(message)
        return put(message) if len(taken) <= count else PutResult(PutStatus.SERVICE_NOT_AVAILABLE)

    return put_some


def waiting(
    store: MemoryMessageStore,
    level: int,
    body: bytes,
    *,
    queue_id: int = 0,
    real: dict[str, str] | None = None,
    **fields: Any,
) -> None:
    """Put a message of a level as sends do."""
    place = {"REAL_TOPIC": "T", "REAL_QID": str(queue_id)} if real is None else real
    properties = {"UNIQ_KEY": f"K{body[:9].decode()}", "DELAY": str(level), **place}
    text = "".join(f"{name}\x01{value}\x02" for name, value in properties.items()).encode()
    result = store.put_message(InnerMessage(SCHEDULE, level - 1, body, text, properties, 0, **fields))
    assert result.status is PutStatus.PUT_OK
    store.dispatch()


def put_plain(store: MemoryMessageStore, topic: str = "T") -> None:
    assert store.put_message(InnerMessage(topic, 0, b"plain", b"", {}, 0)).status is PutStatus.PUT_OK
    store.dispatch()


def test_runtime_info_says_how_far_each_level_was_delivered() -> None:
    broker, peer = running()
    for number in range(3):
        send(peer, b"%d" % number, "DELAY\x011\x02")
        broker.clock.advance(0.6)
    send(peer, b"x", "DELAY\x012\x02")
    table = decode_body(KVTable, peer.ask(RequestCode.GET_BROKER_RUNTIME_INFO).body).table
    found = {name: value for name, value in table.items() if name.startswith("scheduleMessageOffset")}
    assert found == {"scheduleMessageOffset_1": "2,3"}


def test_delayed_send_under_synchronous_flush_is_answered_after_the_flush_with_the_queue_it_asked_for() -> None:
    broker, peer = running(hold_flushes=True, flush_disk_type="SYNC_FLUSH")
    fields = {"a": "P", "b": "T", "c": "TBW102", "d": "4", "e": "3", "f": "0", "g": "1", "h": "0",
              "i": "UNIQ_KEY\x01K\x02DELAY\x011\x02"}  # fmt: skip
    peer.send(RemotingCommand(RequestCode.SEND_MESSAGE_V2, body=b"x", ext_fields=fields))
    broker.clock.advance(2)
    assert (peer.received(), bodies(broker, 3)) == ([], [])
    broker.store.flush()
    (answer,) = peer.received()
    assert (answer.code, answer.ext_fields["queueId"], answer.ext_fields["transactionId"]) == (0, "3", "K")
    broker.clock.advance(0.1)
    broker.store.flush()
    broker.controller.dispatch()
    assert bodies(broker, 3) == [b"x"]
