"""Requests and replies: the reply goes to the client that asked, and the consumer hears what became of it."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.logger import capturedLogs, formatEvent

from tests.support.broker import BrokerInMemory, Peer
from tests.support.captures import frame_index, frames
from twisted_mq.protocol.bodies import HeartbeatData, ProducerData, TopicConfig, encode_body
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.layouts.record_codec import decode_message
from twisted_mq.protocol.text.properties import decode_properties
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.framing import FrameDecoder

TOPIC = "CapCluster_REPLY_TOPIC"
ASKING = "127.0.0.1@10386#5097862947670"


def captured(code: int, *, response: bool = False) -> RemotingCommand:
    """The first recorded frame with this code, or the answer to it."""
    index, data = frame_index("request_reply"), frames("request_reply")
    (request, *_) = [line for line in index if line["code"] == code and line["request_or_response"] == "request"]
    line = next(one for one in index if one["answers"] == request["index"]) if response else request
    (command,) = FrameDecoder().receive_data(data[line["offset"] : line["offset"] + line["length"]])
    return command


def asking_client(broker: BrokerInMemory) -> Peer:
    peer = broker.connect()
    body = encode_body(HeartbeatData(client_id=ASKING, producer_data_set=[ProducerData(group_name="PG_req")]))
    peer.ask(RequestCode.HEART_BEAT, body=body)
    return peer


def reply(peer: Peer, code: int = RequestCode.SEND_REPLY_MESSAGE_V2, **changed: str) -> None:
    sent = captured(RequestCode.SEND_REPLY_MESSAGE_V2)
    fields = sent.ext_fields | changed
    if code == RequestCode.SEND_REPLY_MESSAGE:
        names = (
            "producerGroup", "topic", "defaultTopic", "defaultTopicQueueNums", "queueId", "sysFlag", "bornTimestamp", "flag",
            "properties", "reconsumeTimes", "unitMode", "consumeRetryTimes", "batch",
        )  # fmt: skip
        fields = {
            names["abcdefghijklm".index(name)]: value for name, value in fields.items() if name in "abcdefghijklm"
        }
    peer.send(RemotingCommand(code, body=sent.body, language="JAVA", ext_fields=fields))


def stored(broker: BrokerInMemory) -> list[Any]:
    return [decode_message(record) for record in broker.store.get_message(TOPIC, 0, 0, 32, 1 << 20, None).records]


@pytest.mark.parametrize("code", [RequestCode.SEND_REPLY_MESSAGE, RequestCode.SEND_REPLY_MESSAGE_V2])
def test_a_reply_is_pushed_stored_and_answered_as_recorded(code: int) -> None:
    broker = BrokerInMemory()
    asking, answering = asking_client(broker), broker.connect()
    reply(answering, code)
    assert answering.received() == []
    (push,) = asking.received()
    recorded = captured(RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT)
    assert (push.code, push.flag, push.body) == (recorded.code, recorded.flag, recorded.body)
    expected = recorded.ext_fields | {"storeTimestamp": str(broker.now_ms()), "bornHost": "127.0.0.1:52174"}
    assert _parsed(push.ext_fields) == _parsed(expected) | {
        "properties": decode_properties(expected["properties"]) | {"PUSH_REPLY_TIME": str(broker.now_ms())}
    }
    asking.send(push.answer())
    (answer,) = answering.received()
    wanted = captured(RequestCode.SEND_REPLY_MESSAGE_V2, response=True)
    assert (answer.code, answer.remark, answer.ext_fields.keys()) == (0, None, wanted.ext_fields.keys())
    (message,) = stored(broker)
    assert (message.body, message.msg_id) == (recorded.body, answer.ext_fields["msgId"])
    assert (answer.ext_fields["queueId"], answer.ext_fields["queueOffset"]) == ("0", "0")


def _parsed(fields: dict[str, str]) -> dict[str, Any]:
    return {**fields, "properties": decode_properties(fields["properties"])}


def test_replies_that_are_not_stored_have_no_place() -> None:
    broker = BrokerInMemory(store_reply_message_enable=False)
    asking, answering = asking_client(broker), broker.connect()
    reply(answering)
    asking.send(asking.received()[0].answer())
    (answer,) = answering.received()
    assert answer.ext_fields == {
        "MSG_REGION": "DefaultRegion", "TRACE_ON": "true", "msgId": "0", "queueId": "0", "queueOffset": "0",
    }  # fmt: skip
    assert stored(broker) == []


def test_a_reply_with_properties_that_no_record_holds_is_refused() -> None:
    broker = BrokerInMemory()
    answering = broker.connect()
    reply(answering, i="a\x01\x02" * 10_923)
    (answer,) = answering.received()
    assert (answer.code, (answer.remark or "").endswith("msg properties length limit 32KB.")) == (13, True)
    assert (answer.ext_fields, stored(broker)) == ({"MSG_REGION": "DefaultRegion", "TRACE_ON": "true"}, [])


@pytest.mark.parametrize(
    ("properties", "remark"),
    [
        ("UNIQ_KEY\x01K\x02", "reply message properties[REPLY_TO_CLIENT] is null"),
        ("REPLY_TO_CLIENT\x01nobody\x02", "push reply message fail, channel of <nobody> not found."),
    ],
)
def test_a_reply_to_nobody_is_stored_and_refused(properties: str, remark: str) -> None:
    broker = BrokerInMemory()
    answering = broker.connect()
    reply(answering, i=properties)
    (answer,) = answering.received()
    assert (answer.code, answer.remark, len(stored(broker))) == (ResponseCode.SYSTEM_ERROR, remark, 1)


def test_a_client_that_refuses_its_reply_fails_it() -> None:
    broker = BrokerInMemory()
    asking, answering = asking_client(broker), broker.connect()
    reply(answering)
    with capturedLogs() as events:
        asking.send(asking.received()[0].answer(ResponseCode.SYSTEM_ERROR, "no"))
    (answer,) = answering.received()
    assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, f"push reply message to {ASKING}fail.")
    assert [formatEvent(event) for event in events] == [f"reply not delivered to the client: client={ASKING} code 1 no"]


def test_a_client_that_does_not_answer_fails_its_reply_after_ten_seconds() -> None:
    broker = BrokerInMemory()
    asking, answering = asking_client(broker), broker.connect()
    reply(answering)
    broker.clock.advance(9.9)
    assert answering.received() == []
    broker.clock.advance(0.2)
    (answer,) = answering.received()
    assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, f"push reply message to {ASKING}fail.")
    assert asking.received()[0].code == RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT


def test_a_client_that_hangs_up_fails_its_reply() -> None:
    broker = BrokerInMemory()
    asking, answering = asking_client(broker), broker.connect()
    reply(answering)
    asking.channel.connectionLost()
    (answer,) = answering.received()
    assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, f"push reply message to {ASKING}fail.")


@pytest.mark.parametrize(("topic", "code"), [("bad topic!", 29), ("SCHEDULE_TOPIC_XXXX", 16)])
def test_a_reply_to_a_topic_that_may_not_be_sent_to_is_refused(topic: str, code: int) -> None:
    broker = BrokerInMemory()
    answering = broker.connect()
    reply(answering, b=topic)
    (answer,) = answering.received()
    assert answer.code == code


def test_a_reply_to_another_topic_is_refused_and_makes_none() -> None:
    broker = BrokerInMemory()
    answering = broker.connect()
    reply(answering, b="Orders")
    (answer,) = answering.received()
    assert (answer.code, answer.remark) == (
        ResponseCode.NO_PERMISSION,
        "topic Orders: replies are sent to topic CapCluster_REPLY_TOPIC",
    )
    assert (broker.controller.topics.get("Orders"), broker.store.max_physical_offset()) == (None, 0)


def test_an_ordered_topic_takes_no_replies() -> None:
    broker = BrokerInMemory(reply_to_any_topic_enable=True)
    broker.controller.topics.update([TopicConfig(topic_name="Orders", attributes={"order": "queues"})])
    answering = broker.connect()
    reply(answering, b="Orders")
    (answer,) = answering.received()
    assert (answer.code, answer.remark) == (
        ResponseCode.NO_PERMISSION,
        "topic Orders is ordered, and accepts no replies",
    )
    assert broker.store.max_physical_offset() == 0


def test_a_reply_goes_to_any_topic_where_that_is_asked_for() -> None:
    broker = BrokerInMemory(reply_to_any_topic_enable=True)
    answering = broker.connect()
    reply(answering, b="Orders")
    answering.received()
    assert broker.store.topics() == ["Orders"]


def test_replies_for_any_queue_get_all_queues_and_are_counted() -> None:
    broker = BrokerInMemory(reply_to_any_topic_enable=True)
    broker.controller.topics.update([TopicConfig("Orders", 4, 4, 6)])
    answering = broker.connect()
    for _ in range(50):
        reply(answering, b="Orders", e="-1", i="")
    queues = [answer.ext_fields["queueId"] for answer in answering.received()]
    assert set(queues) == {"0", "1", "2", "3"}
    counted = broker.controller.statistics.puts["Orders"]
    assert [counted[number].messages for number in range(4)] == [queues.count(str(number)) for number in range(4)]


def test_a_reply_for_any_queue_gets_one() -> None:
    broker = BrokerInMemory()
    answering = broker.connect()
    reply(answering, e="-1", i="")
    (answer,) = answering.received()
    assert (answer.code, answer.ext_fields["queueId"]) == (ResponseCode.SYSTEM_ERROR, "0")
