"""Resets, clones and comparisons of committed offsets."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.broker import BrokerInMemory, Peer, anywhere
from tests.support.heartbeat import heartbeat
from tests.twisted_mq.broker.processors.test_pull import pull
from tests.twisted_mq.broker.processors.test_send import send
from twisted_mq.protocol.bodies import (
    ConsumerOffsetSerializeWrapper,
    GetConsumerStatusBody,
    MessageQueue,
    QueryCorrectionOffsetBody,
    ResetOffsetBody,
    TopicConfig,
    decode_body,
    encode_body,
)
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.wire.command import RemotingCommand


def broker_with_messages(count: int = 5, **options: Any) -> tuple[BrokerInMemory, Peer]:
    """A topic of four queues with messages in the first one, stored a second apart."""
    broker = BrokerInMemory(**options)
    peer = broker.connect()
    for number in range(count):
        send(peer, b"%d" % number)
        broker.clock.advance(1)
    return broker, peer


def reset(peer: Peer, **fields: object) -> RemotingCommand:
    header = {"topic": "T", "group": "C", "timestamp": -1, "isForce": True, **fields}
    texts = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in header.items()}
    return peer.ask(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, texts)


def offsets_of(answer: RemotingCommand) -> dict[int, int]:
    return {queue.queue_id: offset for queue, offset in decode_body(ResetOffsetBody, answer.body).offset_table.items()}


def test_reset_by_time_goes_to_the_first_message_of_that_time() -> None:
    broker, peer = broker_with_messages()
    broker.controller.groups.find("C")
    answer = reset(peer, timestamp=broker.now_ms() - 2500)
    assert (answer.code, offsets_of(answer)) == (0, {0: 3, 1: 0, 2: 0, 3: 0})
    assert broker.controller.offsets.query("C", "T", 0) == 3


def test_reset_below_zero_goes_to_the_end() -> None:
    broker, peer = broker_with_messages()
    broker.controller.groups.find("C")
    assert offsets_of(reset(peer)) == {0: 5, 1: 0, 2: 0, 3: 0}


@pytest.mark.parametrize("offset", [0, 5])
def test_reset_goes_to_the_first_message_or_behind_the_last(offset: int) -> None:
    broker, peer = broker_with_messages()
    broker.controller.groups.find("C")
    assert offsets_of(reset(peer, queueId=0, offset=offset)) == {0: offset}
    assert broker.controller.offsets.query("C", "T", 0) == offset


def test_reset_sends_the_next_pull_there_and_ignores_commits_until_then() -> None:
    broker, peer = broker_with_messages()
    pull(peer, consumerGroup="C")
    assert offsets_of(reset(peer, queueId=0, offset=2)) == {0: 2}
    committed = {"consumerGroup": "C", "topic": "T", "queueId": "0", "commitOffset": "5"}
    late = peer.ask(RequestCode.UPDATE_CONSUMER_OFFSET, committed)
    assert (late.code, late.remark) == (0, "Offset has been previously reset")
    assert broker.controller.offsets.query("C", "T", 0) == 2
    moved = pull(peer, offset=5, consumerGroup="C")
    assert (moved.code, moved.remark) == (ResponseCode.PULL_OFFSET_MOVED, "OFFSET_RESET")
    assert moved.ext_fields["nextBeginOffset"] == "2"
    assert pull(peer, offset=2, consumerGroup="C").code == 0
    assert peer.ask(RequestCode.UPDATE_CONSUMER_OFFSET, committed).remark is None


def test_reset_answers_a_pull_that_waits() -> None:
    broker, peer = broker_with_messages()
    waiting = broker.connect()
    pull_held(waiting)
    reset(peer, queueId=0, offset=1)
    (answer,) = waiting.received()
    assert (answer.remark, answer.ext_fields["nextBeginOffset"]) == ("OFFSET_RESET", "1")


def pull_held(peer: Peer) -> None:
    fields = {"consumerGroup": "C", "topic": "T", "queueId": "0", "queueOffset": "5", "maxMsgNums": "32", "sysFlag": "6",
              "commitOffset": "0", "suspendTimeoutMillis": "15000", "subVersion": "0", "subscription": "*"}  # fmt: skip
    peer.send(RemotingCommand(RequestCode.PULL_MESSAGE, language="JAVA", ext_fields=fields))
    assert peer.received() == []


@pytest.mark.parametrize(
    ("fields", "code", "remark"),
    [
        ({"topic": "nosuch"}, ResponseCode.TOPIC_NOT_EXIST, "Topic nosuch does not exist"),
        ({"group": "nosuch"}, ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, "Group nosuch does not exist"),
        (
            {"queueId": 0, "offset": 99},
            ResponseCode.SYSTEM_ERROR,
            "Target offset 99 not in consume queue range [0-5]",
        ),
        ({"timestamp": "soon"}, ResponseCode.SYSTEM_ERROR, None),
    ],
)
def test_bad_reset_changes_nothing(fields: dict[str, object], code: int, remark: str | None) -> None:
    broker, peer = broker_with_messages()
    broker.controller.groups.find("C")
    answer = reset(peer, **fields)
    assert answer.code == code
    assert remark is None or answer.remark == remark
    assert (broker.controller.offsets.offsets, broker.controller.offsets.resets) == ({}, {})


def test_topic_without_queues_is_not_reset() -> None:
    broker, peer = broker_with_messages()
    broker.controller.groups.find("C")
    broker.controller.topics.update([TopicConfig("T", 0, 0, 6)])
    answer = reset(peer)
    assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, "No queues to reset.")


def test_reset_through_the_consumers_pushes_the_offsets() -> None:
    broker, peer = broker_with_messages(use_server_side_reset_offset=False)
    consumer, cpp = broker.connect(), broker.connect()
    heartbeat(consumer, "C", "T", client_id="java")
    heartbeat(cpp, "C", "T", client_id="cpp", language="CPP")
    for queue_id in range(4):
        broker.controller.offsets.commit("C", "T", queue_id, 4 if queue_id == 0 else 0)
    consumer.received()
    cpp.received()
    assert offsets_of(reset(peer, timestamp=0)) == {0: 0, 1: 0, 2: 0, 3: 0}
    (told,) = consumer.received()
    assert (told.code, told.is_one_way) == (RequestCode.RESET_CONSUMER_CLIENT_OFFSET, True)
    assert told.ext_fields["topic"] == "T" and told.ext_fields["group"] == "C"
    assert offsets_of(told) == {0: 0, 1: 0, 2: 0, 3: 0}
    (told,) = cpp.received()
    assert b'"offsetTable":[{"brokerName":"broker-cap","offset":0,"queueId":0,"topic":"T"}' in told.body
    assert broker.controller.offsets.query("C", "T", 0) == 4


def test_reset_through_consumers_without_force_only_goes_back() -> None:
    broker, peer = broker_with_messages(use_server_side_reset_offset=False)
    heartbeat(broker.connect(), "C", "T", client_id="java")
    for queue_id in range(4):
        broker.controller.offsets.commit("C", "T", queue_id, 2 if queue_id == 0 else 0)
    assert offsets_of(reset(peer, isForce=False))[0] == 2
    assert offsets_of(reset(peer, isForce=True))[0] == 5


def test_reset_through_consumers_needs_one() -> None:
    broker, peer = broker_with_messages(use_server_side_reset_offset=False)
    assert reset(peer).remark == "THe consumer group <C> not exist"
    for queue_id in range(4):
        broker.controller.offsets.commit("C", "T", queue_id, 0)
    answer = reset(peer)
    assert (answer.code, answer.remark) == (
        ResponseCode.CONSUMER_NOT_ONLINE,
        "Consumer not online, so can not reset offset, Group: C Topic: T Timestamp: -1",
    )


def test_clone_copies_one_topic_or_all() -> None:
    broker, peer = broker_with_messages()
    offsets = broker.controller.offsets
    offsets.commit("C", "T", 0, 3)
    offsets.commit("C", "gone", 0, 3)
    fields = {"srcGroup": "C", "destGroup": "D", "topic": "T", "offline": "false"}
    assert peer.ask(RequestCode.CLONE_GROUP_OFFSET, fields).code == 0
    assert offsets.offsets["T@D"] == {0: 3}
    peer.ask(RequestCode.CLONE_GROUP_OFFSET, {"srcGroup": "C", "destGroup": "E", "topic": "", "offline": "true"})
    assert (offsets.offsets["T@E"], "gone@E" in offsets.offsets) == ({0: 3}, False)


def test_correction_is_the_lowest_offset_of_the_others() -> None:
    broker, peer = broker_with_messages()
    offsets = broker.controller.offsets
    for group, offset in (("A", 3), ("B", 1), ("filtered", 0)):
        offsets.commit(group, "T", 0, offset)
    fields = {"topic": "T", "compareGroup": "A", "filterGroups": "filtered"}
    body = decode_body(QueryCorrectionOffsetBody, peer.ask(RequestCode.QUERY_CORRECTION_OFFSET, fields).body)
    assert body.correction_offsets == {0: 1}
    fields = {"topic": "T", "compareGroup": "B", "filterGroups": "filtered,B"}
    body = decode_body(QueryCorrectionOffsetBody, peer.ask(RequestCode.QUERY_CORRECTION_OFFSET, fields).body)
    assert body.correction_offsets == {0: (1 << 63) - 1}
    assert offsets.query("filtered", "T", 0) == 0


def test_all_offsets_are_exported() -> None:
    broker, peer = broker_with_messages(queue_end=anywhere)
    broker.controller.offsets.commit("C", "T", 2, 7)
    body = decode_body(ConsumerOffsetSerializeWrapper, peer.ask(RequestCode.GET_ALL_CONSUMER_OFFSET).body)
    assert body.offset_table == {"T@C": {2: 7}}


def test_consumer_status_is_asked_of_each_consumer() -> None:
    broker, peer = broker_with_messages()
    consumer, silent = broker.connect(), broker.connect()
    heartbeat(consumer, "C", "T", client_id="one")
    heartbeat(silent, "C", "T", client_id="two")
    consumer.received()
    fields = {"topic": "T", "group": "C"}
    peer.send(RemotingCommand(RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, language="JAVA", ext_fields=fields))
    (asked,) = consumer.received()
    assert (asked.code, asked.ext_fields) == (RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, fields)
    queue = MessageQueue(topic="T", broker_name="broker-cap", queue_id=0)
    consumer.send(asked.answer(body=encode_body(GetConsumerStatusBody(message_queue_table={queue: 9}))))
    broker.clock.advance(6)
    (answer,) = peer.received()
    assert decode_body(GetConsumerStatusBody, answer.body).consumer_table == {"one": {queue: 9}}
