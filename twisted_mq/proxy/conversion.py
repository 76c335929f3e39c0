"""Converts messages of apache.rocketmq.v2 to messages of brokers and back: fields to properties."""

from __future__ import annotations

import hashlib
import zlib
from typing import Any

import attrs

from twisted_mq.protocol.flags import MessageSysFlag
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.protocol.messages.message_type import message_type, priority_of
from twisted_mq.protocol.text.java import parse_int
from twisted_mq.protocol.text.properties import (
    KEY_SEPARATOR,
    PROPERTY_BORN_HOST,
    PROPERTY_BORN_TIMESTAMP,
    PROPERTY_CHECK_IMMUNITY_TIME_IN_SECONDS,
    PROPERTY_DLQ_ORIGIN_MESSAGE_ID,
    PROPERTY_DLQ_ORIGIN_TOPIC,
    PROPERTY_KEYS,
    PROPERTY_PRIORITY,
    PROPERTY_PRODUCER_GROUP,
    PROPERTY_RECONSUME_TIME,
    PROPERTY_SHARDING_KEY,
    PROPERTY_TAGS,
    PROPERTY_TIMER_DELIVER_MS,
    PROPERTY_TRACE_CONTEXT,
    PROPERTY_TRANSACTION_PREPARED,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
    RESERVED_PROPERTIES,
)
from twisted_mq.proxy.messages import DeadLetterQueue, DigestType, Encoding, MessageType
from twisted_mq.proxy.statuses import ProxyError
from twisted_mq.proxy.times import milliseconds, set_time, timestamp

GZIP = Encoding.Value("GZIP")
IDENTITY = Encoding.Value("IDENTITY")
TRANSACTION = MessageType.Value("TRANSACTION")
MD5 = DigestType.Value("MD5")
_DIGESTS = {
    DigestType.Value("CRC32"): lambda body: f"{zlib.crc32(body):X}",
    MD5: lambda body: hashlib.md5(body, usedforsecurity=False).hexdigest(),
    DigestType.Value("SHA1"): lambda body: hashlib.sha1(body, usedforsecurity=False).hexdigest(),
}
_TYPES = dict(MessageType.items())
"""The numbers of message types by name."""
_GZIP_WINDOW = 16 + zlib.MAX_WBITS
ZLIB_FLAGS = MessageSysFlag.COMPRESSED_FLAG | MessageSysFlag.COMPRESSION_ZLIB_TYPE


@attrs.frozen
class Outgoing:
    """A message as a broker's request carries it."""

    properties: dict[str, str]
    body: bytes
    sys_flag: int
    born_timestamp: int

    @property
    def type(self) -> str:
        """Return the message type by its properties, as brokers see it."""
        return message_type(self.properties)


def outgoing(message: Any, topic: str, host: str, now_ms: int, most_bytes: int) -> Outgoing:
    """Convert a client's message. Raises ProxyError if body and digest do not agree.

    A GZIP body is stored as zlib: no consumer over remoting can read gzip, and Apache's proxy stores it as it is.
    """
    system = message.system_properties
    properties: dict[str, str] = dict(message.user_properties)
    properties[PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX] = system.message_id
    if system.HasField("tag") and system.tag:
        properties[PROPERTY_TAGS] = system.tag
    if system.keys:
        properties[PROPERTY_KEYS] = KEY_SEPARATOR.join(system.keys)
    sys_flag = 0
    if system.message_type == TRANSACTION:
        properties[PROPERTY_TRANSACTION_PREPARED] = "true"
        sys_flag |= MessageSysFlag.TRANSACTION_PREPARED_TYPE
        if system.HasField("orphaned_transaction_recovery_duration"):
            seconds = system.orphaned_transaction_recovery_duration.seconds
            if seconds > 0:
                properties[PROPERTY_CHECK_IMMUNITY_TIME_IN_SECONDS] = str(seconds)
    if system.HasField("delivery_timestamp"):
        properties[PROPERTY_TIMER_DELIVER_MS] = str(milliseconds(system.delivery_timestamp))
    if system.HasField("priority"):
        properties[PROPERTY_PRIORITY] = str(system.priority)
    properties[PROPERTY_RECONSUME_TIME] = str(system.delivery_attempt)
    properties[PROPERTY_PRODUCER_GROUP] = topic
    if system.HasField("message_group"):
        properties[PROPERTY_SHARDING_KEY] = system.message_group
    if system.HasField("trace_context") and system.trace_context:
        properties[PROPERTY_TRACE_CONTEXT] = system.trace_context
    properties[PROPERTY_BORN_HOST] = system.born_host or host
    born_ms = milliseconds(system.born_timestamp) if system.HasField("born_timestamp") else now_ms
    properties[PROPERTY_BORN_TIMESTAMP] = str(born_ms)
    body = bytes(message.body)
    if system.HasField("body_digest"):
        _check_digest(system, body)
    if system.body_encoding == GZIP:
        body = zlib.compress(_inflated(body, most_bytes))
        sys_flag |= ZLIB_FLAGS
    return Outgoing(properties, body, sys_flag, born_ms)


