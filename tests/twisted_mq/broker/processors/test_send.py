"""Sends as clients meet them: frames in, frames out, and what then lies in the store."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest

from tests.support.broker import BrokerInMemory, Peer
from twisted_mq.broker.processors.send import SendMessageProcessor
from twisted_mq.broker.processors.send_batch import BatchSends
from twisted_mq.protocol.bodies import TopicConfig
from twisted_mq.protocol.headers import SendMessageRequestHeaderV2
from twisted_mq.protocol.layouts.batch_entry import encode_batch, encode_entry
from twisted_mq.protocol.layouts.record_codec import decode_message
from twisted_mq.protocol.messages.message import Message
from twisted_mq.protocol.requests.registry import RequestCode
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import TypedCommand, decode_header, encode_header
from twisted_mq.storage.interfaces import PutResult, PutStatus

NAMES = {"group": "a", "topic": "b", "default": "c", "queues": "d", "queue": "e", "sys_flag": "f", "born": "g",
         "flag": "h", "properties": "i", "reconsume": "j", "unit": "k", "batch": "m"}  # fmt: skip


def fields(topic: str = "T", **more: str) -> dict[str, str]:
    """A one-letter header; keyword arguments by the names above."""
    values = {"group": "P", "topic": topic, "default": "TBW102", "queues": "4", "queue": "0", "sys_flag": "0",
              "born": "1795217217000", "flag": "0", "properties": "UNIQ_KEY\x01KEY0\x02", "reconsume": "0",
              "unit": "false", "batch": "false", **more}  # fmt: skip
    return {NAMES[name]: value for name, value in values.items()}


def send(peer: Peer, body: bytes = b"hello", **more: str) -> RemotingCommand:
    return peer.ask(RequestCode.SEND_MESSAGE_V2, fields(**more), body)


def stored(broker: BrokerInMemory, topic: str = "T", queue_id: int = 0) -> list:
    result = broker.store.get_message(topic, queue_id, 0, 32, 1 << 20, None)
    return [decode_message(record) for record in result.records]


def test_message_is_stored_as_sent_with_the_brokers_properties() -> None:
    broker = BrokerInMemory()
    answer = send(broker.connect(), properties="TAGS\x01A\x02UNIQ_KEY\x01KEY0\x02WAIT\x01true\x02", flag="7")
    assert (answer.code, answer.remark) == (0, None)
    assert answer.ext_fields == {
        "MSG_REGION": "DefaultRegion", "TRACE_ON": "true", "msgId": "7F000002000051AF0000000000000000",
        "queueId": "0", "queueOffset": "0", "transactionId": "KEY0",
    }  # fmt: skip
    (message,) = stored(broker)
    assert (message.topic, message.body, message.flag, message.born_timestamp) == ("T", b"hello", 7, 1795217217000)
    assert (message.born_host, message.store_host) == ("127.0.0.1:52174", "127.0.0.2:20911")
    assert message.store_timestamp == broker.now_ms()
    assert message.properties == {
        "TAGS": "A", "UNIQ_KEY": "KEY0", "WAIT": "true", "CLUSTER": "CapCluster",
        "MSG_REGION": "DefaultRegion", "TRACE_ON": "true",
    }  # fmt: skip


@pytest.mark.parametrize(("topic", "sys_flag"), [("T", 1), ("%RETRY%G", 2)], ids=["unit", "subscribed by a unit"])
def test_topic_that_a_units_message_makes_is_marked(topic: str, sys_flag: int) -> None:
    broker = BrokerInMemory()
    broker.controller.groups.find("G")
    assert send(broker.connect(), topic=topic, unit="true").code == 0
    assert broker.controller.topics.get(topic).topic_sys_flag == sys_flag


def test_a_topics_message_type_is_no_condition_for_its_messages() -> None:
    """Apache's proxy compares them; its broker takes any type, also without enableMixedMessageType."""
    broker = BrokerInMemory()
    peer = broker.connect()
    create = {"topic": "T", "defaultTopic": "TBW102", "readQueueNums": "1", "writeQueueNums": "1", "perm": "6",
              "topicFilterType": "SINGLE_TAG", "order": "false", "attributes": "+message.type=FIFO"}  # fmt: skip
    assert peer.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, create).code == 0
    for properties in ("", "DELAY\x011\x02", "__SHARDINGKEY\x01k\x02"):
        assert send(peer, properties=properties).code == 0


