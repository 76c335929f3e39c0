"""Messages of the gRPC service from one seed: fields set at random, to names that exist, to edges and to what forges."""

from __future__ import annotations

from random import Random
from typing import Any

from google.protobuf.message_factory import GetMessageClass

TEXTS = (
    "", " ", "T", "G", "FuzzA", "fuzzers", "a||b", "||", "%RETRY%G", "%DLQ%G", "../..", "\x00", "\x01x\x02", "\ud7ff\u0800",
    "x" * 300, "TBW102", "RMQ_SYS_TRANS_HALF_TOPIC", "0 1795284884053 60000 0 0 broker-a 0 0 0",
    "0 99999999999999 60000 0 1 broker-a 3 9 9",
    "0 99999999999999 60000 999 2 broker-a -1 -9223372036854775808 9223372036854775807", "1 2 3 4 5 6 7 8", "broker-a", "dm1=",
    "a > 1 AND (b IS NULL", "-1", "9" * 40,
)  # fmt: skip
NUMBERS = (0, 1, 2, 3, 4, -1, 31, 1 << 31, (1 << 31) - 1, -(1 << 31), (1 << 63) - 1, -(1 << 63), 1 << 40)
DEPTH = 5
LEFT_OUT = 0.25


def filled(kind: Any, random: Random, depth: int = 0) -> Any:
    """A message of this class with most of its fields set."""
    made = kind()
    for field in kind.DESCRIPTOR.fields:
        if random.random() < LEFT_OUT:
            continue
        count = random.choice((0, 1, 1, 3)) if field.is_repeated else 1
        entry = field.message_type
        if entry is not None and entry.GetOptions().map_entry:
            for _ in range(count):
                getattr(made, field.name)[random.choice(TEXTS)] = random.choice(TEXTS)
        elif entry is not None:
            for _ in range(count if depth < DEPTH else 0):
                value = filled(GetMessageClass(entry), random, depth + 1)
                target = getattr(made, field.name)
                target.add().CopyFrom(value) if field.is_repeated else target.CopyFrom(value)
        else:
            values = [scalar(field, random) for _ in range(count)]
            if field.is_repeated:
                getattr(made, field.name).extend(values)
            else:
                setattr(made, field.name, values[0])
    return made


def scalar(field: Any, random: Random) -> Any:
    """A value of the field's type."""
    if field.cpp_type == field.CPPTYPE_STRING:
        text = random.choice(TEXTS)
        return text.encode() if field.type == field.TYPE_BYTES else text
    if field.cpp_type == field.CPPTYPE_ENUM:
        return random.choice([value.number for value in field.enum_type.values])
    if field.cpp_type == field.CPPTYPE_INT32:
        return random.choice([one for one in NUMBERS if -(1 << 31) <= one < 1 << 31])
    return random.choice((True, False)) if field.cpp_type == field.CPPTYPE_BOOL else random.choice(NUMBERS)


def changed(data: bytes, random: Random) -> bytes:
    """The bytes with one of them another, or cut, or with a beginning twice."""
    if not data:
        return random.randbytes(5)
    place = random.randrange(len(data))
    return random.choice((data[:place], data[:place] + random.randbytes(1) + data[place + 1 :], data + data[:place]))


def nested(random: Random) -> bytes:
    """Wire bytes that a parser walks into: messages in messages in field 1, or a length that lies."""
    if random.random() < 0.5:
        return b"\x0a" + random.choice((b"\xff\xff\xff\xff\x07", b"\xff" * 9 + b"\x01", b"\x80" * 11, b"\x7f")) + b"x"
    data = b""
    for _ in range(random.choice((3, 90, 110, 2000))):
        size, length = len(data), b""
        while size > 127:
            length, size = length + bytes((size & 127 | 128,)), size >> 7
        data = b"\x0a" + length + bytes((size,)) + data
    return data
