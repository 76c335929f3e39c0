"""The stored message: what a commit log holds and a pull answer carries (Apache: MessageExtEncoder, MessageDecoder).

All numbers are big-endian and signed:

    offset size name
    0      4    size                           of the whole record
    4      4    magic                          version 1: 0xDAA320A7, version 2: 0xDAA320AB
    8      4    body_crc                       CRC-32 of the stored body, without its highest bit
    12     4    queue_id
    16     4    flag                           the user's
    20     8    queue_offset
    28     8    physical_offset                of this record in the log
    36     4    sys_flag                       bits 0x10 and 0x20: the born host, the store host is IPv6
    40     8    born_timestamp                 ms
    48     8|20 born_host                      address and port
    ..     8    store_timestamp                ms
    ..     8|20 store_host
    ..     4    reconsume_times
    ..     8    prepared_transaction_offset
    ..     4    body_length, then the body
    ..     1|2  topic_length, then the topic   2 bytes in version 2, for topics over 127 bytes
    ..     2    properties_length, then the properties

A blank record fills the rest of a log file: 4 size, 4 magic 0xCBD43194, then anything.

MESSAGE and BLANK declare the layouts, and all code follows them: RecordHead has the head's fields in the order in which the
code names them, MESSAGE the order of their bytes. With enabledAppendPropCRC Apache's
broker ends the properties with __CRC32#, a CRC of the record up to there, in ten decimal digits with the lowest first.
"""

from __future__ import annotations

import functools
from typing import NamedTuple, TypeAlias

import construct

from twisted_mq.protocol.errors import RecordError
from twisted_mq.protocol.flags import MessageSysFlag
from twisted_mq.protocol.layouts.derive import (
    Buffer,
    LengthError,
    derive_field,
    derive_fields,
    derive_head,
    derive_runs,
    derive_spans,
    field_offset,
    field_table,
    least_bytes,
    require_variable,
)
from twisted_mq.protocol.layouts.host import IPV4_HOST_BYTES, IPV6_HOST_BYTES
from twisted_mq.protocol.layouts.value_order import Packer, require_names
from twisted_mq.protocol.text.java import from_utf8

MAGIC_V1 = -626843481
MAGIC_V2 = -626843477
MAGIC_BLANK = -875286124
BLANK_BYTES = 8
"""The least size of a blank record (Apache: END_FILE_MIN_BLANK_LENGTH)."""

V1_TOPIC_BYTES = 127
"""A longer topic needs version 2: the length is a signed byte in version 1."""

CRC_MASK = 0x7FFFFFFF
"""The bits of a body's CRC-32 that a record keeps."""

V6_FLAGS = MessageSysFlag.BORNHOST_V6_FLAG | MessageSysFlag.STOREHOSTADDRESS_V6_FLAG


def _host(v6_flag: int) -> construct.Bytes:
    return construct.Bytes(lambda this: IPV6_HOST_BYTES if this.sys_flag & v6_flag else IPV4_HOST_BYTES)


MESSAGE = construct.Struct(
    "size" / construct.Int32sb,
    "magic" / construct.Int32sb,
    "body_crc" / construct.Int32sb,
    "queue_id" / construct.Int32sb,
    "flag" / construct.Int32sb,
    "queue_offset" / construct.Int64sb,
    "physical_offset" / construct.Int64sb,
    "sys_flag" / construct.Int32sb,
    "born_timestamp" / construct.Int64sb,
    "born_host" / _host(MessageSysFlag.BORNHOST_V6_FLAG),
    "store_timestamp" / construct.Int64sb,
    "store_host" / _host(MessageSysFlag.STOREHOSTADDRESS_V6_FLAG),
    "reconsume_times" / construct.Int32sb,
    "prepared_transaction_offset" / construct.Int64sb,
    "body_length" / construct.Rebuild(construct.Int32sb, lambda this: len(this.body)),
    "body" / construct.Bytes(construct.this.body_length),
    "topic_length"
    / construct.Rebuild(
        construct.IfThenElse(construct.this.magic == MAGIC_V2, construct.Int16sb, construct.Int8sb),
        lambda this: len(this.topic),
    ),
    "topic" / construct.Bytes(construct.this.topic_length),
    "properties_length" / construct.Rebuild(construct.Int16sb, lambda this: len(this.properties)),
    "properties" / construct.Bytes(construct.this.properties_length),
)

