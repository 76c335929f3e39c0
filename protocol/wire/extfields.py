"""The fields of a header (extFields) as text, from and to both encodings.

In a JSON header they are an object of texts. In a ROCKETMQ header they stand one after the other, big-endian:

    offset size name
    0      2    name_length, then the name in UTF-8
    ..     4    value_length, then the value in UTF-8

EXT_FIELD declares one field. The readers, through which sends pass, have its order and sizes themselves; the import fails
if these are others.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import construct
import msgspec

from twisted_mq.protocol.errors import CommandError
from twisted_mq.protocol.layouts.derive import derive_runs, require_variable
from twisted_mq.protocol.layouts.value_order import require_names

EXT_FIELD = construct.Struct(
    "name_length" / construct.Rebuild(construct.Int16ub, construct.len_(construct.this.name)),
    "name" / construct.Bytes(construct.this.name_length),
    "value_length" / construct.Rebuild(construct.Int32ub, construct.len_(construct.this.value)),
    "value" / construct.Bytes(construct.this.value_length),
)

Spans = dict[bytes, slice]
"""The place of each field's value."""

_BEFORE_NAME, _BEFORE_VALUE = (run.as_struct() for run in derive_runs(EXT_FIELD))
require_variable(EXT_FIELD, "name", "value")
require_names((">H", ">L"), (_BEFORE_NAME.format, _BEFORE_VALUE.format), "the reader of extFields")
_name_length, value_length = _BEFORE_NAME.pack, _BEFORE_VALUE.pack
SHORT_LENGTH = b"\0\0\0%c"
"""A format of the length of a value with less than 256 bytes."""
_decode_texts = msgspec.json.Decoder(dict[str, str]).decode
_decode_values = msgspec.json.Decoder(dict[str, object] | None).decode


def decode_json_fields(raw: bytes | msgspec.Raw) -> dict[str, str]:
    """Return the fields; numbers and booleans, as C++ and Node clients send them, become text. Raises CommandError."""
    try:
        return _decode_texts(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    try:
        fields = _decode_values(raw) or {}
        return {name: _as_text(value) for name, value in fields.items() if value is not None}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CommandError(f"extFields: {error}") from error


def _as_text(value: object) -> str:
    """Return a JSON value as the text that Apache's client would have sent."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def decode_binary_fields(raw: bytes) -> dict[str, str]:
    """Return the fields; of two with one name, the later counts. Raises CommandError if a length leads outside of `raw`."""
    fields: dict[str, str] = {}
    position, end = 0, len(raw)
    try:
        while position < end:
            key_at = position + 2
            size_at = key_at + (raw[position] << 8 | raw[position + 1])
            value_at = size_at + 4
            position = value_at + (raw[size_at + 2] << 8 | raw[size_at + 3])
            if raw[size_at] or raw[size_at + 1]:  # 64 KiB or more; single bytes are read faster than slices
                position += raw[size_at] << 24 | raw[size_at + 1] << 16
            if position > end:
                raise CommandError(f"extFields: a value of {position - value_at} bytes leads past the header's end")
            fields[raw[key_at:size_at].decode()] = raw[value_at:position].decode()
    except IndexError:
        raise CommandError("extFields: cut off inside of a length") from None
    except UnicodeDecodeError as error:
        raise CommandError(f"extFields: {error}") from error
    return fields


def spans_of(raw: bytes) -> Spans | None:
    """Return the fields of intact extFields in their order; None if one comes twice."""
    spans: Spans = {}
    position, count = 0, 0
    while position < len(raw):
        name_at = position + 2
        size_at = name_at + int.from_bytes(raw[position:name_at], "big")
        value_at = size_at + 4
        position = value_at + int.from_bytes(raw[size_at:value_at], "big")
        spans[raw[name_at:size_at]] = slice(value_at, position)
        count += 1
    return spans if len(spans) == count else None


def binary_name(name: str) -> bytes:
    """Return the bytes before a value's length."""
    data = name.encode()
    return _name_length(len(data)) + data


def encode_binary_fields(fields: Mapping[str, str]) -> bytes:
    """Encode the fields in the order of the mapping."""
    parts: list[bytes] = []
    for name, value in fields.items():
        data = value.encode()
        parts += (binary_name(name), value_length(len(data)), data)
    return b"".join(parts)
