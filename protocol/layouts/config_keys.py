"""Keys and values of the tables that Apache's broker keeps in one RocksDB (configManagerVersion=v2; config.v2.ConfigHelper).

    offset size name
    0      1    prefix     1 of a table
    1      2    table      TableId
    3      1    record     1 the table's version, 2 a row

Behind it the name of a topic or group with its length (2); or, of an offset, length (2) and group, 0x01, length (2) and topic,
0x01, queue id (4). The value of a topic or group is one byte (1: JSON) and the text, that of an offset 8 bytes.
"""

from __future__ import annotations

import enum
from typing import Any

import attrs
from construct import Byte, Const, ConstructError, Int16ub, Int32ub, Int64ub, PascalString, Struct

from twisted_mq.protocol.errors import ProtocolError


class TableId(enum.IntEnum):
    """The table that a key belongs to (Apache: TableId)."""

    CONSUMER_OFFSET = 1
    PULL_OFFSET = 2
    TOPIC = 3
    SUBSCRIPTION_GROUP = 4


TABLE_PREFIX, DATA_RECORD, JSON_VALUE = 1, 2, 1
SEPARATOR = b"\x01"

CONFIG_KEY_HEAD = Struct("prefix" / Byte, "table" / Int16ub, "record" / Byte)
_NAME = Struct("name" / PascalString(Int16ub, "utf8"))
_OFFSET_NAME = Struct(
    "group" / PascalString(Int16ub, "utf8"), Const(SEPARATOR),
    "topic" / PascalString(Int16ub, "utf8"), Const(SEPARATOR),
    "queue_id" / Int32ub,
)  # fmt: skip
_OFFSET = Int64ub


class ConfigKeyError(ProtocolError):
    """Raised for a key or value that has another form."""


@attrs.frozen
class OffsetName:
    """The group, topic and queue that an offset belongs to."""

    group: str
    topic: str
    queue_id: int


def data_key(key: bytes) -> tuple[int, bytes] | None:
    """Return the table of a key and its rest; None for a key of other kinds, such as the versions of tables."""
    if len(key) < CONFIG_KEY_HEAD.sizeof():
        return None
    head = CONFIG_KEY_HEAD.parse(key)
    if head.prefix != TABLE_PREFIX or head.record != DATA_RECORD:
        return None
    return int(head.table), key[CONFIG_KEY_HEAD.sizeof() :]


def name_of(rest: bytes) -> str:
    """Return the name of a topic or group. Raises ConfigKeyError."""
    return str(_parsed(_NAME, rest).name)


def offset_name_of(rest: bytes) -> OffsetName:
    """Raises ConfigKeyError."""
    found = _parsed(_OFFSET_NAME, rest)
    return OffsetName(str(found.group), str(found.topic), int(found.queue_id))


def offset_of(value: bytes) -> int:
    """Raises ConfigKeyError."""
    return int(_parsed(_OFFSET, value))


def json_of(value: bytes) -> bytes:
    """Return the text of a topic or group. Raises ConfigKeyError if it is not JSON."""
    if value[:1] != bytes([JSON_VALUE]):
        raise ConfigKeyError(f"value of kind {value[:1].hex() or None}: only JSON ({JSON_VALUE}) is known")
    return value[1:]


def _parsed(layout: Any, data: bytes) -> Any:
    """Parse with construct, which types neither `layout` nor the result."""
    try:
        return layout.parse(data)
    except ConstructError as error:
        raise ConfigKeyError(f"{data[:64].hex()}: {error}") from error