@pytest.mark.parametrize("batch", ["false", "true"])
@pytest.mark.parametrize("topic", ["T", "%RETRY%G"])
def test_properties_that_no_record_holds_are_refused_before_they_are_read(topic: str, batch: str) -> None:
    broker = BrokerInMemory()
    peer = broker.connect()
    send(peer, topic=topic)
    with patch.object(SendMessageProcessor, "_message") as message, patch.object(BatchSends, "pattern") as pattern:
        answer = send(peer, topic=topic, batch=batch, properties="a\x01\x02" * 10_923)
    assert (answer.code, answer.remark.endswith("msg properties length limit 32KB.")) == (13, True)
    assert answer.ext_fields == {"MSG_REGION": "DefaultRegion", "TRACE_ON": "true"}
    assert (message.mock_calls, pattern.mock_calls, broker.controller.statistics.put_failed) == ([], [], 1)


def test_topic_is_made_with_the_clients_queue_count_and_registered() -> None:
    broker = BrokerInMemory()
    send(broker.connect(), queues="3", queue="2")
    config = broker.controller.topics.get("T")
    assert (config.read_queue_nums, config.write_queue_nums, config.perm) == (3, 3, 6)
    assert [[one.topic_name for one in told] for told in broker.registered] == [["T"]]
    send(broker.connect(), topic="U", queues="99", queue="2")
    assert broker.controller.topics.get("U").write_queue_nums == broker.options.default_topic_queue_nums


def test_without_auto_creation_an_unknown_topic_is_refused() -> None:
    answer = send(BrokerInMemory(auto_create_topic_enable=False).connect())
    assert (answer.code, (answer.remark or "").startswith("topic[T] not exist, apply first please!")) == (17, True)


def test_missing_unique_key_is_made_by_the_broker() -> None:
    broker = BrokerInMemory()
    answer = send(broker.connect(), properties="")
    (message,) = stored(broker)
    assert len(message.unique_key or "") == 32
    assert answer.ext_fields["transactionId"] == message.unique_key


def test_properties_of_the_broker_replace_what_a_client_claims() -> None:
    broker = BrokerInMemory()
    send(broker.connect(), properties="UNIQ_KEY\x01K\x02CLUSTER\x01other\x02POP_CK\x011 2 3\x02MSG_REGION\x01else\x02")
    (message,) = stored(broker)
    assert (message.properties["CLUSTER"], message.properties["MSG_REGION"]) == ("CapCluster", "DefaultRegion")
    assert "POP_CK" not in message.properties


def test_changed_topic_is_checked_anew() -> None:
    broker = BrokerInMemory()
    peer = broker.connect()
    assert send(peer, queue="3").code == 0
    create = {"topic": "T", "defaultTopic": "TBW102", "readQueueNums": "2", "writeQueueNums": "2", "perm": "6",
              "topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false"}  # fmt: skip
    assert peer.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, create).code == 0
    assert send(peer, queue="3").code == 29
    assert send(peer, queue="1").code == 0


def test_batch_is_stored_back_to_back_and_each_message_keeps_its_own_key() -> None:
    broker = BrokerInMemory()
    messages = [
        Message("T", b"one", properties={"UNIQ_KEY": "K1", "TAGS": "A"}),
        Message("T", b"two", properties={"UNIQ_KEY": "K2"}),
        Message("T", b"three", flag=9),
    ]
    answer = broker.connect().ask(
        RequestCode.SEND_BATCH_MESSAGE,
        fields(batch="true", properties="UNIQ_KEY\x01BATCH\x02WAIT\x01true\x02"),
        encode_batch(messages),
    )
    assert (answer.code, answer.ext_fields["queueOffset"], answer.ext_fields["transactionId"]) == (0, "0", "BATCH")
    found = stored(broker)
    assert [one.body for one in found] == [b"one", b"two", b"three"]
    assert [one.unique_key for one in found] == ["K1", "K2", "BATCH"]
    assert [one.queue_offset for one in found] == [0, 1, 2]
    assert (found[0].properties["TAGS"], found[0].properties["WAIT"], found[2].flag) == ("A", "true", 9)
    assert answer.ext_fields["msgId"].split(",") == [one.msg_id for one in found]


