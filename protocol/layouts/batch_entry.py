"""A batch as the body of one send request (Apache: MessageDecoder.encodeMessages), one entry a message:

    offset size name
    0      4    size               of the entry
    4      4    magic              0
    8      4    body_crc           0: the broker computes it
    12     4    flag
    16     4    body_length, then the body
    ..     2    properties_length, then the properties

An inner batch is a stored record with such a body: topics of the queue type BatchCQ keep what came as one send in one
record. Its property INNER_NUM says how many messages it holds, INNER_BASE the queue offset of the first.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import attrs
import construct

from twisted_mq.protocol.errors import RecordError
from twisted_mq.protocol.flags import MessageSysFlag
from twisted_mq.protocol.layouts import compiled
from twisted_mq.protocol.layouts.compiled import Columns
from twisted_mq.protocol.layouts.derive import derive_runs, require_variable
from twisted_mq.protocol.layouts.queue_entry import MAX_BATCH_NUM
from twisted_mq.protocol.layouts.value_order import Packer, require_names
from twisted_mq.protocol.messages.message import Message, MessageExt
from twisted_mq.protocol.text.java import parse_int, utf8
from twisted_mq.protocol.text.properties import (
    MAX_PROPERTIES_BYTES,
    PROPERTY_INNER_BASE,
    PROPERTY_INNER_NUM,
    decode_property_bytes,
    encode_properties,
)

BATCH_MESSAGE = construct.Struct(
    "size"
    / construct.Rebuild(construct.Int32sb, lambda this: LEAST_ENTRY_BYTES + len(this.body) + len(this.properties)),
    "magic" / construct.Default(construct.Int32sb, 0),
    "body_crc" / construct.Default(construct.Int32sb, 0),
    "flag" / construct.Int32sb,
    "body_length" / construct.Rebuild(construct.Int32sb, lambda this: len(this.body)),
    "body" / construct.Bytes(construct.this.body_length),
    "properties_length" / construct.Rebuild(construct.Int16sb, lambda this: len(this.properties)),
    "properties" / construct.Bytes(construct.this.properties_length),
)

_BEFORE_BODY, _BEFORE_PROPERTIES = derive_runs(BATCH_MESSAGE)
_HEAD = _BEFORE_BODY.of_all("size", "magic", "body_crc", "flag", "body_length")
_FLAG_AND_LENGTH = _BEFORE_BODY.of("flag", "body_length")
_PROPERTIES_LENGTH = _BEFORE_PROPERTIES.of_all("properties_length")
require_variable(BATCH_MESSAGE, "body", "properties")
LEAST_ENTRY_BYTES: int = _BEFORE_BODY.size + _BEFORE_PROPERTIES.size
_TO_UNWRAP = MessageSysFlag.INNER_BATCH_FLAG | MessageSysFlag.NEED_UNWRAP_FLAG


class BatchEntry(NamedTuple):
    """A message of a batch; `properties` is its text form in UTF-8."""

    flag: int
    body: bytes
    properties: bytes


def encode_entry(flag: int, body: bytes, properties: bytes) -> bytes:
    """Encode one message of a batch. Raises RecordError where the properties are longer than 32767 bytes."""
    length = len(properties)
    if length > MAX_PROPERTIES_BYTES:
        raise RecordError(f"properties of {length} bytes, a batch entry holds at most {MAX_PROPERTIES_BYTES}", 0)
    head = _HEAD.pack(LEAST_ENTRY_BYTES + len(body) + length, 0, 0, flag, len(body))
    return b"".join((head, body, _PROPERTIES_LENGTH.pack(length), properties))


def encode_batch(messages: Iterable[Message]) -> bytes:
    """Return the body of a batch send. It does not have the messages' topics: they share the request's."""
    return b"".join([encode_entry(m.flag, m.body, utf8(encode_properties(m.properties))) for m in messages])


def read_batch(data: bytes) -> list[tuple[int, bytes, bytes]]:
    """Return (flag, body, properties) of each message of a batch, in order. Raises RecordError if a length does not fit.

    The sizes, magics and CRCs of the entries are not checked, as in Apache's broker.
    """
    entries = []
    offset, end = 0, len(data)
    unpack, unpack_length = _FLAG_AND_LENGTH.unpack_from, _PROPERTIES_LENGTH.unpack_from
    head_bytes, length_bytes = _HEAD.size, _PROPERTIES_LENGTH.size
    while offset < end:
        if end - offset < LEAST_ENTRY_BYTES:
            raise RecordError(f"{end - offset} bytes left, a batch entry has at least {LEAST_ENTRY_BYTES}", offset)
        flag, body_length = unpack(data, offset)
        body_at = offset + head_bytes
        body_end = body_at + body_length
        properties_at = body_end + length_bytes
        if body_length < 0 or properties_at > end:
            raise RecordError(f"a body of {body_length} bytes in a batch, {end - body_at} are left", offset)
        (size,) = unpack_length(data, body_end)
        next_at = properties_at + size
        if size < 0 or next_at > end:
            raise RecordError(f"properties of {size & 0xFFFF} bytes in a batch, {end - properties_at} are left", offset)
        entries.append((flag, data[body_at:body_end], data[properties_at:next_at]))
        offset = next_at
    return entries


def cut_batch(data: bytes, count: int) -> Iterator[int]:
    """Return where each `count` messages of a batch end, and where the last ones do. Raises RecordError as `read_batch`."""
    offset, end, left = 0, len(data), count
    unpack, unpack_length = _FLAG_AND_LENGTH.unpack_from, _PROPERTIES_LENGTH.unpack_from
    head_bytes, length_bytes = _HEAD.size, _PROPERTIES_LENGTH.size
    while offset < end:
        try:
            body_bytes = unpack(data, offset)[1]
            properties_at = offset + head_bytes + body_bytes + length_bytes
            size = unpack_length(data, properties_at - length_bytes)[0] if body_bytes >= 0 else -1
        except struct.error:
            size = -1
        if size < 0 or properties_at + size > end:
            raise RecordError("a batch entry that is longer than the rest of its batch", offset)
        offset = properties_at + size
        left -= 1
        if not left or offset == end:
            left = count
            yield offset


def read_columns(data: bytes) -> Columns:
    """Return the messages of a batch, see `read_batch`."""
    read = compiled.forms.read_columns
    if read is not None and (columns := read(data, _places())) is not None:
        return columns
    alike = _read_alike(data)
    if alike is not None:
        return alike
    entries = read_batch(data)
    flags, bodies, properties = zip(*entries, strict=True) if entries else ((), (), ())
    return flags, bodies, properties, False


@functools.cache
def _places() -> tuple[int, ...]:
    """Return the places that compiled code reads; it reads the length of the properties alone between body and properties."""
    require_names(_BEFORE_PROPERTIES.names, ("properties_length",), "compiled code")
    compiled.places(_BEFORE_PROPERTIES, properties_length="h")
    return compiled.places(_BEFORE_BODY, flag="l", body_length="l")


def _read_alike(data: bytes) -> Columns | None:
    """Return the messages of a batch in which all bodies, and all properties, have one length; None for any other batch."""
    if len(data) < LEAST_ENTRY_BYTES:
        return None
    _, body_bytes = _FLAG_AND_LENGTH.unpack_from(data)
    properties_at = LEAST_ENTRY_BYTES + body_bytes
    if body_bytes < 0 or properties_at > len(data):
        return None
    (properties_bytes,) = _PROPERTIES_LENGTH.unpack_from(data, properties_at - _PROPERTIES_LENGTH.size)
    if properties_bytes < 0 or len(data) % (properties_at + properties_bytes):
        return None
    flags, lengths, bodies, more_lengths, properties = zip(
        *_entry_struct(body_bytes, properties_bytes).iter_unpack(data), strict=True
    )
    count = len(bodies)
    if lengths.count(body_bytes) < count or more_lengths.count(properties_bytes) < count:
        return None
    return flags, bodies, properties, True


@functools.lru_cache(maxsize=64)
def _entry_struct(body_bytes: int, properties_bytes: int) -> Packer:
    """Return the struct of flag, body and properties of an entry, each length before its field."""
    (whole,) = derive_runs(BATCH_MESSAGE, body_length=body_bytes, properties_length=properties_bytes)
    return whole.of("flag", "body_length", "body", "properties_length", "properties")


def iterate_batch(data: bytes | memoryview) -> Iterator[BatchEntry]:
    """Yield the messages of a batch in order, see `read_batch`."""
    return (BatchEntry(*entry) for entry in read_batch(bytes(data)))


def decode_batch(data: bytes | memoryview, topic: str = "") -> list[Message]:
    """Return the messages of a batch, with the topic that the request names. Raises RecordError."""
    return [
        Message(topic, entry.body, entry.flag, decode_property_bytes(entry.properties)) for entry in iterate_batch(data)
    ]


def inner_count(properties: Mapping[str, str]) -> int:
    """Return how many messages a record counts for in a batch queue (Apache: CommitLog.setBatchSizeIfNeeded); 1 for others."""
    number = parse_int(properties.get(PROPERTY_INNER_NUM))
    if number is None or PROPERTY_INNER_BASE not in properties or not 1 <= number <= MAX_BATCH_NUM:
        return 1
    return number


def unwrapped(message: MessageExt) -> list[MessageExt]:
    """Return the messages of an inner batch that a reader is to take apart, else the message itself. Raises RecordError.

    Each has its own body, properties and flag, and its queue offset; the rest is the record's, except the sizes and
    the count of tries, which are not known (Apache: PullAPIWrapper, MessageDecoder.decodeMessage).
    """
    if message.sys_flag & _TO_UNWRAP != _TO_UNWRAP:
        return [message]
    return [
        attrs.evolve(
            message,
            body=entry.body,
            flag=entry.flag,
            properties=decode_property_bytes(entry.properties),
            queue_offset=message.queue_offset + index,
            store_size=0,
            body_crc=0,
            reconsume_times=0,
        )
        for index, entry in enumerate(iterate_batch(message.body))
    ]
