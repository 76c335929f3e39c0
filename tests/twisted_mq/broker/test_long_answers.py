"""Answers with many rows or files are computed in slices, with other requests between them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import pytest
from twisted.internet.task import Clock

from tests.support.broker import BrokerInMemory, Peer
from tests.support.heartbeat import heartbeat
from twisted_mq import turns
from twisted_mq.broker import long_answers
from twisted_mq.broker.clients import consumer_offset_manager
from twisted_mq.broker.long_answers import QUEUE_BYTES, ROWS_OF_SLICE
from twisted_mq.broker.processors import admin_topics
from twisted_mq.protocol.bodies import (
    ConsumerOffsetSerializeWrapper,
    ConsumeStats,
    ConsumeStatsList,
    ProducerTableInfo,
    QueryConsumeTimeSpanBody,
    ResetOffsetBody,
    TopicConfig,
    TopicConfigAndMappingSerializeWrapper,
    TopicStatsTable,
    decode_body,
    encode_body,
)
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.storage.memory.memory_store import MemoryMessageStore

QUEUES = 1000
RESET = {"topic": "T", "group": "G", "timestamp": "-1", "isForce": "true"}


@pytest.fixture(autouse=True)
def _one_slice_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Elsewhere a turn has as many as begin within SLICE_SECONDS."""
    monkeypatch.setattr(turns, "SLICE_SECONDS", 0.0)


def broker_with_queues() -> BrokerInMemory:
    broker = BrokerInMemory()
    broker.controller.topics.update(
        [TopicConfig(topic_name="T", read_queue_nums=QUEUES, write_queue_nums=QUEUES, perm=6)]
    )
    assert broker.controller.groups.find("G") is not None
    broker.controller.offsets.offsets["T@G"] = dict.fromkeys(range(QUEUES), 0)
    return broker


def reads_by_turn(broker: BrokerInMemory, peer: Peer, code: int, fields: dict[str, str]) -> list[int]:
    """Return the number of queues that were read in each turn until the end."""
    reads = [0]
    look = MemoryMessageStore.max_offset_in_queue

    def counted(store: MemoryMessageStore, topic: str, queue_id: int) -> int:
        reads[-1] += 1
        return look(store, topic, queue_id)

    with patch.object(MemoryMessageStore, "max_offset_in_queue", counted):
        peer.send(RemotingCommand(code, language="JAVA", ext_fields=fields))
        reads.append(0)
        while turn(broker.clock):
            reads.append(0)
    return reads


def turn(clock: Clock) -> bool:
    """Make one call that is due, not those that it makes due; whether there was one."""
    if not clock.calls or clock.calls[0].getTime() > clock.seconds():
        return False
    due = clock.calls.pop(0)
    due.called = 1
    due.func(*due.args, **due.kw)
    return True


@pytest.mark.parametrize(
    ("code", "fields", "body_class"),
    [
        pytest.param(RequestCode.GET_TOPIC_STATS_INFO, {"topic": "T"}, TopicStatsTable, id="stats"),
        pytest.param(RequestCode.GET_CONSUME_STATS, {"consumerGroup": "G"}, ConsumeStats, id="group"),
        pytest.param(RequestCode.GET_BROKER_CONSUME_STATS, {"isOrder": "false"}, ConsumeStatsList, id="groups"),
        pytest.param(
            RequestCode.QUERY_CONSUME_TIME_SPAN, {"topic": "T", "group": "G"}, QueryConsumeTimeSpanBody, id="times"
        ),
        pytest.param(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, RESET, ResetOffsetBody, id="reset"),
    ],
)
def test_no_turn_looks_at_more_queues_than_a_slice(code: int, fields: dict[str, str], body_class: type) -> None:
    broker = broker_with_queues()
    peer = broker.connect()
    reads = reads_by_turn(broker, peer, code, fields)
    assert (sum(reads), max(reads)) == (QUEUES, ROWS_OF_SLICE)
    (answer,) = peer.received()
    body: Any = decode_body(body_class, answer.body)
    if isinstance(body, ConsumeStatsList):
        (body,) = next(one["G"] for one in body.consume_stats_list if "G" in one)
    rows = body.consume_time_span_set if isinstance(body, QueryConsumeTimeSpanBody) else body.offset_table
    assert (answer.code, len(rows)) == (0, QUEUES)