BLANK = construct.Struct(
    "size" / construct.Int32sb,
    "magic" / construct.Const(MAGIC_BLANK, construct.Int32sb),
)


class RecordHead(NamedTuple):
    """The leading fields of a record, by MESSAGE's names: the order of the values of HEADS, not of the bytes."""

    size: int
    magic: int
    body_crc: int
    queue_id: int
    flag: int
    queue_offset: int
    physical_offset: int
    sys_flag: int
    born_timestamp: int
    born_host: bytes
    store_timestamp: int
    store_host: bytes
    reconsume_times: int
    prepared_transaction_offset: int
    body_length: int


HeadFields: TypeAlias = tuple[int, int, int, int, int, int, int, int, int, bytes, int, bytes, int, int, int]
"""The fields of RecordHead."""


class RecordSpans(NamedTuple):
    """The places of a record's variable fields in its buffer; the record ends at `end`."""

    body: int
    body_end: int
    topic: int
    topic_end: int
    properties: int
    end: int


HEADS = {flags: derive_head(MESSAGE, *RecordHead._fields, sys_flag=flags) for flags in (0, 0x10, 0x20, 0x30)}
"""The fields of RecordHead, by the two IPv6 bits of sys_flag."""
HEAD_NAMES = tuple(field.name for field in field_table(MESSAGE, sys_flag=0))
"""The same fields in the order of their bytes."""
_HEAD_SIZES = {flags: head.size for flags, head in HEADS.items()}
HEAD_BYTES = HEADS[0].size
SMALLEST_RECORD = least_bytes(MESSAGE, sys_flag=0, magic=MAGIC_V1)
"""A head, an empty topic's length and the length of no properties."""
_HEAD_V4 = HEADS[0]
require_variable(MESSAGE, "body", "topic", "properties", sys_flag=0, magic=MAGIC_V1)
_SPANS = {magic: derive_spans(MESSAGE, sys_flag=0, magic=magic) for magic in (MAGIC_V1, MAGIC_V2)}
_MARK = derive_head(BLANK, "size", "magic")
require_names([field.name for field in field_table(BLANK)], HEAD_NAMES[:2], "a blank")
unpack_mark = _MARK.unpack_from
"""(size, magic), which begin records and blanks alike, from a buffer and an offset."""

MAGIC_POSITION = field_offset(MESSAGE, "magic")
_MAGIC = derive_field(MESSAGE, "magic")
MAGICS = {magic: _MAGIC.pack(magic) for magic in (MAGIC_V1, MAGIC_V2)}
"""Their bytes, which differ in the last one only."""
QUEUE_OFFSET_POSITION = field_offset(MESSAGE, "queue_offset")
PHYSICAL_OFFSET_POSITION = field_offset(MESSAGE, "physical_offset")
PHYSICAL_OFFSET = derive_field(MESSAGE, "physical_offset")
SYS_FLAG_POSITION = field_offset(MESSAGE, "sys_flag")
STORE_TIMESTAMP_POSITION = field_offset(MESSAGE, "store_timestamp", sys_flag=0)
"""With an IPv4 born host; 12 bytes later with an IPv6 one."""

_PLACE = derive_fields(MESSAGE, "size", "magic", "physical_offset", sys_flag=0)
PLACE_BYTES = _PLACE.size
unpack_size = derive_fields(MESSAGE, "size").unpack_from
unpack_place = _PLACE.unpack_from
"""(size, magic, physical_offset): whether a record is one, and at its own place."""
unpack_queue_offset = derive_fields(MESSAGE, "queue_offset").unpack_from
_unpack_sys_flag = derive_fields(MESSAGE, "sys_flag").unpack_from
_STORE_TIMESTAMPS = {flags: derive_fields(MESSAGE, "store_timestamp", sys_flag=flags) for flags in HEADS}
_STORED_TIME_BYTES = max(one.size for one in _STORE_TIMESTAMPS.values())


@functools.lru_cache(maxsize=1024)
def middle(topic_length: int) -> Packer:
    """Encode what is between body and properties: topic_length, topic and properties_length."""
    _, run = derive_runs(MESSAGE, sys_flag=0, magic=magic_for(topic_length), topic_length=topic_length)
    return run.of_all("topic_length", "topic", "properties_length")


