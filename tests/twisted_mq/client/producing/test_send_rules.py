"""What is refused, what is sent, and what the answer means."""

from __future__ import annotations

import zlib
from typing import Any

import pytest

from twisted_mq.client.core.errors import ClientOptionIllegal, MessageIllegal
from twisted_mq.client.core.message import Message
from twisted_mq.client.producing.send_rules import (
    SendLimits,
    SendResult,
    SendStatus,
    check_batch,
    check_group,
    check_message,
    check_topic,
    outgoing,
    outgoing_batch,
    send_request,
    send_result,
)
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.layouts.batch_entry import decode_batch
from twisted_mq.protocol.messages.compression import CompressionType
from twisted_mq.protocol.text.properties import decode_properties
from twisted_mq.protocol.wire.command import RemotingCommand

LIMITS = SendLimits()
QUEUE = MessageQueue("T", "broker-a", 3)


def message(body: Any = b"body", topic: str = "T", **rest: Any) -> Message:
    return Message(topic, body, **rest)


def test_message_takes_tags_keys_and_properties() -> None:
    made = Message(topic="T", body=b"x", tags="A", keys=["k", "l"], flag=7, delay_time_level=3, properties={"p": "v"})
    assert made.properties == {"p": "v", "TAGS": "A", "KEYS": "k l", "DELAY": "3"}
    assert (made.topic, made.body, made.flag, made.tags, made.keys) == ("T", b"x", 7, "A", ["k", "l"])
    assert Message("T", b"x", keys="one").keys == ["one"]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (message(topic=""), "blank"),
        (message(topic="../x"), "illegal characters"),
        (message(topic="a b"), "illegal characters"),
        (message(topic="x" * 128), "longer than"),
        (message(topic="SCHEDULE_TOPIC_XXXX"), "belongs to the broker"),
        (message(body=b""), "the body is empty"),
        (message(body="text"), "of type str, bytes are needed"),
        (message(body=None), "of type NoneType"),
        (message(body=b"x" * (4 * 1024 * 1024 + 1)), "max_message_size is 4194304"),
        (message(properties={"a": "b\x01"}), "separate properties"),
        (message(properties={"a\x02": "b"}), "separate properties"),
        (message(properties={"a": 1}), "names and values are text"),
        (message(properties={"": "1"}), "names are not empty"),
        (message(properties={"a": "x" * 32767}), "the limit is 32767"),
    ],
)
def test_message_no_broker_would_take_is_refused_with_the_reason(bad: Message, reason: str) -> None:
    with pytest.raises(MessageIllegal, match=reason):
        check_message(bad, LIMITS)


def test_good_message_passes() -> None:
    check_message(message(topic="%RETRY%g", tags="A", keys="k"), LIMITS)


@pytest.mark.parametrize(
    ("batch", "reason"),
    [
        ([], "without messages"),
        ([message(), message(topic="U")], "one batch has one topic"),
        ([message(), message(delay_time_level=1)], "delayed"),
        ([message(topic="%RETRY%g")], "retry topic"),
        ([message(), message(properties={"WAIT": "false"})], "WAIT"),
        ([message(), message(body=b"")], "empty"),
    ],
)
def test_batch_no_broker_would_take_is_refused(batch: list[Message], reason: str) -> None:
    with pytest.raises(MessageIllegal, match=reason):
        check_batch(batch, LIMITS)


def test_names_of_groups_and_topics() -> None:
    check_group("g-1")
    check_topic("T_1")
    with pytest.raises(ClientOptionIllegal, match="group 'a b'"):
        check_group("a b")
    with pytest.raises(ClientOptionIllegal, match=r"topic '\.\./x'"):
        check_topic("../x")


def test_outgoing_adds_key_and_wait_and_leaves_the_message_alone() -> None:
    sent = message(tags="A")
    ready = outgoing(sent, "KEY1", LIMITS)
    assert decode_properties(ready.properties) == {"TAGS": "A", "UNIQ_KEY": "KEY1", "WAIT": "true"}
    assert (ready.topic, ready.body, ready.sys_flag, ready.unique_key) == ("T", b"body", 0, "KEY1")
    assert ready.request_code is RequestCode.SEND_MESSAGE_V2
    assert sent.properties == {"TAGS": "A"}


