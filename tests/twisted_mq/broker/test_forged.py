"""Forged records that only a broker writes: refused in requests, and skipped if they are already in the log."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.broker import BrokerInMemory, Peer
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.layouts.batch_entry import encode_entry
from twisted_mq.protocol.layouts.record_codec import decode_message
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.protocol.names.system_topics import (
    HALF_TOPIC,
    NOT_ALLOWED_SEND_TOPICS,
    OP_TOPIC,
    REVIVE_GROUP,
    SCHEDULE_TOPIC,
    TIMER_TOPIC,
    TRANSACTION_GROUP,
)
from twisted_mq.protocol.text.properties import encode_properties
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.storage.interfaces import InnerMessage, PutStatus

REVIVE_TOPIC = "rmq_sys_REVIVE_LOG_CapCluster"
BROKERS_OWN = sorted({*NOT_ALLOWED_SEND_TOPICS, TIMER_TOPIC, REVIVE_TOPIC, "rmq_sys_REVIVE_LOG_Other"})
LONG = ("producerGroup", "topic", "defaultTopic", "defaultTopicQueueNums", "queueId", "sysFlag", "bornTimestamp", "flag",
        "properties", "reconsumeTimes", "unitMode", "consumeRetryTimes", "batch")  # fmt: skip
FORGED = {
    "REAL_TOPIC": TIMER_TOPIC, "REAL_QID": "12345", "POP_CK": "0 1 2 3 0 b 0 0", "TIMER_ROLL_TIMES": "7",
    "TIMER_ENQUEUE_MS": "1", "TIMER_DEQUEUE_MS": "1", "TRAN_PREPARED_QUEUE_OFFSET": "0", "TRANSACTION_CHECK_TIMES": "14",
}  # fmt: skip
OWN = {"UNIQ_KEY": "K", "color": "red"}
ADDED = {"CLUSTER": "CapCluster", "MSG_REGION": "DefaultRegion", "TRACE_ON": "true"}


def running(root: Path, **options: Any) -> tuple[BrokerInMemory, Peer]:
    broker = BrokerInMemory(store_path_root_dir=str(root), **options)
    broker.controller.waiting.start()
    return broker, broker.connect()


def fields(topic: str = "T", **properties: str) -> dict[str, str]:
    return {"a": "P", "b": topic, "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "1795217217000", "h": "0", "j": "0",
            "k": "false", "m": "false", "i": encode_properties(properties)}  # fmt: skip


def send(peer: Peer, topic: str = "T", **properties: str) -> RemotingCommand:
    return peer.ask(RequestCode.SEND_MESSAGE_V2, fields(topic, **properties), b"x")


def send_long(peer: Peer, topic: str) -> RemotingCommand:
    return peer.ask(
        RequestCode.SEND_MESSAGE, {LONG["abcdefghijklm".index(k)]: v for k, v in fields(topic).items()}, b"x"
    )


def send_batch(peer: Peer, topic: str, *texts: dict[str, str], **shared: str) -> RemotingCommand:
    body = b"".join(encode_entry(0, b"x", encode_properties(text).encode()) for text in texts or ({},))
    return peer.ask(RequestCode.SEND_BATCH_MESSAGE, fields(topic, **shared) | {"m": "true"}, body)


def reply(peer: Peer, topic: str = "T", **properties: str) -> RemotingCommand:
    return peer.ask(RequestCode.SEND_REPLY_MESSAGE_V2, fields(topic, **properties), b"x")


def stored(broker: BrokerInMemory, topic: str, queue_id: int = 0) -> list[MessageExt]:
    return [decode_message(one) for one in broker.store.get_message(topic, queue_id, 0, 32, 1 << 20, None).records]


def put(broker: BrokerInMemory, topic: str, queue_id: int = 0, **properties: str) -> None:
    text = encode_properties(properties).encode()
    assert broker.store.put_message(InnerMessage(topic, queue_id, b"x", text, properties, 0)).status is PutStatus.PUT_OK
    broker.controller.dispatch()


# sends


WAYS: dict[str, Callable[[Peer, str], RemotingCommand]] = {
    "short": send,
    "long": send_long,
    "batch": send_batch,
    "reply": reply,
    "half": lambda peer, topic: send(peer, topic, TRAN_MSG="true", PGROUP="P"),
    "level": lambda peer, topic: send(peer, topic, DELAY="1"),
    "time": lambda peer, topic: send(peer, topic, TIMER_DELAY_SEC="1"),
    "waited": lambda peer, topic: send(peer, topic, REAL_TOPIC="T", REAL_QID="0", TIMER_OUT_MS="1795217220000"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("topic", BROKERS_OWN)
def test_no_client_sends_to_what_brokers_alone_write(tmp_path: Path, topic: str, way: str) -> None:
    broker, peer = running(tmp_path)
    answer = WAYS[way](peer, topic)
    assert (answer.code, answer.remark) == (
        ResponseCode.NO_PERMISSION,
        f"Sending message to topic[{topic}] is forbidden.",
    )
    broker.clock.advance(5)
    assert broker.store.max_physical_offset() == 0


@pytest.mark.parametrize(
    "topic", ["RMQ_SYS_TRACE_TOPIC", "BenchmarkTest", "rmq_sys_TRACE_DATA_cn", "CapCluster_REPLY_TOPIC"]
)
def test_system_topics_that_are_there_for_clients_take_sends(tmp_path: Path, topic: str) -> None:
    assert send(running(tmp_path)[1], topic).code == 0


def test_a_message_keeps_nothing_that_brokers_write(tmp_path: Path) -> None:
    broker, peer = running(tmp_path)
    assert send(peer, **FORGED, **OWN).code == 0
    assert [one.properties for one in stored(broker, "T")] == [OWN | ADDED]


def test_messages_of_a_batch_keep_nothing_that_looks_delivered(tmp_path: Path) -> None:
    broker, peer = running(tmp_path)
    forged = {name: FORGED[name] for name in ("REAL_TOPIC", "REAL_QID", "POP_CK")}
    plain, named = {"UNIQ_KEY": "K1"}, {"UNIQ_KEY": "K2", "name": "REAL_TOPIC"}
    assert send_batch(peer, "T", plain | forged, named, **FORGED, color="red").code == 0
    both = [plain | {"color": "red"} | ADDED, named | {"color": "red"} | ADDED]
    assert [one.properties for one in stored(broker, "T")] == both


def test_a_stored_reply_keeps_nothing_that_brokers_write(tmp_path: Path) -> None:
    broker, peer = running(tmp_path)
    reply(peer, "CapCluster_REPLY_TOPIC", **FORGED, **OWN)
    assert [one.properties for one in stored(broker, "CapCluster_REPLY_TOPIC")] == [
        OWN | {"MSG_REGION": "DefaultRegion", "TRACE_ON": "true"}
    ]


@pytest.mark.parametrize("asked", [{"DELAY": "1"}, {"TIMER_DELAY_SEC": "1"}])
def test_a_message_waits_for_its_own_topic_whatever_it_names(tmp_path: Path, asked: dict[str, str]) -> None:
    broker, peer = running(tmp_path)
    assert send(peer, **FORGED, **OWN, **asked).code == 0
    broker.clock.advance(3)
    (message,) = stored(broker, "T")
    assert (message.properties["REAL_TOPIC"], message.properties["REAL_QID"]) == ("T", "0")
    assert "TIMER_ROLL_TIMES" not in message.properties
    assert broker.store.max_offset_in_queue(TIMER_TOPIC, 0) + broker.store.max_offset_in_queue(SCHEDULE_TOPIC, 0) == 1


def test_a_committed_message_goes_to_the_topic_that_it_was_sent_to(tmp_path: Path) -> None:
    broker, peer = running(tmp_path)
    send(peer, **FORGED, **OWN, TRAN_MSG="true", PGROUP="P")
    (half,) = stored(broker, HALF_TOPIC)
    assert {"TRAN_PREPARED_QUEUE_OFFSET", "TRANSACTION_CHECK_TIMES"}.isdisjoint(half.properties)
    end = {"producerGroup": "P", "commitLogOffset": "0", "tranStateTableOffset": "0", "commitOrRollback": "8",
           "fromTransactionCheck": "false", "msgId": "K"}  # fmt: skip
    assert peer.ask(RequestCode.END_TRANSACTION, end).code == 0
    assert [one.body for one in stored(broker, "T")] == [b"x"]


def test_a_message_that_says_it_was_committed_ends_no_transaction(tmp_path: Path) -> None:
    """After a kill the broker believes what lies in the real queue: a half message that is there is not committed again."""
    broker, peer = running(tmp_path, reply_to_any_topic_enable=True)
    send(peer, **OWN, TRAN_MSG="true", PGROUP="P")
    peer.ask(RequestCode.SEND_MESSAGE_V2, fields(**OWN) | {"f": "8"}, b"forged")
    reply_fields = fields(**OWN, REPLY_TO_CLIENT="c") | {"f": "8"}
    peer.ask(RequestCode.SEND_REPLY_MESSAGE_V2, reply_fields, b"forged")
    assert {one.sys_flag for one in stored(broker, "T")} == {0}
    again = BrokerInMemory(store_path_root_dir=str(tmp_path), restarted=broker)
    end = {"producerGroup": "P", "commitLogOffset": "0", "tranStateTableOffset": "0", "commitOrRollback": "8",
           "fromTransactionCheck": "false", "msgId": "K"}  # fmt: skip
    assert again.connect().ask(RequestCode.END_TRANSACTION, end).code == 0
    assert [one.body for one in stored(again, "T")] == [b"forged", b"forged", b"x"]


def test_a_copy_of_a_message_that_has_waited_is_delivered_at_once(tmp_path: Path) -> None:
    """As Apache's: a consumer that sends on what it got, with all its properties, does not wait again."""
    broker, peer = running(tmp_path)
    send(peer, **OWN, TIMER_DELAY_SEC="1")
    broker.clock.advance(3)
    (message,) = stored(broker, "T")
    assert send(peer, "Elsewhere", **message.properties).code == 0
    (copy,) = stored(broker, "Elsewhere")
    assert copy.properties["TIMER_OUT_MS"] == message.properties["TIMER_OUT_MS"]