def test_very_many_offsets_are_copied_before_they_are_written() -> None:
    broker = broker_with_queues()
    offsets = broker.controller.offsets.offsets
    offsets.update({f"T@{group}": dict.fromkeys(range(QUEUES), 7) for group in "ABCDE"})
    before = {key: dict(queues) for key, queues in offsets.items()}
    peer = broker.connect()
    peer.send(RemotingCommand(RequestCode.GET_ALL_CONSUMER_OFFSET, language="JAVA"))
    assert peer.received() == []
    offsets["T@G"][0] = 5
    broker.clock.advance(0)
    (answer,) = peer.received()
    assert decode_body(ConsumerOffsetSerializeWrapper, answer.body).offset_table == before


def test_others_are_served_between_the_slices() -> None:
    broker = broker_with_queues()
    slow, quick = broker.connect(), broker.connect()
    slow.send(RemotingCommand(RequestCode.GET_TOPIC_STATS_INFO, language="JAVA", ext_fields={"topic": "T"}))
    assert turn(broker.clock)
    assert quick.ask(RequestCode.GET_TOPIC_CONFIG, {"topic": "T"}).code == 0
    assert slow.received() == []


def test_a_long_table_is_written_in_a_thread_from_a_snapshot() -> None:
    broker = BrokerInMemory()
    topics = broker.controller.topics
    topics.update([TopicConfig(topic_name=f"T{number}", read_queue_nums=1) for number in range(ROWS_OF_SLICE)])
    peer, before = broker.connect(), dict(topics.topics)
    peer.send(RemotingCommand(RequestCode.GET_ALL_TOPIC_CONFIG, language="JAVA"))
    assert peer.received() == []
    topics.delete("T0")
    broker.clock.advance(0)
    (answer,) = peer.received()
    assert decode_body(TopicConfigAndMappingSerializeWrapper, answer.body).topic_config_table == before