@pytest.mark.parametrize("count", [1, 3])
def test_each_message_of_a_batch_is_counted(count: int) -> None:
    broker = BrokerInMemory()
    body = encode_batch([Message("T", b"one")] * count)
    assert broker.connect().ask(RequestCode.SEND_BATCH_MESSAGE, fields(batch="true"), body).code == 0
    statistics = broker.controller.statistics
    assert (statistics.put_messages, statistics.puts["T"][0].messages) == (count, count)


def test_a_send_that_is_handed_on_is_answered_with_a_header_that_is_handed_back() -> None:
    broker = BrokerInMemory()
    peer = broker.connect()
    send(peer)
    header = decode_header(SendMessageRequestHeaderV2, RemotingCommand(310, ext_fields=fields()))
    answer = broker.processors[310](peer.channel, TypedCommand(310, 7, body=b"handed", header=header))
    assert isinstance(answer, TypedCommand) and answer.header is not None
    assert (answer.code, answer.opaque, answer.is_response) == (0, 7, True)
    broker.controller.dispatch()
    _, message = stored(broker)
    told = {"msgId": message.msg_id, "queueId": "0", "queueOffset": "1", "transactionId": "KEY0"}
    assert (message.body, encode_header(answer.header)) == (b"handed", told)


def test_batch_cut_off_is_refused_whole() -> None:
    broker = BrokerInMemory()
    body = encode_batch([Message("T", b"one"), Message("T", b"two")])
    answer = broker.connect().ask(RequestCode.SEND_BATCH_MESSAGE, fields(batch="true"), body[:-1])
    assert answer.code == 1
    assert "bytes" in (answer.remark or "")
    assert stored(broker) == []


@pytest.mark.parametrize("text", ["\0", "a\x01b\0", "a\x01b\x02\0"])
def test_no_records_properties_end_in_zeros_by_which_recovery_knows_torn_ones(text: str) -> None:
    broker = BrokerInMemory()
    peer = broker.connect()
    assert send(peer, properties=text).code == 0
    batch = fields(properties=text, batch="true")
    assert peer.ask(RequestCode.SEND_BATCH_MESSAGE, batch, encode_entry(0, b"x", text.encode())).code == 0
    records = broker.store.get_message("T", 0, 0, 32, 1 << 20, None).records
    assert [bytes(record)[-1:] for record in records] == [b"\x02"] * 2


def test_one_way_send_is_stored_and_not_answered() -> None:
    broker = BrokerInMemory()
    peer = broker.connect()
    peer.send(RemotingCommand(310, flag=2, body=b"x", ext_fields=fields()))
    assert peer.received() == []
    assert [one.body for one in stored(broker)] == [b"x"]


@pytest.mark.parametrize("serialize_type", [0, 1])
def test_answer_uses_the_encoding_of_its_request(serialize_type: int) -> None:
    answer = BrokerInMemory().connect().ask(310, fields(), b"x", serialize_type=serialize_type)
    assert (answer.code, answer.serialize_type) == (0, serialize_type)


@pytest.mark.parametrize(("value", "topic"), [("TRUE", "RMQ_SYS_TRANS_HALF_TOPIC"), ("false", "T"), ("1", "T")])
def test_only_true_makes_a_half_message(value: str, topic: str) -> None:
    broker = BrokerInMemory()
    send(broker.connect(), properties=f"UNIQ_KEY\x01K\x02TRAN_MSG\x01{value}\x02")
    assert [name for name in broker.store.topics() if broker.store.max_offset_in_queue(name, 0)] == [topic]


