"""What takes many rows or files is answered in slices, with others' requests between them."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from twisted.internet import task

from tests.support.broker import BrokerInMemory, Peer
from twisted_mq.broker import long_answers
from twisted_mq.broker.long_answers import ROWS_OF_SLICE
from twisted_mq.protocol.bodies import (
    ConsumerOffsetSerializeWrapper,
    ConsumeStats,
    ConsumeStatsList,
    QueryConsumeTimeSpanBody,
    ResetOffsetBody,
    TopicConfig,
    TopicConfigAndMappingSerializeWrapper,
    TopicStatsTable,
    decode_body,
    encode_body,
)
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.storage.memory.memory_store import MemoryMessageStore

QUEUES = 1000
RESET = {"topic": "T", "group": "G", "timestamp": "-1", "isForce": "true"}


@pytest.fixture(autouse=True)
def _one_slice_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Elsewhere a turn has as many as begin within 10 ms."""
    monkeypatch.setattr(task._Timer, "MAX_SLICE", 0)


def broker_with_queues() -> BrokerInMemory:
    broker = BrokerInMemory()
    broker.controller.topics.update(
        [TopicConfig(topic_name="T", read_queue_nums=QUEUES, write_queue_nums=QUEUES, perm=6)]
    )
    assert broker.controller.groups.find("G") is not None
    broker.controller.offsets.offsets["T@G"] = dict.fromkeys(range(QUEUES), 0)
    return broker


def reads_by_turn(broker: BrokerInMemory, peer: Peer, code: int, fields: dict[str, str]) -> list[int]:
    """How many queues were looked at in each turn until nothing was left to do."""
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


def turn(clock: task.Clock) -> bool:
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
    body = decode_body(body_class, answer.body)
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


def test_those_that_wait_for_a_table_share_one_that_is_no_older_than_what_they_ask_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    encoded: list[int] = []

    def counted(body: TopicConfigAndMappingSerializeWrapper) -> bytes:
        encoded.append(len(body.topic_config_table))
        return encode_body(body)

    monkeypatch.setattr(long_answers, "encode_body", counted)
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
