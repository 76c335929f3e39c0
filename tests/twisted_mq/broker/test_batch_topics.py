"""Topics with batch queues (queue.type=BatchCQ) as clients meet them: sends, pulls, what waits, what is refused."""

from __future__ import annotations

import pytest

from tests.support.broker import BrokerInMemory, Peer
from tests.twisted_mq.broker.processors.test_pull import SUBSCRIPTION, SUSPEND, pull, pull_fields
from tests.twisted_mq.broker.processors.test_send import fields, send, stored
from twisted_mq.client.core.pull_result import pull_result
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.flags import MessageSysFlag
from twisted_mq.protocol.layouts.batch_entry import encode_batch
from twisted_mq.protocol.messages.message import Message
from twisted_mq.protocol.wire.command import RemotingCommand

INNER_FLAGS = MessageSysFlag.INNER_BATCH_FLAG | MessageSysFlag.NEED_UNWRAP_FLAG
BATCH_KEY = "UNIQ_KEY\x01BATCH\x02WAIT\x01true\x02"


@pytest.fixture
def broker() -> BrokerInMemory:
    """A broker with the topic T of batch queues."""
    made = BrokerInMemory()
    header = {"topic": "T", "defaultTopic": "TBW102", "readQueueNums": "4", "writeQueueNums": "4", "perm": "6",
              "topicFilterType": "SINGLE_TAG", "order": "false", "attributes": "+queue.type=BatchCQ"}  # fmt: skip
    assert made.connect().ask(RequestCode.UPDATE_AND_CREATE_TOPIC, header).code == 0
    return made


def batch(*bodies: bytes) -> bytes:
    return encode_batch([Message("T", body, 3, {"UNIQ_KEY": f"K{body.decode()}", "TAGS": "A"}) for body in bodies])


def send_batch(peer: Peer, *bodies: bytes, properties: str = BATCH_KEY, **more: str) -> RemotingCommand:
    return peer.ask(RequestCode.SEND_BATCH_MESSAGE, fields(batch="true", properties=properties, **more), batch(*bodies))


def consumed(answer: RemotingCommand) -> list[tuple[int, bytes]]:
    """(queue offset, body) as a client takes the answer apart."""
    return [(one.queue_offset, one.body) for one in pull_result(answer).messages]


def test_a_batch_becomes_one_record_that_counts_its_messages(broker: BrokerInMemory) -> None:
    peer = broker.connect()
    answer = send_batch(peer, b"one", b"two", b"three", flag="7")
    assert (answer.code, answer.remark) == (0, None)
    assert answer.ext_fields == {
        "MSG_REGION": "DefaultRegion", "TRACE_ON": "true", "msgId": "7F000002000051AF0000000000000000", "queueId": "0",
        "queueOffset": "0", "transactionId": "BATCH", "batchUniqId": "BATCH",
    }  # fmt: skip
    assert send_batch(peer, b"four").ext_fields["queueOffset"] == "3"
    first, second = stored(broker)
    assert (first.sys_flag, first.flag, first.body) == (INNER_FLAGS, 7, batch(b"one", b"two", b"three"))
    assert first.properties == {
        "UNIQ_KEY": "BATCH", "WAIT": "true", "CLUSTER": "CapCluster", "MSG_REGION": "DefaultRegion", "TRACE_ON": "true",
        "INNER_NUM": "3", "INNER_BASE": "0",
    }  # fmt: skip
    assert (second.queue_offset, second.properties["INNER_BASE"], second.properties["INNER_NUM"]) == (3, "3", "1")
    assert broker.store.max_offset_in_queue("T", 0) == 4


def test_a_single_message_is_a_record_of_one(broker: BrokerInMemory) -> None:
    peer = broker.connect()
    send_batch(peer, b"one", b"two")
    assert send(peer, b"three").ext_fields["queueOffset"] == "2"
    message = stored(broker)[1]
    assert (message.sys_flag, "INNER_NUM" in message.properties) == (0, False)
    assert send_batch(peer, b"four").ext_fields["queueOffset"] == "3"


def test_a_batch_without_a_key_of_its_own_is_stored_apart(broker: BrokerInMemory) -> None:
    """As by Apache's broker: a producer that knows no batch queues expects an id for each message."""
    answer = send_batch(broker.connect(), b"one", b"two", properties="WAIT\x01true\x02")
    assert (answer.ext_fields["msgId"].count(","), "batchUniqId" in answer.ext_fields) == (1, False)
    assert [(one.queue_offset, one.body) for one in stored(broker)] == [(0, b"one"), (1, b"two")]


def test_a_client_takes_records_apart(broker: BrokerInMemory) -> None:
    peer = broker.connect()
    send_batch(peer, b"one", b"two")
    send(peer, b"three")
    send_batch(peer, b"four", b"five")
    answer = pull(peer)
    assert (answer.code, answer.ext_fields["nextBeginOffset"], answer.ext_fields["maxOffset"]) == (0, "5", "5")
    assert consumed(answer) == [(0, b"one"), (1, b"two"), (2, b"three"), (3, b"four"), (4, b"five")]
    messages = pull_result(answer).messages
    assert [one.unique_key for one in messages] == ["Kone", "Ktwo", "KEY0", "Kfour", "Kfive"]
    assert [one.flag for one in messages] == [3, 3, 0, 3, 3]
    assert [one.tags for one in messages] == ["A", "A", None, "A", "A"]
    assert messages[0].msg_id == messages[1].msg_id != messages[2].msg_id
    assert consumed(pull(peer, offset=1, maxMsgNums="1")) == [(0, b"one"), (1, b"two")]