def test_sync_flush_answers_after_the_flush_and_hides_the_message_until_then() -> None:
    broker = BrokerInMemory(hold_flushes=True, flush_disk_type="SYNC_FLUSH")
    peer = broker.connect()
    peer.send(RemotingCommand(310, body=b"x", ext_fields=fields()))
    assert (peer.received(), stored(broker)) == ([], [])
    broker.store.flush()
    (answer,) = peer.received()
    assert (answer.code, [one.body for one in stored(broker)]) == (0, [b"x"])


def test_a_store_without_a_free_buffer_refuses_sends_and_what_is_given_back() -> None:
    """As Apache's transientStorePool without buffers under fastFailIfNoBufferInStorePool: clients try another broker."""
    broker = BrokerInMemory()
    peer = broker.connect()
    send(peer)
    busy = PutResult(PutStatus.OS_PAGE_CACHE_BUSY)
    broker.store.put_message = broker.controller.timed_put.call = lambda message: busy
    back = {"offset": "0", "group": "G", "delayLevel": "1", "originTopic": "T"}
    for answer in (send(peer), peer.ask(RequestCode.CONSUMER_SEND_MSG_BACK, back)):
        assert (answer.code, answer.remark) == (2, "[REJECTREQUEST]system busy, start flow control for a while")
    assert len(stored(broker)) == 1


def test_a_store_that_takes_nothing_says_why() -> None:
    broker = BrokerInMemory()
    peer = broker.connect()
    send(peer)
    broker.store.close()
    answer = send(peer)
    assert (answer.code, (answer.remark or "").split(". ")) == (14, [
        "service not available now",
        "It may be caused by one of the following reasons: the broker's disk is full [/nowhere], messages are put to the"
        " slave, message store has been shut down, etc",
        "This time: the message store has been shut down",
    ])  # fmt: skip
    assert answer.ext_fields == {"MSG_REGION": "DefaultRegion", "TRACE_ON": "true"}


def test_sync_flush_bounds_the_sends_that_wait() -> None:
    broker = BrokerInMemory(hold_flushes=True, flush_disk_type="SYNC_FLUSH", send_thread_pool_queue_capacity=1)
    peer = broker.connect()
    peer.send(RemotingCommand(310, body=b"x", ext_fields=fields()))
    answer = peer.ask(310, fields(), b"y")
    assert (answer.code, answer.remark) == (2, "[OVERLOAD]system busy, start flow control for a while")
    broker.store.flush()
    broker.controller.dispatch()
    assert [one.body for one in stored(broker)] == [b"x"]
    assert [one.code for one in peer.received()] == [0]


def test_sync_flush_shows_a_message_that_nobody_waits_for_once_it_is_on_disk() -> None:
    broker = BrokerInMemory(hold_flushes=True, flush_disk_type="SYNC_FLUSH")
    answer = send(broker.connect(), properties="UNIQ_KEY\x01K\x02WAIT\x01false\x02")
    assert (answer.code, stored(broker)) == (0, [])
    broker.store.flush()
    assert [one.body for one in stored(broker)] == [b"hello"]


@pytest.mark.parametrize("count", [1, 3])
def test_ordered_sends_are_counted(count: int) -> None:
    """Each is put at once."""

    def put_at_once(mode: str, message: Any, put: Any, sent: Any) -> Any:
        return sent(put(message), 0)

    broker = BrokerInMemory()
    ordering: Any = SimpleNamespace(asked=lambda topic: SimpleNamespace(sends=SimpleNamespace(take=put_at_once)))
    broker.controller.ordering = ordering
    broker.controller.topics.update([TopicConfig(topic_name="T", attributes={"order": "queues"})])
    peer = broker.connect()
    assert [send(peer).code for _ in range(count)] == [0] * count
    statistics = broker.controller.statistics
    counted = statistics.puts["T"][0]
    assert (statistics.put_messages, counted.messages, counted.bytes) == (
        count,
        count,
        broker.store.max_physical_offset(),
    )
