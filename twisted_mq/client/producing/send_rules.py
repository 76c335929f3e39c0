"""What is sent for a message: checks before anything leaves, the request's header and body, the meaning of the answer.

Pure functions. Names and limits as Apache's Validators, DefaultMQProducer and MQClientAPIImpl.processSendResponse.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence

import attrs

from twisted_mq.client.core.errors import ClientOptionIllegal, MessageIllegal
from twisted_mq.client.core.request_and_reply import REPLY
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.flags import MessageSysFlag
from twisted_mq.protocol.headers import SendMessageRequestHeaderV2, SendMessageResponseHeader
from twisted_mq.protocol.layouts.batch_entry import encode_batch
from twisted_mq.protocol.messages.compression import CompressionType, compress
from twisted_mq.protocol.messages.message import Message
from twisted_mq.protocol.messages.trace import DEFAULT_REGION
from twisted_mq.protocol.names.system_topics import NOT_ALLOWED_SEND_TOPICS, RETRY_PREFIX
from twisted_mq.protocol.names.validation import group_fault, topic_fault
from twisted_mq.protocol.text.properties import (
    MAX_PROPERTIES_BYTES,
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_MAX_RECONSUME_TIMES,
    PROPERTY_MESSAGE_TYPE,
    PROPERTY_MSG_REGION,
    PROPERTY_RECONSUME_TIME,
    PROPERTY_TRACE_SWITCH,
    PROPERTY_TRANSACTION_PREPARED,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
    PROPERTY_WAIT_STORE_MSG_OK,
    encode_properties,
)
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import encode_header, fast_header


class SendStatus(enum.Enum):
    """How far a message came when its send was answered. Only SEND_OK keeps every promise of the broker's settings."""

    SEND_OK = ResponseCode.SUCCESS
    FLUSH_DISK_TIMEOUT = ResponseCode.FLUSH_DISK_TIMEOUT
    FLUSH_SLAVE_TIMEOUT = ResponseCode.FLUSH_SLAVE_TIMEOUT
    SLAVE_NOT_AVAILABLE = ResponseCode.SLAVE_NOT_AVAILABLE


_send_response = fast_header(SendMessageResponseHeader)
_STATUS_BY_CODE = {int(status.value): status for status in SendStatus}


@attrs.frozen
class SendResult:
    """What became of a send. `msg_id` is the unique key; for a batch the keys of its messages, joined by commas."""

    status: SendStatus
    msg_id: str
    offset_msg_id: str
    """Where it is stored; for a batch the ids of its messages, joined by commas."""
    queue: MessageQueue
    queue_offset: int
    """Of the (first) message."""
    transaction_id: str | None = None
    recall_handle: str | None = None
    region_id: str = DEFAULT_REGION
    """Region of the broker (MSG_REGION)."""
    trace_on: bool = True
    """Whether the broker wants traces (TRACE_ON)."""


@attrs.frozen
class SendLimits:
    """What is refused before it leaves, and what is compressed."""

    max_message_size: int = 4 * 1024 * 1024
    compress_over_bytes: int = 4 * 1024
    """compressMsgBodyOverHowmuch: bodies of at least this size are compressed, those of a batch are not."""
    compress_type: CompressionType = CompressionType.ZLIB
    compress_level: int = 5


def check_group(group: str) -> None:
    """Raises ClientOptionIllegal for a name that no broker takes."""
    fault = group_fault(group)
    if fault is not None:
        raise ClientOptionIllegal(f"group {group!r}: {fault}")


def check_topic(topic: str) -> None:
    """Raises ClientOptionIllegal for a name that no broker takes."""
    fault = topic_fault(topic)
    if fault is not None:
        raise ClientOptionIllegal(f"topic {topic!r}: {fault}")


def check_message(message: Message, limits: SendLimits) -> None:
    """Raises MessageIllegal with the reason; the order is that of Apache's Validators.checkMessage."""
    fault = topic_fault(message.topic)
    if fault is not None:
        raise MessageIllegal(f"topic {message.topic!r}: {fault}")
    if message.topic in NOT_ALLOWED_SEND_TOPICS:
        raise MessageIllegal(f"topic {message.topic} belongs to the broker, nothing may be sent to it")
    if not isinstance(message.body, bytes | bytearray | memoryview):
        raise MessageIllegal(f"the body is of type {type(message.body).__name__}, bytes are needed")
    if not message.body:
        raise MessageIllegal("the body is empty")
    if len(message.body) > limits.max_message_size:
        raise MessageIllegal(f"the body has {len(message.body)} bytes, max_message_size is {limits.max_message_size}")
    _check_properties(message.properties)


def _check_properties(properties: Mapping[str, str]) -> None:
    for name, value in properties.items():
        if not isinstance(name, str) or not isinstance(value, str) or not name:
            raise MessageIllegal(f"property {name!r}: {value!r}: names and values are text, names are not empty")
        if "\x01" in name + value or "\x02" in name + value:
            raise MessageIllegal(f"property {name!r}: the characters 1 and 2 separate properties on the wire")
    size = len(encode_properties(properties).encode())
    if size > MAX_PROPERTIES_BYTES:
        raise MessageIllegal(f"the properties take {size} bytes, the limit is {MAX_PROPERTIES_BYTES}")