def test_unique_key_set_by_hand_stays() -> None:
    assert outgoing(message(properties={"UNIQ_KEY": "MINE"}), "KEY1", LIMITS).unique_key == "MINE"


@pytest.mark.parametrize(("size", "compressed"), [(4095, False), (4096, True), (9000, True)])
def test_large_body_is_compressed(size: int, compressed: bool) -> None:
    body = b"x" * size
    ready = outgoing(message(body), "K", LIMITS)
    assert ready.sys_flag == (0x301 if compressed else 0)
    assert (zlib.decompress(ready.body) if compressed else ready.body) == body


def test_compression_type_stands_in_the_flag() -> None:
    limits = SendLimits(compress_over_bytes=1, compress_type=CompressionType.LZ4)
    assert outgoing(message(), "K", limits).sys_flag == 0x101


def test_retry_message_carries_its_tries_in_the_header() -> None:
    retried = message(topic="%RETRY%g", properties={"RECONSUME_TIME": "3", "MAX_RECONSUME_TIMES": "16"})
    ready = outgoing(retried, "K", LIMITS)
    assert (ready.reconsume_times, ready.max_reconsume_times) == (3, 16)
    assert decode_properties(ready.properties) == {"UNIQ_KEY": "K", "WAIT": "true"}


def test_half_message_is_flagged() -> None:
    assert outgoing(message(properties={"TRAN_MSG": "true"}), "K", LIMITS).sys_flag == 4


def test_batch_keeps_a_key_for_each_message() -> None:
    ready = outgoing_batch([message(b"1", tags="A"), message(b"2")], ["K1", "K2"])
    assert ready.unique_key == "K1,K2"
    assert ready.request_code is RequestCode.SEND_BATCH_MESSAGE
    assert decode_properties(ready.properties) == {"WAIT": "true"}
    assert [(one.body, one.properties) for one in decode_batch(ready.body, "T")] == [
        (b"1", {"TAGS": "A", "UNIQ_KEY": "K1", "WAIT": "true"}),
        (b"2", {"UNIQ_KEY": "K2", "WAIT": "true"}),
    ]


def test_batch_may_carry_one_key_for_all() -> None:
    ready = outgoing_batch([message(b"1")], ["K1"], "ALL")
    assert decode_properties(ready.properties) == {"UNIQ_KEY": "ALL", "WAIT": "true"}


def test_request_has_the_fields_apache_sends() -> None:
    """As recorded in remoting/producer_async_oneway, apart from names and times."""
    request = send_request(
        outgoing(message(b"async 1", tags="T1", keys="ak1"), "K", LIMITS),
        QUEUE, group="PG", default_topic="TBW102", queue_nums=4, now_ms=1795217858558,
    )  # fmt: skip
    properties = request.ext_fields.pop("i")
    assert request.code == 310
    assert request.ext_fields == {
        "a": "PG", "b": "T", "c": "TBW102", "d": "4", "e": "3", "f": "0", "g": "1795217858558", "h": "0",
        "j": "0", "k": "false", "m": "false", "n": "broker-a",
    }  # fmt: skip
    assert decode_properties(properties) == {"TAGS": "T1", "KEYS": "ak1", "UNIQ_KEY": "K", "WAIT": "true"}


@pytest.mark.parametrize("status", SendStatus)
def test_answer_becomes_a_result(status: SendStatus) -> None:
    fields = {"msgId": "OFFSET", "queueId": "1", "queueOffset": "42", "transactionId": "X"}
    answer = RemotingCommand(int(status.value), ext_fields=fields)
    assert send_result(outgoing(message(), "K", LIMITS), QUEUE, answer) == SendResult(
        status=status,
        msg_id="K",
        offset_msg_id="OFFSET",
        queue=MessageQueue("T", "broker-a", 1),
        queue_offset=42,
        transaction_id="X",
    )


def test_refusal_becomes_an_error() -> None:
    answer = RemotingCommand(int(ResponseCode.NO_PERMISSION), remark="not allowed")
    with pytest.raises(BrokerError, match="not allowed") as caught:
        send_result(outgoing(message(), "K", LIMITS), QUEUE, answer)
    assert caught.value.response_code == ResponseCode.NO_PERMISSION
