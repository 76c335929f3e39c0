"""Requests in their most adverse shapes: as large as a server takes them, of as many small parts as fit."""

from __future__ import annotations

import base64
from collections.abc import Callable

import attrs

from tests.support.broker import START_SECONDS, BrokerInMemory
from tests.twisted_mq.broker.processors.test_send import fields as send_fields
from twisted_mq.protocol.bodies import (
    BatchAck,
    BatchAckMessageRequestBody,
    ConsumerData,
    HeartbeatData,
    LockBatchRequestBody,
    MessageQueue,
    ProducerData,
    SubscriptionData,
    TopicConfig,
    UnlockBatchRequestBody,
    encode_body,
)
from twisted_mq.protocol.bodies.pop import MOST_POPPED
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.layouts.batch_entry import encode_entry
from twisted_mq.protocol.layouts.host import pack_host
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.storage.config import StoreConfig
from twisted_mq.storage.message_store import FileMessageStore

COMMON = {
    "topic": "T", "consumerGroup": "G", "group": "G", "producerGroup": "P", "queueId": "0", "clientId": "c",
    "clientID": "c", "offset": "0", "timestamp": "0", "isForce": "true", "msgId": "7F000002000051AF0000000000000000",
    "key": "k" * 10_000, "maxNum": "64", "beginTimestamp": "0", "endTimestamp": "9223372036854775807",
    "consumeGroup": "G", "srcGroup": "G", "destGroup": "H", "queueOffset": "0", "maxMsgNums": "32", "sysFlag": "0",
    "commitOffset": "0", "suspendTimeoutMillis": "0", "subVersion": "0", "count": "65535", "index": "0",
    "filterGroups": ",".join(f"g{number}" for number in range(10_000)), "compareGroup": "G",
}  # fmt: skip
"""Fields by which most requests are taken for whole."""

QUEUES = 4096


@attrs.frozen
class Shape:
    """Requests that one connection sends in one read."""

    name: str
    code: int
    requests: Callable[[], list[RemotingCommand]]


def _one(code: int, body: bytes, **fields: str) -> Callable[[], list[RemotingCommand]]:
    return lambda: [RemotingCommand(code, body=body, language="JAVA", ext_fields=fields)]


def _heartbeat(**parts: object) -> bytes:
    return encode_body(HeartbeatData(client_id="c", **parts))  # type: ignore[arg-type]


def _queues() -> list[MessageQueue]:
    return [MessageQueue(topic="T", broker_name="broker-cap", queue_id=number) for number in range(QUEUES)] * 10


def _acks(bits: int, count: int) -> bytes:
    spread = (
        sum(1 << (bits * index // MOST_POPPED) for index in range(MOST_POPPED))
        if bits > MOST_POPPED
        else (1 << bits) - 1
    )
    bit_set = base64.b64encode(spread.to_bytes(bits // 8, "little")).decode()
    one = BatchAck("G", "T", "0", start_offset=0, queue_id=0, revive_queue_id=0, pop_time=1, invisible_time=10_000,
                   bit_set=bit_set)  # fmt: skip
    return encode_body(BatchAckMessageRequestBody("broker-cap", [one] * count))


def _subscriptions(count: int) -> list[SubscriptionData]:
    return [SubscriptionData(topic=f"T{number}", sub_string="*") for number in range(count)]


def _many_groups() -> bytes:
    consumers = [ConsumerData(group_name=f"G{number}") for number in range(5000)]
    return _heartbeat(consumer_data_set=consumers)


SHAPES = [
    Shape(
        "producer groups, 60,000",
        RequestCode.HEART_BEAT,
        _one(34, _heartbeat(producer_data_set=[ProducerData(group_name=f"P{number}") for number in range(60_000)])),
    ),
    Shape("consumer groups, 5,000", RequestCode.HEART_BEAT, _one(34, _many_groups())),
    Shape(
        "subscriptions, 20,000",
        RequestCode.HEART_BEAT,
        _one(34, _heartbeat(consumer_data_set=[ConsumerData("G", subscription_data_set=_subscriptions(20_000))])),
    ),
    Shape(
        "entries of 65,536 bits, 600",
        RequestCode.BATCH_ACK_MESSAGE,
        _one(RequestCode.BATCH_ACK_MESSAGE, _acks(65_536, 600)),
    ),
    Shape(
        "entries of 8 bits, 20,000",
        RequestCode.BATCH_ACK_MESSAGE,
        _one(RequestCode.BATCH_ACK_MESSAGE, _acks(8, 20_000)),
    ),
    Shape(
        "messages of one byte, 190,000",
        RequestCode.SEND_BATCH_MESSAGE,
        _one(RequestCode.SEND_BATCH_MESSAGE, encode_entry(0, b"x", b"") * 190_000, **send_fields(batch="true")),
    ),
    Shape(
        "messages of one and two bytes, 190,000",
        RequestCode.SEND_BATCH_MESSAGE,
        _one(
            RequestCode.SEND_BATCH_MESSAGE,
            (encode_entry(0, b"x", b"") + encode_entry(0, b"xy", b"")) * 95_000,
            **send_fields(batch="true"),
        ),
    ),
    Shape(
        "queues, 40,960",
        RequestCode.LOCK_BATCH_MQ,
        _one(41, encode_body(LockBatchRequestBody(consumer_group="G", client_id="c", mq_set=_queues()))),
    ),
    Shape(
        "queues, 40,960",
        RequestCode.UNLOCK_BATCH_MQ,
        _one(42, encode_body(UnlockBatchRequestBody(consumer_group="G", client_id="c", mq_set=_queues()))),
    ),
]


def general(code: int) -> list[Shape]:
    """Shapes for any request: bodies of 4 MiB that are nothing, text of very many parts, pipelined small ones."""
    bodies = {
        "4 MiB of zeros": bytes(4 << 20),
        "1,000,000 numbers": b'{"a":[' + b"1," * 999_999 + b"1]}",
        "60,000 brackets": b"[" * 60_000,
    }
    shapes = [Shape(name, code, _one(code, body, **COMMON)) for name, body in bodies.items()]
    small = RemotingCommand(code, language="JAVA", ext_fields=COMMON)
    return [*shapes, Shape("1,000 in one read", code, lambda: [small] * 1000)]


def loaded_broker(in_thread: Callable[..., object], folder: str) -> BrokerInMemory:
    """A broker with a topic of many queues, some messages and a group, and a store in a folder."""
    config = StoreConfig(store_path_root_dir=folder, store_host=pack_host("127.0.0.2", 20911))
    store = FileMessageStore(config, lambda: int(1000 * START_SECONDS))
    broker = BrokerInMemory(parts={"in_thread": in_thread}, revive_queue_num=1, store=store)
    topic = TopicConfig(topic_name="T", read_queue_nums=QUEUES, write_queue_nums=QUEUES, perm=6)
    broker.controller.topics.update([topic])
    peer = broker.connect()
    for _ in range(64):
        peer.ask(RequestCode.SEND_MESSAGE_V2, send_fields(), b"hello")
    broker.controller.groups.find("G")
    return broker