def check_batch(messages: Sequence[Message], limits: SendLimits) -> None:
    """Raises MessageIllegal for what Apache's MessageBatch.generateFromList refuses, and for too large a whole."""
    if not messages:
        raise MessageIllegal("a batch without messages")
    first = messages[0]
    for message in messages:
        check_message(message, limits)
        if PROPERTY_DELAY_TIME_LEVEL in message.properties:
            raise MessageIllegal("delayed messages cannot be sent in a batch")
        if message.topic.startswith(RETRY_PREFIX):
            raise MessageIllegal("messages of a retry topic cannot be sent in a batch")
        if message.topic != first.topic:
            raise MessageIllegal(f"one batch has one topic, here are {first.topic} and {message.topic}")
        if message.wait_store_message_ok != first.wait_store_message_ok:
            raise MessageIllegal("one batch has one WAIT property, here it differs")


@attrs.frozen
class Outgoing:
    """A message ready to leave: everything but the queue. The same for all attempts, so the unique key stays."""

    topic: str
    body: bytes
    properties: str
    flag: int
    sys_flag: int
    unique_key: str
    batch: bool = False
    reply: bool = False
    reconsume_times: int = 0
    max_reconsume_times: int | None = None

    @property
    def request_code(self) -> RequestCode:
        if self.reply:
            return RequestCode.SEND_REPLY_MESSAGE_V2
        return RequestCode.SEND_BATCH_MESSAGE if self.batch else RequestCode.SEND_MESSAGE_V2


def sent_properties(message: Message, unique_key: str) -> dict[str, str]:
    """The message's properties with the unique key (one set before stays) and WAIT, as Apache's client adds them."""
    properties = dict(message.properties)
    properties.setdefault(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX, unique_key)
    properties.setdefault(PROPERTY_WAIT_STORE_MSG_OK, "true")
    return properties


def outgoing(message: Message, unique_key: str, limits: SendLimits) -> Outgoing:
    """One message, compressed where it is large."""
    properties = sent_properties(message, unique_key)
    key = properties[PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX]
    body, sys_flag = bytes(message.body), 0
    if len(body) >= limits.compress_over_bytes:
        body = compress(body, limits.compress_type, limits.compress_level)
        sys_flag = MessageSysFlag.COMPRESSED_FLAG | limits.compress_type.sys_flag
    if properties.get(PROPERTY_TRANSACTION_PREPARED) == "true":
        sys_flag |= MessageSysFlag.TRANSACTION_PREPARED_TYPE
    reconsume_times, max_reconsume_times = 0, None
    if message.topic.startswith(RETRY_PREFIX):
        reconsume_times = int(properties.pop(PROPERTY_RECONSUME_TIME, 0))
        limit = properties.pop(PROPERTY_MAX_RECONSUME_TIMES, None)
        max_reconsume_times = None if limit is None else int(limit)
    return Outgoing(
        topic=message.topic,
        body=body,
        properties=encode_properties(properties),
        flag=message.flag,
        sys_flag=sys_flag,
        unique_key=key,
        reply=properties.get(PROPERTY_MESSAGE_TYPE) == REPLY,
        reconsume_times=reconsume_times,
        max_reconsume_times=max_reconsume_times,
    )


def outgoing_batch(messages: Sequence[Message], unique_keys: Sequence[str], batch_key: str | None = None) -> Outgoing:
    """Several messages in one request, each with a key of its own.

    With a `batch_key` a broker stores that one key for all of them: Apache's client does so, whereby the ids of its
    SendResult cannot be found again. Only topics of the queue type BatchCQ need it.
    """
    ready, keys = [], []
    for message, unique_key in zip(messages, unique_keys, strict=True):
        properties = sent_properties(message, unique_key)
        keys.append(properties[PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX])
        ready.append(Message(message.topic, bytes(message.body), message.flag, properties))
    wait = ready[0].properties[PROPERTY_WAIT_STORE_MSG_OK]
    whole = {} if batch_key is None else {PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX: batch_key}
    whole[PROPERTY_WAIT_STORE_MSG_OK] = wait
    return Outgoing(
        topic=messages[0].topic,
        body=encode_batch(ready),
        properties=encode_properties(whole),
        flag=0,
        sys_flag=0,
        unique_key=",".join(keys),
        batch=True,
    )


def send_request(
    message: Outgoing, queue: MessageQueue, *, group: str, default_topic: str, queue_nums: int, now_ms: int
) -> RemotingCommand:
    """The request that sends a message to a queue."""
    header = SendMessageRequestHeaderV2(
        producer_group=group,
        topic=message.topic,
        default_topic=default_topic,
        default_topic_queue_nums=queue_nums,
        queue_id=queue.queue_id,
        sys_flag=message.sys_flag,
        born_timestamp=now_ms,
        flag=message.flag,
        properties=message.properties,
        reconsume_times=message.reconsume_times,
        unit_mode=False,
        max_reconsume_times=message.max_reconsume_times,
        batch=message.batch,
        broker_name=queue.broker_name,
    )
    return RemotingCommand.request(message.request_code, encode_header(header), message.body)


def send_result(message: Outgoing, queue: MessageQueue, answer: RemotingCommand) -> SendResult:
    """What the broker answered. Raises BrokerError where it did not take the message."""
    status = _STATUS_BY_CODE.get(answer.code)
    if status is None:
        raise BrokerError(answer.code, answer.remark or "")
    header, fields = _send_response(answer), answer.ext_fields or {}
    return SendResult(
        status=status,
        msg_id=header.batch_uniq_id or message.unique_key,
        offset_msg_id=header.msg_id,
        queue=queue if header.queue_id == queue.queue_id else attrs.evolve(queue, queue_id=header.queue_id),
        queue_offset=header.queue_offset,
        transaction_id=header.transaction_id,
        recall_handle=header.recall_handle,
        region_id=fields.get(PROPERTY_MSG_REGION) or DEFAULT_REGION,
        trace_on=fields.get(PROPERTY_TRACE_SWITCH) != "false",
    )