def _check_digest(system: Any, body: bytes) -> None:
    digest = system.body_digest
    make = _DIGESTS.get(digest.type)
    if make is None or not digest.checksum:
        return
    found = make(body)
    if found.lstrip("0").upper() != digest.checksum.lstrip("0").upper():
        name = DigestType.Name(digest.type)
        raise ProxyError("MESSAGE_CORRUPTED", f"the body's {name} is {found}, body_digest says {digest.checksum}")


def _inflated(body: bytes, most_bytes: int) -> bytes:
    inflater = zlib.decompressobj(_GZIP_WINDOW)
    try:
        inflated = inflater.decompress(body, most_bytes + 1)
    except zlib.error as error:
        raise ProxyError("MESSAGE_CORRUPTED", f"body_encoding is GZIP, but the body is not: {error}") from None
    if len(inflated) > most_bytes:
        raise ProxyError("MESSAGE_BODY_TOO_LARGE", f"message body has more than {most_bytes} bytes when decompressed")
    if not inflater.eof:
        raise ProxyError("MESSAGE_CORRUPTED", "the end of the GZIP body is missing")
    return inflated


def hand_out(made: Any, message: MessageExt, topic: str, handle: str | None = None) -> Any:
    """Fill an empty Message for clients with a stored message, and return it. The body is not compressed, whatever its stored
    form is.
    """
    properties = message.properties
    made.topic.name = topic
    made.body = message.body
    users = {name: value for name, value in properties.items() if name not in _NOT_OF_USERS}
    if users:
        made.user_properties.update(users)
    system = made.system_properties
    tag = properties.get(PROPERTY_TAGS)
    if tag is not None:
        system.tag = tag
    keys = properties.get(PROPERTY_KEYS)
    if keys:
        system.keys.extend(keys.split())
    system.message_id = properties.get(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX) or message.msg_id
    digest = system.body_digest
    digest.type, digest.checksum = MD5, _DIGESTS[MD5](message.body).upper()
    system.body_encoding = IDENTITY
    system.message_type = _TYPES[message_type(properties)]
    set_time(system.born_timestamp, message.born_timestamp)
    system.born_host = properties.get(PROPERTY_BORN_HOST) or message.born_host
    set_time(system.store_timestamp, message.store_timestamp)
    system.store_host = message.store_host
    due = parse_int(properties.get(PROPERTY_TIMER_DELIVER_MS), 64)
    if due is not None:
        system.delivery_timestamp.CopyFrom(timestamp(due))
    if PROPERTY_SHARDING_KEY in properties:
        system.message_group = properties[PROPERTY_SHARDING_KEY]
    priority = priority_of(properties)
    if priority is not None:
        system.priority = priority
    if handle is not None:
        system.receipt_handle = handle
    system.queue_id = message.queue_id
    system.queue_offset = message.queue_offset
    system.delivery_attempt = message.reconsume_times + 1
    if PROPERTY_TRACE_CONTEXT in properties:
        system.trace_context = properties[PROPERTY_TRACE_CONTEXT]
    origin = properties.get(PROPERTY_DLQ_ORIGIN_TOPIC)
    if origin is not None:
        origin_id = properties.get(PROPERTY_DLQ_ORIGIN_MESSAGE_ID, "")
        system.dead_letter_queue.CopyFrom(DeadLetterQueue(topic=origin, message_id=origin_id))
    return made


_NOT_OF_USERS = RESERVED_PROPERTIES | {PROPERTY_TRACE_CONTEXT, PROPERTY_CHECK_IMMUNITY_TIME_IN_SECONDS}