def magic_for(topic_length: int) -> int:
    """Return the magic of the version for a topic of that many bytes."""
    return MAGIC_V1 if topic_length <= V1_TOPIC_BYTES else MAGIC_V2


def record_size(sys_flag: int, body_length: int, topic_length: int, properties_length: int) -> int:
    """Return the size of a record in bytes (Apache: MessageExtEncoder.calMsgLength)."""
    return HEADS[sys_flag & V6_FLAGS].size + body_length + middle(topic_length).size + properties_length


def encode_blank(size: int) -> bytes:
    """Return the first 8 bytes of a blank record that fills `size` bytes of its file."""
    return _MARK.pack(size, MAGIC_BLANK)


def read_mark(buffer: Buffer, offset: int = 0) -> tuple[int, int]:
    """Return (size, magic) of the record or blank there; (0, 0) if nothing was written. Raises RecordError past the end."""
    if offset < 0 or len(buffer) - offset < BLANK_BYTES:
        raise RecordError(f"{max(len(buffer) - offset, 0)} bytes left, a record's size and magic need 8", offset)
    size, magic = unpack_mark(buffer, offset)
    return size, magic


def read_head(buffer: Buffer, offset: int = 0) -> RecordHead:
    """Return the leading fields of the message there. Raises RecordError unless all of the record is in the buffer."""
    return RecordHead._make(head_values(buffer, offset))


def head_values(buffer: Buffer, offset: int) -> HeadFields:
    """Return the values of `read_head`, without their names."""
    available = len(buffer) - offset
    if offset < 0 or available < HEAD_BYTES:
        raise RecordError(f"{max(available, 0)} bytes left, a record has at least {HEAD_BYTES}", offset)
    fields: HeadFields = _HEAD_V4.unpack_from(buffer, offset)
    size, magic, sys_flag = fields[0], fields[1], fields[7]
    if magic != MAGIC_V1 and magic != MAGIC_V2:
        raise RecordError(f"magic 0x{magic & 0xFFFFFFFF:08X} is not a message's", offset)
    if size > available:
        raise RecordError(f"a record of {size} bytes, {available} are left", offset)
    if sys_flag & V6_FLAGS:
        head = HEADS[sys_flag & V6_FLAGS]
        if available < head.size:
            raise RecordError(f"{available} bytes left, a record with IPv6 hosts has at least {head.size}", offset)
        fields = head.unpack_from(buffer, offset)
    return fields


def read_store_timestamp(record: Buffer) -> int:
    """Return when a record was stored (Apache: CommitLog.pickupStoreTimestamp), in ms; -1 for too few bytes."""
    if len(record) < _STORED_TIME_BYTES:
        return -1
    (sys_flag,) = _unpack_sys_flag(record)
    timestamp: int = _STORE_TIMESTAMPS[sys_flag & V6_FLAGS].unpack_from(record)[0]
    return timestamp


def read_spans(buffer: Buffer, offset: int, head: RecordHead) -> RecordSpans:
    """Return where body, topic and properties are. Raises RecordError unless their lengths add up to the record's size."""
    return RecordSpans._make(
        span_values(buffer, offset, head.size, magic=head.magic, sys_flag=head.sys_flag, body_length=head.body_length)
    )


def topic_of(record: Buffer) -> str | None:
    """Return the topic of the record at the start of the buffer; None without a record."""
    try:
        spans = read_spans(record, 0, read_head(record))
    except RecordError:
        return None
    return from_utf8(record[spans.topic : spans.topic_end])


def span_values(buffer: Buffer, offset: int, size: int, *, magic: int, sys_flag: int, body_length: int) -> list[int]:
    """Return the values of `read_spans`, without their names."""
    body = offset + _HEAD_SIZES[sys_flag & V6_FLAGS]
    try:
        return _SPANS[magic](buffer, body, body_length, offset + size)
    except LengthError as error:
        raise RecordError(_misfit(error, size), offset) from error


def _misfit(error: LengthError, size: int) -> str:
    if error.name == "properties":
        return f"properties of {error.length} bytes where {error.left} are left of the record"
    return f"a {error.name} of {error.length} bytes in a record of {size}"