def test_a_batch_that_cannot_be_taken_apart_is_given_whole(broker: BrokerInMemory) -> None:
    peer = broker.connect()
    assert send(peer, b"no batch", sys_flag=str(INNER_FLAGS)).code == 0
    assert consumed(pull(peer)) == [(0, b"no batch")]


def test_a_waiting_pull_gets_the_batch_that_arrives(broker: BrokerInMemory) -> None:
    peer, consumer = broker.connect(), broker.connect()
    send_batch(peer, b"one", b"two")
    consumer.send(RemotingCommand.request(11, pull_fields(2, SUBSCRIPTION | SUSPEND)))
    assert consumer.received() == []
    send_batch(peer, b"three", b"four")
    (answer,) = consumer.received()
    assert consumed(answer) == [(2, b"three"), (3, b"four")]


def test_statistics_count_messages(broker: BrokerInMemory) -> None:
    peer = broker.connect()
    before = broker.controller.statistics.put_messages
    send_batch(peer, b"one", b"two", b"three")
    assert broker.controller.statistics.put_messages == before + 3


def test_more_messages_than_an_entry_can_count_are_refused(broker: BrokerInMemory) -> None:
    answer = send_batch(broker.connect(), *[b"x"] * 32768)
    assert (answer.code, answer.remark) == (
        ResponseCode.MESSAGE_ILLEGAL,
        "body: a batch of more than 32767 messages, a batch queue accepts 1 to 32767",
    )
    assert send_batch(broker.connect()).code == ResponseCode.MESSAGE_ILLEGAL
    assert broker.store.max_physical_offset() == 0


@pytest.mark.parametrize(
    ("sys_flag", "number", "remark"),
    [
        (0, "2", "properties: INNER_NUM is 2, but sysFlag 0 is not that of an inner batch"),
        (INNER_FLAGS, "3", "properties: INNER_NUM is 3, the body has 2 messages"),
    ],
)
def test_a_forged_count_is_refused(broker: BrokerInMemory, sys_flag: int, number: str, remark: str) -> None:
    properties = f"UNIQ_KEY\x01K\x02INNER_NUM\x01{number}\x02"
    answer = send(broker.connect(), batch(b"one", b"two"), properties=properties, sys_flag=str(sys_flag))
    assert (answer.code, answer.remark) == (ResponseCode.MESSAGE_ILLEGAL, remark)
    assert broker.store.max_physical_offset() == 0


def test_an_inner_batch_may_be_forwarded_as_a_message(broker: BrokerInMemory) -> None:
    properties = "UNIQ_KEY\x01K\x02INNER_NUM\x012\x02INNER_BASE\x0199\x02"
    peer = broker.connect()
    assert send(peer, batch(b"one", b"two"), properties=properties, sys_flag=str(INNER_FLAGS)).code == 0
    assert consumed(pull(peer)) == [(0, b"one"), (1, b"two")]


def test_topics_of_simple_queues_take_no_inner_batch(broker: BrokerInMemory) -> None:
    peer = broker.connect()
    assert send(peer, b"plain", topic="Simple").code == 0
    answer = send(peer, batch(b"one"), topic="Simple", properties="INNER_NUM\x011\x02", sys_flag=str(INNER_FLAGS))
    assert answer.code == ResponseCode.MESSAGE_ILLEGAL
    assert broker.store.max_offset_in_queue("Simple", 0) == 1


def test_a_batch_for_a_topic_of_simple_queues_is_stored_apart(broker: BrokerInMemory) -> None:
    answer = send_batch(broker.connect(), b"one", b"two", topic="Simple")
    assert (answer.ext_fields["msgId"].count(","), "batchUniqId" in answer.ext_fields) == (1, False)


def test_a_message_of_a_batch_cannot_be_given_back_alone(broker: BrokerInMemory) -> None:
    """Like Apache's broker, which has only the whole batch: its clients then send the message to the retry topic."""
    peer = broker.connect()
    send_batch(peer, b"one", b"two")
    header = {"group": "G", "originTopic": "T", "offset": "0", "delayLevel": "0", "originMsgId": "x"}
    answer = peer.ask(RequestCode.CONSUMER_SEND_MSG_BACK, header)
    assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, "MESSAGE_ILLEGAL")


@pytest.mark.parametrize(
    ("attributes", "remark"),
    [
        ("+queue.type=RocksDBCQ", "value is not in set: [BatchCQ, SimpleCQ]"),
        ("+queue.type=LightMessageQueue", "value is not in set: [BatchCQ, SimpleCQ]"),
    ],
)
def test_other_types_of_queues_are_refused(broker: BrokerInMemory, attributes: str, remark: str) -> None:
    header = {"topic": "Other", "defaultTopic": "TBW102", "readQueueNums": "4", "writeQueueNums": "4", "perm": "6",
              "topicFilterType": "SINGLE_TAG", "order": "false", "attributes": attributes}  # fmt: skip
    answer = broker.connect().ask(RequestCode.UPDATE_AND_CREATE_TOPIC, header)
    assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, remark)
    assert broker.controller.topics.get("Other") is None


def test_the_type_of_a_topic_cannot_be_changed(broker: BrokerInMemory) -> None:
    header = {"topic": "T", "defaultTopic": "TBW102", "readQueueNums": "4", "writeQueueNums": "4", "perm": "6",
              "topicFilterType": "SINGLE_TAG", "order": "false", "attributes": "+queue.type=SimpleCQ"}  # fmt: skip
    answer = broker.connect().ask(RequestCode.UPDATE_AND_CREATE_TOPIC, header)
    assert answer.remark == "attempt to update an unchangeable attribute. key: queue.type"
