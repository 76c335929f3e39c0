"""Sends that come many at a time: what comes of them is what comes of them one by one, or the processor gets them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.broker import BrokerInMemory, Peer
from tests.support.store_load import small_config
from tests.twisted_mq.broker.processors.test_send import fields
from twisted_mq.access.server_access import ServerAccess
from twisted_mq.protocol.bodies import CreateTopicListRequestBody, TopicConfig, encode_body
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.layouts.record_codec import iterate_messages
from twisted_mq.protocol.text.java import tags_code
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.framing import encode_frame
from twisted_mq.storage.config import FlushDiskType
from twisted_mq.storage.message_store import FileMessageStore

TOPICS = ("T", "U", "Longer")
Sent = tuple[str, int, int, str, bytes, int]
"""Topic, queue, code, properties behind the unique key, body, header encoding."""


def frame(number: int, sent: Sent) -> bytes:
    topic, queue_id, code, properties, body, serialize_type = sent
    text = f"UNIQ_KEY\x01C0A8{number:04X}\x02{properties}"
    born = str(1_795_217_217_000 + number // 5 % 3)
    values = fields(topic, queue=str(queue_id), born=born, properties=text)
    if code == RequestCode.SEND_MESSAGE:
        names = {"a": "producerGroup", "b": "topic", "c": "defaultTopic", "d": "defaultTopicQueueNums", "e": "queueId",
                 "f": "sysFlag", "g": "bornTimestamp", "h": "flag", "i": "properties", "j": "reconsumeTimes",
                 "k": "unitMode", "m": "batch"}  # fmt: skip
        values = {names[name]: value for name, value in values.items()}
    return encode_frame(
        RemotingCommand(code, 1000 + number, 0, "JAVA", 479, None, body, serialize_type, ext_fields=values)
    )


def sends(count: int, **more: Any) -> list[bytes]:
    given: dict[str, Any] = {"topic": "T", "queue_id": 0, "code": 310, "properties": "WAIT\x01true\x02", "body": b"hello",
                             "serialize_type": 0, **more}  # fmt: skip
    return [frame(number, tuple(given.values())) for number in range(count)]


def broker_of(store: FileMessageStore | None = None, *, columns: bool = True, **options: Any) -> BrokerInMemory:
    broker = BrokerInMemory(store=store, **options)
    broker.controller.random.seed(0)
    if not columns:
        broker.traffic.streaks = None
    return broker


@contextmanager
def files(folder: Path) -> Iterator[FileMessageStore]:
    config = small_config(folder, flush_disk_type=FlushDiskType.ASYNC_FLUSH)
    store = FileMessageStore(config, lambda: 1_795_217_217_000)
    try:
        yield store
    finally:
        store.close()


def taken_by(broker: BrokerInMemory) -> tuple[int, dict[str, int]]:
    statistics = broker.controller.statistics
    return statistics.sends_together, dict(statistics.sends_left)


def outcome(broker: BrokerInMemory, reads: Iterable[bytes], host: str = "127.0.0.1") -> tuple[Any, ...]:
    """Answers, log, queues, and what was counted."""
    peer = broker.connect(host=host)
    answers = []
    for read in reads:
        peer.channel.dataReceived(read)
        answers.append(peer.transport.value())
        peer.transport.clear()
    store = broker.store
    queues = [
        store.get_message(topic, queue_id, 0, 99, 1 << 20, codes)
        for topic in TOPICS
        for queue_id in range(4)
        for codes in (None, {0}, {tags_code("A")})
    ]
    records = [[bytes(record) for record in queue.records] for queue in queues]
    statistics = broker.controller.statistics
    counted = {
        (topic, queue_id): (counter.times, counter.bytes, counter.more)
        for topic, puts in statistics.puts.items()
        for queue_id, counter in puts.items()
    }
    return answers, records, store.max_physical_offset(), counted, statistics.put_messages, statistics.put_failed


properties = st.sampled_from(
    ["WAIT\x01true\x02", "WAIT\x01false\x02", "TAGS\x01A\x02WAIT\x01true\x02", "TAGS\x01B\x02WAIT\x01true\x02",
     "KEYS\x01k1 k2", "KEYS\x01\u00e9\x02", "DELAY\x011\x02", "UNIQ_KEY\x01X\x02", "odd", "%d\x01%s\x02", ""]
)  # fmt: skip
messages = st.tuples(
    st.sampled_from(TOPICS),
    st.sampled_from([0, 1, 3, -1, 9]),
    st.sampled_from([10, 310]),
    properties,
    st.sampled_from([b"", b"x", b"hello", b"y" * 400]),
    st.sampled_from([0, 1]),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(messages, st.integers(1, 12)), min_size=1, max_size=8),
    st.lists(st.integers(1, 40), min_size=1, max_size=9),
    st.booleans(),
)
def test_what_comes_of_any_sends_is_what_comes_of_them_one_by_one(
    tmp_path_factory: pytest.TempPathFactory, runs: list[tuple[Sent, int]], cuts: list[int], in_turn: bool
) -> None:
    sent = [message for message, times in runs for _ in range(times)]
    if in_turn:  # the sends of different runs take turns
        sent = [
            one for row in itertools.zip_longest(*[[message] * times for message, times in runs]) for one in row if one
        ]
    frames = [frame(number, message) for number, message in enumerate(sent)]
    reads = []
    for cut in cuts:
        reads.append(b"".join(frames[:cut]))
        frames = frames[cut:]
    reads.append(b"".join(frames))
    folder = tmp_path_factory.mktemp("brokers")
    outcomes = []
    for columns in (True, False):
        with files(folder / str(columns)) as store:
            outcomes.append(outcome(broker_of(store, columns=columns), reads))
    assert outcomes[0] == outcomes[1]


def assert_same_one_by_one(
    folder: Path, given: Sequence[Sent], *, least: int, configs: Sequence[TopicConfig] = ()
) -> None:
    """Send in reads of 40, once together and once one by one. Both have the same outcome, and `least` sends go together."""
    frames = [frame(number, message) for number, message in enumerate(given)]
    reads = [b"".join(frames[start : start + 40]) for start in range(0, len(frames), 40)]
    outcomes = []
    for columns in (True, False):
        with files(folder / str(columns)) as store:
            broker = broker_of(store, columns=columns)
            body = encode_body(CreateTopicListRequestBody([*configs]))
            assert not configs or broker.connect().ask(RequestCode.UPDATE_AND_CREATE_TOPIC_LIST, body=body).code == 0
            outcomes.append(outcome(broker, reads))
            assert taken_by(broker)[0] >= (least if columns else 0)
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("bodies", [(b"hello",), (b"hello", b"longer")], ids=["one length", "two lengths"])
@pytest.mark.parametrize("serialize_type", [0, 1], ids=["JSON", "ROCKETMQ"])
def test_what_comes_of_full_reads_is_what_comes_of_them_one_by_one(
    tmp_path: Path, serialize_type: int, bodies: tuple[bytes, ...]
) -> None:
    given = [
        ("T", number % 3, 310, "TAGS\x01A\x02WAIT\x01true\x02", bodies[number % len(bodies)], serialize_type)
        for number in range(400)
    ]
    assert_same_one_by_one(tmp_path, given, least=340)


@pytest.mark.parametrize("code", [10, 310])
@pytest.mark.parametrize("serialize_type", [0, 1], ids=["JSON", "ROCKETMQ"])
@pytest.mark.parametrize("bodies", [(b"hello",), (b"hello", b"longer")], ids=["one length", "two lengths"])
@pytest.mark.parametrize("topics", ["TU", TOPICS], ids=["topics of one length", "of two"])
def test_sends_to_topics_that_take_turns_are_taken_together(
    tmp_path: Path, code: int, serialize_type: int, bodies: tuple[bytes, ...], topics: Sequence[str]
) -> None:
    rest = code, "TAGS\x01A\x02WAIT\x01true\x02"
    given = [
        (topics[number % len(topics)], number // 7 % 3, *rest, bodies[number % len(bodies)], serialize_type)
        for number in range(400)
    ]
    assert_same_one_by_one(tmp_path, given, least=320)


@pytest.mark.parametrize("odd_queue", [1, 4], ids=["all there", "one is not"])
def test_queues_and_tags_of_topics_that_take_turns_are_those_of_each(tmp_path: Path, odd_queue: int) -> None:
    configs = [
        TopicConfig("T", 4, 4),
        TopicConfig("U", 8, 8),
        TopicConfig("Longer", 4, 4, topic_filter_type="MULTI_TAG"),
    ]
    turns = [("T", 3), ("U", 7), ("Longer", 2), ("U", 6)]
    given = [(*turns[number % 4], 310, "TAGS\x01A\x02", b"hello", 0) for number in range(120)]
    given[84] = "T", odd_queue, *given[84][2:]
    assert_same_one_by_one(tmp_path, given, least=40, configs=configs)


@pytest.mark.parametrize("born", ["1_95217217000", " 795217217000", "17952172170x0"])
def test_times_that_are_no_numbers_are_left_to_the_processor(born: str) -> None:
    broker = broker_of()
    sent(broker)
    before, _ = taken_by(broker)
    frames = [one.replace(b'"1795217217000"', f'"{born}"'.encode()) for one in sends(5)]
    peer = broker.connect()
    peer.channel.dataReceived(b"".join([*sends(5), *frames]))
    refused = broker_of(columns=False).connect()
    refused.channel.dataReceived(b"".join([*sends(5), *frames]))
    assert [answer.code for answer in peer.received()] == [answer.code for answer in refused.received()]
    taken, left = taken_by(broker)
    assert (taken - before, left["a value is odd"] > 0) == (0, True)


@pytest.mark.parametrize("serialize_type", [0, 1], ids=["JSON", "ROCKETMQ"])
def test_an_ordered_topic_among_others_is_left_to_the_processor(serialize_type: int) -> None:
    broker = broker_of()
    sent(broker, serialize_type=serialize_type)
    sent(broker, topic="U", serialize_type=serialize_type)
    before, _ = taken_by(broker)
    assert broker.served.columns is not None
    broker.served.columns.checks.targets["U"].is_special = True
    given = [(topic, 0, 310, "WAIT\x01true\x02", b"hello", serialize_type) for topic in "TTTTTUTT"]
    broker.connect().channel.dataReceived(b"".join(frame(number, message) for number, message in enumerate(given)))
    taken, left = taken_by(broker)
    assert (taken - before, left["the topic or header is special"]) == (5, 1)  # the first two are read one by one


@pytest.mark.parametrize("serialize_type", [0, 1], ids=["JSON", "ROCKETMQ"])
def test_a_new_topic_among_known_ones_is_left_to_the_processor(serialize_type: int) -> None:
    broker = broker_of()
    sent(broker, serialize_type=serialize_type)
    peer = sent(broker, topic="U", serialize_type=serialize_type)
    peer.received()
    before, _ = taken_by(broker)
    given = [
        (topic, 0, 310, "WAIT\x01true\x02", b"hello", serialize_type) for topic in ("T", "U", "T", "N", "U", "T", "U")
    ]
    peer.channel.dataReceived(b"".join(frame(number, message) for number, message in enumerate(given)))
    broker.clock.advance(1)
    assert {answer.opaque: answer.code for answer in peer.received()} == dict.fromkeys(range(1000, 1007), 0)
    taken, left = taken_by(broker)
    assert (taken - before, left["the topic or header is special"]) == (3, 4)  # a new topic: all are checked again
    assert [broker.store.max_offset_in_queue(topic, 0) for topic in "TUN"] == [9, 9, 1]


@pytest.mark.parametrize("code", [10, 310])
@pytest.mark.parametrize("serialize_type", [0, 1], ids=["JSON", "ROCKETMQ"])
def test_plain_sends_are_taken_once_their_header_is_known(tmp_path: Path, code: int, serialize_type: int) -> None:
    with files(tmp_path) as store:
        broker = broker_of(store)
        peer = broker.connect()
        peer.channel.dataReceived(b"".join(sends(12, code=code, serialize_type=serialize_type)))
        assert [answer.code for answer in peer.received()] == [0] * 12
        assert taken_by(broker) == (9, {"the store has to check it": 1})  # at its queue file's second step


def test_sends_of_an_ipv6_host_are_taken_with_its_address(tmp_path: Path) -> None:
    outcomes = []
    for columns in (True, False):
        with files(tmp_path / str(columns)) as store:
            broker = broker_of(store, columns=columns)
            outcomes.append(outcome(broker, [b"".join(sends(6)), b"".join(sends(20))], "2001:db8::7"))
            assert taken_by(broker)[0] == (22 if columns else 0)
            result = store.get_message("T", 0, 0, 99, 1 << 20, None)
            assert {message.born_host for message in iterate_messages(b"".join(result.records))} == {
                "[2001:db8::7]:52174"
            }
    assert outcomes[0] == outcomes[1]


def sent(broker: BrokerInMemory, **more: Any) -> Peer:
    """A client that sent six messages, of which four came together."""
    peer = broker.connect()
    peer.channel.dataReceived(b"".join(sends(6, **more)))
    return peer


@pytest.mark.parametrize(
    ("options", "more", "why"),
    [
        ({}, {"topic": "%RETRY%G"}, "the topic or header is special"),
        ({"flush_disk_type": "SYNC_FLUSH"}, {"properties": "WAIT\x01false\x02"}, "the topic or header is special"),
        ({}, {"body": b""}, "a value is odd"),
        ({}, {"queue_id": 9}, "a value is odd"),
    ],
)
def test_others_are_left_to_the_processor_and_counted_by_reason(
    options: dict[str, Any], more: dict[str, Any], why: str
) -> None:
    broker = broker_of(**options)
    sent(broker)  # the topic is there
    before, _ = taken_by(broker)
    sent(broker, **more)
    taken, left = taken_by(broker)
    assert (taken, left) == (before, {**left, why: left[why]})
    assert left[why] >= 3


@pytest.mark.parametrize("sys_flag", [0x04, 0x0C, 0x10, 0x20, 0x80])
def test_flags_that_change_a_records_place_or_layout_are_left_to_the_processor(tmp_path: Path, sys_flag: int) -> None:
    given = [fields(sys_flag=str(sys_flag), properties=f"UNIQ_KEY\x01C0A8{number:04X}\x02") for number in range(12)]
    frames = [
        encode_frame(RemotingCommand(310, number, 0, "JAVA", 479, None, b"hello", ext_fields=one))
        for number, one in enumerate(given, 1)
    ]
    outcomes = []
    for columns in (True, False):
        with files(tmp_path / str(columns)) as store:
            broker = broker_of(store, columns=columns)
            outcomes.append(outcome(broker, [b"".join(frames)]))
            assert taken_by(broker)[0] == 0
    assert outcomes[0] == outcomes[1]


def test_nothing_is_taken_while_a_check_remembers_nothing() -> None:
    broker = broker_of(access=ServerAccess((Everybody(),)))  # type: ignore[arg-type]
    sent(broker)
    taken, left = taken_by(broker)
    assert (taken, left["its rights or signature are checked"]) == (0, 4)


class Everybody:
    """Access control that refuses no request."""

    source, remembers = None, False

    def check(self, channel: object, command: object) -> None:
        """Let it pass."""


def test_slaves_take_none() -> None:
    assert broker_of(broker_role="SLAVE", broker_id=1).served.columns is None


def test_a_topic_that_became_special_is_not_taken_any_more() -> None:
    broker = broker_of()
    peer = sent(broker)
    before, _ = taken_by(broker)
    assert (before, len(peer.received())) == (4, 6)
    peer.ask(RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": "T"})
    peer.channel.dataReceived(b"".join(sends(6)))
    assert taken_by(broker) == (before + 5, {"the topic or header is special": 1})


def test_answers_wait_for_the_disk_and_leave_together() -> None:
    broker = broker_of(hold_flushes=True, flush_disk_type="SYNC_FLUSH")
    peer = broker.connect()
    peer.channel.dataReceived(b"".join(sends(6)))
    broker.store.flush()
    peer.received()
    peer.channel.dataReceived(b"".join(sends(6)))
    assert (peer.received(), broker.traffic.pending_answers, broker.traffic.budget.held_bytes > 0) == ([], 6, True)
    broker.store.flush()
    answers = peer.received()
    assert [(answer.code, answer.opaque) for answer in answers] == [(0, 1000 + number) for number in range(6)]
    assert (broker.traffic.pending_answers, broker.traffic.budget.held_bytes) == (0, 0)
    assert taken_by(broker)[0] >= 6


def test_time_until_sends_are_durable_counts_for_each() -> None:
    broker = broker_of(hold_flushes=True, flush_disk_type="SYNC_FLUSH")
    waiting_streak(broker, known(broker, broker.store.flush))
    counted = broker.controller.statistics.puts["T"][0]
    before = counted.elapsed_ms
    broker.clock.advance(0.004)
    broker.store.flush()
    assert counted.elapsed_ms - before == 6 * 4


def known(broker: BrokerInMemory, durable: Callable[[], object]) -> Peer:
    """A client whose first sends are durable, and whose next six come together."""
    peer = broker.connect()
    for one in sends(4):
        peer.channel.dataReceived(one)
        durable()
    assert [answer.code for answer in peer.received()] == [0] * 4
    return peer


def waiting_streak(broker: BrokerInMemory, peer: Peer) -> list[int]:
    """Have six sends come together, that wait. Returns where each of them ends in the log."""
    start = broker.store.max_physical_offset()
    before, _ = taken_by(broker)
    peer.channel.dataReceived(b"".join(sends(6)))
    assert (peer.received(), taken_by(broker)[0] - before, broker.traffic.pending_answers) == ([], 6, 6)
    size = (broker.store.max_physical_offset() - start) // 6
    return [start + size * number for number in range(1, 7)]


def told(peer: Peer) -> list[tuple[int, int]]:
    return [(answer.opaque - 1000, answer.code) for answer in peer.received()]


@pytest.mark.parametrize("done", range(7))
def test_each_send_of_a_streak_is_told_whether_the_disk_has_it_in_time(done: int) -> None:
    broker = broker_of(hold_flushes=True, flush_disk_type="SYNC_FLUSH")
    peer = known(broker, broker.store.flush)
    late: list[Callable[[bool], None]] = []
    broker.store.when_flushed = lambda offset, callback: late.append(callback)
    ends = waiting_streak(broker, peer)
    broker.store.flushed_offset = lambda: ends[done - 1] if done else ends[0] - 1
    for callback in late:
        callback(False)
    codes = [ResponseCode.SUCCESS] * done + [ResponseCode.FLUSH_DISK_TIMEOUT] * (6 - done)
    assert (told(peer), broker.traffic.pending_answers) == ([*enumerate(codes)], 0)


@pytest.mark.parametrize("done", range(7))
def test_each_send_of_a_streak_is_told_whether_a_slave_has_it_in_time(done: int) -> None:
    broker = broker_of(broker_role="SYNC_MASTER", in_sync_replicas=2)
    transfers = broker.controller.ha.transfers
    peer = known(broker, lambda: transfers.acknowledged([broker.store.max_physical_offset()]))
    ends = waiting_streak(broker, peer)
    transfers.acknowledged([ends[done - 1] if done else ends[0] - 1])
    transfers.acknowledged([0])  # the slave is gone, and another one begins
    broker.clock.advance(60)
    codes = [ResponseCode.SUCCESS] * done + [ResponseCode.FLUSH_SLAVE_TIMEOUT] * (6 - done)
    assert (told(peer), broker.traffic.pending_answers) == ([*enumerate(codes)], 0)


def test_sends_that_wait_are_counted_once_however_they_came() -> None:
    broker = broker_of(hold_flushes=True, flush_disk_type="SYNC_FLUSH", send_thread_pool_queue_capacity=8)
    peer, other = known(broker, broker.store.flush), broker.connect()
    waiting_streak(broker, peer)
    other.channel.dataReceived(sends(1)[0])
    assert other.received() == []
    peer.channel.dataReceived(b"".join(sends(6)))
    assert told(peer) == [(number, ResponseCode.SYSTEM_BUSY) for number in range(1, 6)]
    broker.store.flush()
    assert [answer.code for answer in peer.received() + other.received()] == [0] * 8


def test_sends_that_wait_past_the_limits_are_refused_each() -> None:
    broker = broker_of(hold_flushes=True, flush_disk_type="SYNC_FLUSH", max_held_requests_by_channel=3)
    peer = broker.connect()
    for one in sends(2):
        peer.channel.dataReceived(one)
        broker.store.flush()
    peer.received()
    peer.channel.dataReceived(b"".join(sends(6)))
    assert [answer.code for answer in peer.received()] == [ResponseCode.SYSTEM_BUSY] * 6
    broker.store.flush()
    assert (peer.received(), broker.traffic.pending_answers) == ([], 0)


def test_times_and_sizes_are_noted_where_figures_are_shown() -> None:
    broker = broker_of(metrics_exporter_type="PROM")
    peer = sent(broker)
    peer.channel.dataReceived(b"".join(sends(4, body=b"x" * 5000)))
    times = broker.controller.statistics.request_times
    assert times is not None
    assert sum(times.times[310, 0, False, "success"].counts) == 10
    sizes = broker.controller.statistics.puts["T"].sizes()
    assert sum(sizes.counts) == 10 and sizes.counts[0] == 6


def test_a_header_that_is_no_json_closes_the_connection() -> None:
    broker = broker_of()
    peer = sent(broker)
    peer.received()
    frames = sends(6)
    peer.channel.dataReceived(b"".join(frames).replace(b'"opaque":1005', b'"opaque":0005'))
    assert [answer.opaque for answer in peer.received()] == [1000, 1001, 1002, 1003, 1004]
    assert peer.transport.disconnecting


def test_sends_that_are_not_taken_together_while_topics_are_static_are_counted() -> None:
    broker = BrokerInMemory()
    reads = [b"".join(sends(40)[start : start + 8]) for start in range(0, 40, 8)]
    outcome(broker, sends(1))  # the topic is there
    peer = broker.connect()
    for read in reads[:3]:  # the shape is known
        peer.channel.dataReceived(read)
    together, left = taken_by(broker)
    assert together > 0 and broker.served.columns is not None
    broker.served.columns.may_take = False
    for read in reads[3:]:
        peer.channel.dataReceived(read)
    assert taken_by(broker) == (together, {**left, "topics are static": 16})


def test_a_damaged_first_send_of_a_streak_closes_its_connection_and_no_other() -> None:
    """Its shape is of no family that has a pattern yet."""
    broker = broker_of()
    peer, other = broker.connect(), broker.connect(53000)
    for one in sends(3):
        peer.channel.dataReceived(one)
    first, *others = sends(9)[3:]
    damaged = first.replace(b'"opaque":1003', b'"opaque":1x03')
    peer.transport.clear()
    peer.channel.dataReceived(damaged + b"".join(others))
    assert (peer.transport.value(), peer.transport.disconnecting) == (b"", True)
    other.channel.dataReceived(b"".join(sends(12)))
    assert (taken_by(broker)[0], other.transport.disconnecting) == (10, False)