# in the log already, from before or from another broker


@pytest.mark.parametrize("topic", sorted({*NOT_ALLOWED_SEND_TOPICS, TIMER_TOPIC}))
def test_a_waiting_message_for_a_topic_of_the_broker_is_passed_over(tmp_path: Path, topic: str) -> None:
    broker, peer = running(tmp_path)
    ahead = {"REAL_TOPIC": topic, "REAL_QID": "0"}
    put(broker, TIMER_TOPIC, TIMER_OUT_MS=str(broker.now_ms()), **ahead)
    put(broker, TIMER_TOPIC, TIMER_OUT_MS=str(broker.now_ms() + 2000), **ahead)
    put(broker, SCHEDULE_TOPIC, DELAY="1", **ahead)
    put(broker, HALF_TOPIC, PGROUP="P", **ahead)
    size = broker.store.max_physical_offset()
    broker.clock.pump([0.1] * 50)
    assert broker.store.max_physical_offset() == size
    end = {"producerGroup": "P", "tranStateTableOffset": "0", "commitOrRollback": "8", "fromTransactionCheck": "false",
           "commitLogOffset": str(stored(broker, HALF_TOPIC)[0].physical_offset)}  # fmt: skip
    assert peer.ask(RequestCode.END_TRANSACTION, end).code == ResponseCode.SYSTEM_ERROR
    assert (broker.store.max_physical_offset(), stored(broker, OP_TOPIC)) == (size, [])
    assert send(peer, TIMER_DELAY_SEC="1").code == send(peer, DELAY="1").code == 0
    broker.clock.advance(3)
    assert len(stored(broker, "T")) == 2


