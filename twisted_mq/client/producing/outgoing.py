"""Checks a message and builds its send request (Apache: Validators, DefaultMQProducerImpl). Pure functions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import attrs

from twisted_mq.client.core.errors import MessageIllegal
from twisted_mq.client.core.request_and_reply import REPLY
from twisted_mq.client.producing.producer_options import SendLimits
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.flags import MessageSysFlag
from twisted_mq.protocol.headers import SendMessageRequestHeaderV2
from twisted_mq.protocol.layouts.batch_entry import encode_batch
from twisted_mq.protocol.messages.compression import compress
from twisted_mq.protocol.messages.message import Message
from twisted_mq.protocol.names.system_topics import AUTO_CREATE_TOPIC, NOT_ALLOWED_SEND_TOPICS, RETRY_PREFIX
from twisted_mq.protocol.names.validation import topic_fault
from twisted_mq.protocol.text.properties import (
    MAX_PROPERTIES_BYTES,
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_MAX_RECONSUME_TIMES,
    PROPERTY_MESSAGE_TYPE,
    PROPERTY_RECONSUME_TIME,
    PROPERTY_TRANSACTION_PREPARED,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
    PROPERTY_WAIT_STORE_MSG_OK,
    encode_properties,
)
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import encode_header
from twisted_mq.protocol.wire.request_format import RequestFormat, encode_text

Ready = Callable[[int], bytes]
"""Opaque -> the frame of a request."""


_BYTES = (bytes, bytearray, memoryview)
_topic_fault = functools.lru_cache(maxsize=1024)(topic_fault)


def check_message(message: Message, limits: SendLimits) -> None:
    """Raise MessageIllegal with the reason; the order is that of Apache's Validators.checkMessage."""
    if not isinstance(message, Message):
        raise MessageIllegal(f"must be a Message, got {message!r}")
    fault = _topic_fault(message.topic)
    if fault is not None:
        raise MessageIllegal(f"topic {message.topic!r}: {fault}")
    if message.topic in NOT_ALLOWED_SEND_TOPICS:
        raise MessageIllegal(f"topic {message.topic} is a system topic; send to another topic")
    if not isinstance(message.body, _BYTES):
        raise MessageIllegal(f"the body must be bytes, got {type(message.body).__name__}")
    if not message.body:
        raise MessageIllegal("the body is empty")
    if len(message.body) > limits.max_message_size:
        raise MessageIllegal(f"the body has {len(message.body)} bytes, max_message_size is {limits.max_message_size}")
    if message.properties:
        _check_properties(message.properties)


def _check_properties(properties: Mapping[str, str]) -> None:
    for name, value in properties.items():
        if not isinstance(name, str) or not isinstance(value, str) or not name:
            raise MessageIllegal(f"property {name!r}: {value!r}: names and values must be str, and names not empty")
        if "\x01" in name + value or "\x02" in name + value:
            raise MessageIllegal(f"property {name!r}: must not contain the characters U+0001 and U+0002")
    size = len(encode_properties(properties).encode())
    if size > MAX_PROPERTIES_BYTES:
        raise MessageIllegal(f"the properties take {size} bytes, the limit is {MAX_PROPERTIES_BYTES}")


def check_batch(messages: Sequence[Message], limits: SendLimits) -> None:
    """Raise MessageIllegal for a batch that Apache's MessageBatch.generateFromList refuses."""
    if not messages:
        raise MessageIllegal("a batch needs at least one message")
    first = messages[0]
    for message in messages:
        check_message(message, limits)
        if PROPERTY_DELAY_TIME_LEVEL in message.properties:
            raise MessageIllegal("delayed messages cannot be sent in a batch")
        if message.topic.startswith(RETRY_PREFIX):
            raise MessageIllegal("messages of a retry topic cannot be sent in a batch")
        if message.topic != first.topic:
            raise MessageIllegal(f"a batch must have one topic, got {first.topic} and {message.topic}")
        if message.wait_store_message_ok != first.wait_store_message_ok:
            raise MessageIllegal("all messages of a batch must have the same WAIT property")


def check_batch_size(size: int, limits: SendLimits) -> None:
    """Raise MessageIllegal if the messages together, as they are sent, exceed the limit of one message."""
    if size > limits.max_message_size:
        raise MessageIllegal(
            f"the batch has {size} bytes, max_message_size is {limits.max_message_size}; use send_batches, which splits it"
        )


class Outgoing(NamedTuple):
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
    keyless: bool = False
    """The message gets its unique key when it leaves."""

    @property
    def request_code(self) -> RequestCode:
        if self.reply:
            return RequestCode.SEND_REPLY_MESSAGE_V2
        return RequestCode.SEND_BATCH_MESSAGE if self.batch else RequestCode.SEND_MESSAGE_V2


