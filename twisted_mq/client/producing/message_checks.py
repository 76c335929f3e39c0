"""Checks of messages before they are sent; names and limits as in Apache's Validators and DefaultMQProducer. Pure functions."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Mapping, Sequence

import attrs

from twisted_mq.client.core.errors import ClientOptionIllegal, MessageIllegal
from twisted_mq.client.core.option_checks import kind, number
from twisted_mq.protocol.messages.compression import CompressionType, check_compressor
from twisted_mq.protocol.messages.message import Message
from twisted_mq.protocol.names.system_topics import NOT_ALLOWED_SEND_TOPICS, RETRY_PREFIX
from twisted_mq.protocol.names.validation import topic_fault
from twisted_mq.protocol.text.properties import MAX_PROPERTIES_BYTES, PROPERTY_DELAY_TIME_LEVEL, encode_properties


@attrs.frozen
class SendLimits:
    """Limits above which a message is refused before it is sent, or compressed."""

    max_message_size: int = attrs.field(default=4 * 1024 * 1024, validator=number(1))
    compress_over_bytes: int = attrs.field(default=4 * 1024, validator=number(0))
    """compressMsgBodyOverHowmuch: bodies of at least this size are compressed, those of a batch are not."""
    compress_type: CompressionType = attrs.field(default=CompressionType.ZLIB, validator=kind(CompressionType))
    compress_level: int = attrs.field(default=5, validator=number(0, 22))
    """1 to 9 for ZLIB, to 22 for ZSTD; LZ4 has none."""

    def __attrs_post_init__(self) -> None:
        """Raise CompressorMissing if the library of `compress_type` is not installed."""
        check_compressor(self.compress_type)
        if self.compress_type is CompressionType.ZLIB and self.compress_level > zlib.Z_BEST_COMPRESSION:
            raise ClientOptionIllegal(
                f"SendLimits.compress_level: must be at most 9 for ZLIB, got {self.compress_level}"
            )


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