@pytest.mark.parametrize("place", [{"REAL_TOPIC": "../../x", "REAL_QID": "0"}, {"REAL_TOPIC": "T", "REAL_QID": "-5"}])
def test_a_waiting_message_that_no_queue_takes_holds_nobody_back(tmp_path: Path, place: dict[str, str]) -> None:
    broker, peer = running(tmp_path)
    put(broker, TIMER_TOPIC, TIMER_OUT_MS=str(broker.now_ms()), **place)
    put(broker, SCHEDULE_TOPIC, DELAY="1", **place)
    assert send(peer, TIMER_DELAY_SEC="1").code == send(peer, DELAY="1").code == 0
    broker.clock.advance(3)
    assert len(stored(broker, "T")) == 2


# how far the broker came


@pytest.mark.parametrize(
    ("group", "topic"), [(REVIVE_GROUP, REVIVE_TOPIC), (TRANSACTION_GROUP, HALF_TOPIC), (TRANSACTION_GROUP, OP_TOPIC)]
)
def test_no_client_moves_the_offsets_of_the_brokers_own_work(tmp_path: Path, group: str, topic: str) -> None:
    broker, peer = running(tmp_path, use_server_side_reset_offset=True)
    controller = broker.controller
    controller.offsets.commit(group, topic, 0, 0)
    controller.offsets.commit("G", topic, 0, 9)
    place = {"consumerGroup": group, "topic": topic, "queueId": "0"}
    pull = {**place, "queueOffset": "0", "maxMsgNums": "1", "sysFlag": "5", "commitOffset": "9", "suspendTimeoutMillis": "0",
            "subscription": "*", "subVersion": "0"}  # fmt: skip
    pop = {**place, "maxMsgNums": "1", "invisibleTime": "10000", "pollTime": "0", "bornTime": str(broker.now_ms()),
           "initMode": "0", "order": "false"}  # fmt: skip
    reset = {"topic": topic, "group": group, "timestamp": "-1", "isForce": "true", "queueId": "0", "offset": "1"}
    asked = (
        (RequestCode.UPDATE_CONSUMER_OFFSET, {**place, "commitOffset": "9"}),
        (RequestCode.PULL_MESSAGE, pull),
        (RequestCode.POP_MESSAGE, pop),
        (RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, reset),
        (RequestCode.CLONE_GROUP_OFFSET, {"srcGroup": "G", "destGroup": group, "topic": topic, "offline": "true"}),
        (RequestCode.DELETE_SUBSCRIPTIONGROUP, {"groupName": group, "cleanOffset": "true"}),
    )
    codes = [peer.ask(code, what).code for code, what in asked]
    missing, forbidden = ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, ResponseCode.NO_PERMISSION
    assert codes == [missing] * 3 + [forbidden] * 3
    assert controller.offsets.query(group, topic, 0) == 0
