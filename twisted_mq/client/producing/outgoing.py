"""Builds a send request for a message: header and body. Pure functions (Apache: DefaultMQProducerImpl)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import attrs

from twisted_mq.client.core.request_and_reply import REPLY
from twisted_mq.client.producing.message_checks import SendLimits
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.flags import MessageSysFlag
from twisted_mq.protocol.headers import SendMessageRequestHeaderV2
from twisted_mq.protocol.layouts.batch_entry import encode_batch
from twisted_mq.protocol.messages.compression import compress
from twisted_mq.protocol.messages.message import Message
from twisted_mq.protocol.names.system_topics import AUTO_CREATE_TOPIC, RETRY_PREFIX
from twisted_mq.protocol.text.properties import (
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


@attrs.frozen(slots=False)
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
_ADDED = encode_properties({PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX: "%s", PROPERTY_WAIT_STORE_MSG_OK: "true"})


def outgoing(message: Message, unique_key: str, limits: SendLimits) -> Outgoing:
    """Prepare one message, compressed if it is large."""
    body, sys_flag = bytes(message.body), 0
    if len(body) >= limits.compress_over_bytes:
        body = compress(body, limits.compress_type, limits.compress_level)
        sys_flag = MessageSysFlag.COMPRESSED_FLAG | limits.compress_type.sys_flag
    if _MEANINGFUL.isdisjoint(message.properties) and not message.topic.startswith(RETRY_PREFIX):
        text = encode_properties(message.properties) + _ADDED % unique_key
        return Outgoing(message.topic, body, text, message.flag, sys_flag, unique_key)
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
        return partial(known.frame, message.body, values)

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