@pytest.mark.parametrize(
    ("code", "fields"),
    [
        pytest.param(RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": "T"}, id="topic"),
        pytest.param(RequestCode.CLEAN_UNUSED_TOPIC, {}, id="unused"),
        pytest.param(RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE, {}, id="expired"),
    ],
)
def test_files_of_dropped_queues_go_in_slices_and_the_answer_follows_the_last(
    code: int, fields: dict[str, str]
) -> None:
    broker = broker_with_queues()
    peer = broker.connect()
    left = [False, True, True, True]
    with patch.object(MemoryMessageStore, "delete_more", lambda _: left.pop()):
        peer.send(RemotingCommand(code, language="JAVA", ext_fields=fields))
        assert (left, peer.received()) == ([False, True, True], [])
        broker.clock.advance(0)
    assert (left, [answer.code for answer in peer.received()]) == ([], [0])


def test_files_of_a_deleted_topic_follow_those_of_queues_that_are_cleaned() -> None:
    broker = broker_with_queues()
    peer, deleted = broker.connect(), list[int]()

    def delete_more(_: MemoryMessageStore) -> bool:
        deleted.append(1)
        return len(deleted) <= 3

    with patch.object(MemoryMessageStore, "delete_more", delete_more):
        peer.send(RemotingCommand(RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE, language="JAVA"))
        peer.send(RemotingCommand(RequestCode.DELETE_TOPIC_IN_BROKER, language="JAVA", ext_fields={"topic": "T"}))
        assert (len(deleted), peer.received()) == (1, [])
        broker.clock.advance(0)
    assert [answer.opaque for answer in peer.received()] == [1, 2]


def test_those_that_wait_for_a_table_share_one_that_is_no_older_than_what_they_ask_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    encoded: list[int] = []

    def counted(body: TopicConfigAndMappingSerializeWrapper, *rows: Any) -> bytes:
        encoded.append(len(body.topic_config_table))
        return encode_body(body)

    monkeypatch.setattr(admin_topics, "encode_with_rows", counted)
    broker = BrokerInMemory()
    topics = [TopicConfig(topic_name=f"T{number}") for number in range(2 * ROWS_OF_SLICE)]
    broker.controller.topics.update(topics)
    many = len(broker.controller.topics.topics)
    peer = broker.connect()

    def ask(times: int) -> None:
        for _ in range(times):
            peer.send(RemotingCommand(RequestCode.GET_ALL_TOPIC_CONFIG, language="JAVA"))

    def tables() -> list[int]:
        while turn(broker.clock):
            pass
        answers = [decode_body(TopicConfigAndMappingSerializeWrapper, one.body) for one in peer.received()]
        return [len(answer.topic_config_table) for answer in answers]

    ask(3)
    assert (tables(), encoded) == ([many] * 3, [many])
    broker.controller.topics.update([TopicConfig(topic_name="New")])
    ask(1)
    broker.controller.topics.update([TopicConfig(topic_name="Newer")])
    ask(3)
    assert (tables(), encoded) == ([many + 1, *[many + 2] * 3], [many, many + 1, many + 2])
    ask(1)
    assert (tables(), encoded[3:]) == ([many + 2], [])


QUESTIONS = [
    pytest.param(RequestCode.GET_TOPIC_STATS_INFO, {"topic": "T"}, id="stats"),
    pytest.param(RequestCode.GET_CONSUME_STATS, {"consumerGroup": "G"}, id="group"),
    pytest.param(RequestCode.GET_BROKER_CONSUME_STATS, {"isOrder": "false"}, id="groups"),
    pytest.param(RequestCode.QUERY_CONSUME_TIME_SPAN, {"topic": "T", "group": "G"}, id="times"),
]


@pytest.mark.parametrize(("code", "fields"), QUESTIONS)
def test_nothing_more_is_read_for_a_connection_that_is_closed(code: int, fields: dict[str, str]) -> None:
    broker = broker_with_queues()
    peer = broker.connect()
    looks: list[int] = []
    look = MemoryMessageStore.max_offset_in_queue

    def counted(store: MemoryMessageStore, topic: str, queue_id: int) -> int:
        looks.append(queue_id)
        return look(store, topic, queue_id)

    with patch.object(MemoryMessageStore, "max_offset_in_queue", counted):
        for _ in range(50):
            peer.send(RemotingCommand(code, language="JAVA", ext_fields=fields))
        assert broker.traffic.pending_answers == 50
        peer.channel.connectionLost()
        looks.clear()
        turns = 0
        while turn(broker.clock):
            turns += 1
    assert looks == []
    assert (broker.traffic.pending_answers, broker.traffic.budget.held_bytes) == (0, 0)


def test_a_reset_goes_on_to_its_end_though_its_connection_is_closed() -> None:
    broker = broker_with_queues()
    broker.controller.offsets.offsets["T@G"] = dict.fromkeys(range(QUEUES), 5)
    peer = broker.connect()
    peer.send(RemotingCommand(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, language="JAVA", ext_fields=RESET))
    peer.channel.connectionLost()
    while turn(broker.clock):
        pass
    assert {*broker.controller.offsets.offsets["T@G"].values()} == {0}


@pytest.mark.parametrize(
    ("code", "says"),
    [
        pytest.param(RequestCode.GET_ALL_TOPIC_CONFIG, "bytes, more than the 1000 that fit", id="made"),
        pytest.param(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, "rows, more than the 3 that fit", id="groups"),
        pytest.param(RequestCode.GET_ALL_CONSUMER_OFFSET, "rows, more than the 250 that fit", id="offsets"),
    ],
)
def test_a_table_that_no_frame_takes_is_refused(code: int, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_answers, "MAX_BODY_BYTES", 1000)
    broker = broker_with_queues()
    broker.controller.offsets.offsets.update({f"T@{group}": dict.fromkeys(range(QUEUES), 7) for group in "ABCDEF"})
    peer = broker.connect()
    peer.send(RemotingCommand(code, language="JAVA"))
    while turn(broker.clock):
        pass
    (answer,) = peer.received()
    assert (answer.code, answer.body) == (ResponseCode.SYSTEM_ERROR, b"")
    assert says in (answer.remark or "")


@pytest.mark.parametrize(
    ("code", "fields"),
    [
        pytest.param(RequestCode.GET_CONSUME_STATS, {"consumerGroup": "G", "topicList": "T;U"}, id="of a group"),
        pytest.param(RequestCode.GET_BROKER_CONSUME_STATS, {"isOrder": "false"}, id="of all groups"),
    ],
)
def test_rows_that_no_frame_takes_are_not_made(
    code: int, fields: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """500,000 groups on a topic of 65,535 queues would be 32,767,500,000 rows."""
    monkeypatch.setattr(long_answers, "MAX_BODY_BYTES", QUEUE_BYTES * (QUEUES + 1))
    broker = broker_with_queues()
    broker.controller.topics.update([TopicConfig("U", 2, 2, 6)])
    broker.controller.offsets.offsets["U@G"] = {0: 0}
    peer = broker.connect()
    reads = reads_by_turn(broker, peer, code, fields)
    (answer,) = peer.received()
    assert (answer.code, sum(reads)) == (ResponseCode.SYSTEM_ERROR, QUEUES)
    assert f"{QUEUES + 2} rows, more than the {QUEUES + 1} that fit" in (answer.remark or "")


def test_a_walk_through_the_log_ends_with_its_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[int] = []

    def walk(store: MemoryMessageStore, physical_offset: int) -> Iterator[None]:
        for _ in range(100):
            steps.append(physical_offset)
            yield

    monkeypatch.setattr(MemoryMessageStore, "walk_to_message", walk)
    broker = broker_with_queues()
    peer = broker.connect()
    for offset in (100, 200):
        peer.send(RemotingCommand(RequestCode.VIEW_MESSAGE_BY_ID, language="JAVA", ext_fields={"offset": str(offset)}))
    peer.channel.connectionLost()
    while turn(broker.clock):
        pass
    assert (steps, broker.traffic.pending_answers) == ([100], 0)


def test_topics_of_all_groups_are_found_in_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look through all offsets for each of half a million groups would take hours."""
    monkeypatch.setattr(consumer_offset_manager, "KEYS_OF_SLICE", 2)
    broker = broker_with_queues()
    offsets = broker.controller.offsets
    offsets.offsets.clear()
    offsets.offsets.update({"U@G": {}, "%RETRY%G@G": {}, "T@H": {}, "T@G": {}})
    work = offsets.topics_by_group()
    assert [next(work), next(work)] == [None, None]
    with pytest.raises(StopIteration) as end:
        next(work)
    assert {group: sorted(topics) for group, topics in end.value.value.items()} == {
        group: offsets.topics_of(group) for group in "GH"
    }


def test_table_of_all_producers_is_made_in_slices() -> None:
    broker = BrokerInMemory()
    groups = [f"P{number}" for number in range(ROWS_OF_SLICE)]
    for group in groups:
        heartbeat(broker.connect(), "", client_id="one", producer=group)
    peer = broker.connect()
    peer.send(RemotingCommand(RequestCode.GET_ALL_PRODUCER_INFO, language="JAVA"))
    assert peer.received() == []
    turns_made = 0
    while turn(broker.clock):
        turns_made += 1
    (answer,) = peer.received()
    assert turns_made >= 2
    assert set(decode_body(ProducerTableInfo, answer.body).data) == set(groups)