def sent_properties(message: Message, unique_key: str) -> dict[str, str]:
    """Return the message's properties with the unique key (unless set before) and WAIT, as Apache's client adds them."""
    properties = dict(message.properties)
    properties.setdefault(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX, unique_key)
    properties.setdefault(PROPERTY_WAIT_STORE_MSG_OK, "true")
    return properties


_MEANINGFUL = frozenset(
    {
        PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
        PROPERTY_WAIT_STORE_MSG_OK,
        PROPERTY_TRANSACTION_PREPARED,
        PROPERTY_MESSAGE_TYPE,
    }
)
"""Properties that affect how a message is sent; most messages have none of them."""
key_text = encode_properties({PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX: "%s", PROPERTY_WAIT_STORE_MSG_OK: "true"}).__mod__
"""Unique key -> the properties that a message without a key gets when it leaves."""


def keyless(message: Message, limits: SendLimits) -> Outgoing | None:
    """Prepare a message up to its unique key; None for one with properties that affect the send, or a body to compress."""
    body, properties = bytes(message.body), message.properties
    if len(body) >= limits.compress_over_bytes or message.topic.startswith(RETRY_PREFIX):
        return None
    if not properties:
        return Outgoing(message.topic, body, "", message.flag, 0, "", keyless=True)
    if not _MEANINGFUL.isdisjoint(properties):
        return None
    return Outgoing(message.topic, body, encode_properties(properties), message.flag, 0, "", keyless=True)


def keyed(ready: Outgoing, unique_key: str) -> Outgoing:
    """Return the message with that key, unless it has one already."""
    if not ready.keyless:
        return ready
    return ready._replace(properties=ready.properties + key_text(unique_key), unique_key=unique_key, keyless=False)


def outgoing(message: Message, unique_key: str, limits: SendLimits) -> Outgoing:
    """Prepare one message, compressed if it is large."""
    ready = keyless(message, limits)
    if ready is not None:
        return keyed(ready, unique_key)
    body, sys_flag = bytes(message.body), 0
    if len(body) >= limits.compress_over_bytes:
        body = compress(body, limits.compress_type, limits.compress_level)
        sys_flag = MessageSysFlag.COMPRESSED_FLAG | limits.compress_type.sys_flag
    properties = sent_properties(message, unique_key)
    key = properties[PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX]
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
    """Prepare several messages for one request, each with a key of its own.

    With a `batch_key`, a broker stores that one key for all of them. Apache's client does so, which is why the ids in its
    SendResult cannot be found later. Only topics of the queue type BatchCQ need it.
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


@attrs.frozen
class SendRequests:
    """The requests of one group. A topic that a send creates gets `queue_nums` queues.

    Most requests differ only in four fields of the header: the rest is encoded once for each queue. Requests that are
    `completed` before they leave, by a signature or a namespace, are not prepared that way.
    """

    group: str
    queue_nums: int
    completed: bool = False
    _formats: dict[tuple[object, ...], RequestFormat] = attrs.field(factory=dict, init=False)

    def ready(
        self, message: Outgoing, queue: MessageQueue, now_ms: int, more_properties: str = ""
    ) -> RemotingCommand | Ready:
        """Return the request that sends a message to a queue; `more_properties` are those of this attempt, in text form."""
        if self.completed or message.reconsume_times or message.max_reconsume_times is not None:
            return self.command(message, queue, now_ms, more_properties)
        key = (message.topic, queue.broker_name, queue.queue_id, message.batch, message.reply)
        known = self._formats.get(key)
        if known is None:
            header = self._header(message, queue, now_ms)
            open_fields = "sys_flag", "born_timestamp", "flag", "properties"
            known = self._formats[key] = RequestFormat(message.request_code, header, *open_fields)
        values = (message.sys_flag, now_ms, message.flag, encode_text(message.properties + more_properties))
        return functools.partial(known.frame, message.body, values)

    def command(
        self, message: Outgoing, queue: MessageQueue, now_ms: int, more_properties: str = ""
    ) -> RemotingCommand:
        """Return the same request as a command that can be changed before it leaves."""
        header = encode_header(self._header(message, queue, now_ms, more_properties))
        return RemotingCommand.request(message.request_code, header, message.body)

    def _header(
        self, message: Outgoing, queue: MessageQueue, now_ms: int, more_properties: str = ""
    ) -> SendMessageRequestHeaderV2:
        return SendMessageRequestHeaderV2(
            producer_group=self.group,
            topic=message.topic,
            default_topic=AUTO_CREATE_TOPIC,
            default_topic_queue_nums=self.queue_nums,
            queue_id=queue.queue_id,
            sys_flag=message.sys_flag,
            born_timestamp=now_ms,
            flag=message.flag,
            properties=message.properties + more_properties,
            reconsume_times=message.reconsume_times,
            unit_mode=False,
            max_reconsume_times=message.max_reconsume_times,
            batch=message.batch,
            broker_name=queue.broker_name,
        )
