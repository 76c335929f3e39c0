"""Makes answers quickly: from a response header class to a function with a ready template for each header encoding.

The templates have what is the same in all answers; an answer is one formatting of one of them with its values. It
equals what `encode_frame` makes of the same answer byte by byte: a test compares them for the header classes of all codes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Concatenate, ParamSpec, cast

import construct
import msgspec

from twisted_mq.protocol.headers.fields import FieldKind, HeaderClass
from twisted_mq.protocol.layouts.derive import derive_head
from twisted_mq.protocol.wire.command import (
    CURRENT_VERSION,
    HEADER,
    LANGUAGE_CODES,
    RESPONSE_FLAG,
    WITHOUT_REMARK,
    RemotingCommand,
    binary_header,
)
from twisted_mq.protocol.wire.extfields import SHORT_LENGTH, binary_name, encode_binary_fields, value_length
from twisted_mq.protocol.wire.framing import FRAME, HEAD, frame_start
from twisted_mq.protocol.wire.header_fields import WireField, wire_fields

Values = ParamSpec("Values")
AnswerEncoder = Callable[Concatenate[RemotingCommand, int, str | None, int, Values], bytes]
"""From the request, the response code, the remark, the size of the body and the header's values, these by keyword, to the
answer's frame up to the body."""

_IN_BOTH_HEADS = (
    "length", "mark", "code", "language", "version", "opaque", "flag", "remark_length", "ext_fields_length",
)  # fmt: skip
NOTHING_MORE: Mapping[str, str] = MappingProxyType({})

_SOURCE = """
def encode(request, code, remark, body_bytes, /, {parameters}):
    if request.serialize_type:
        fields = {binary!r} % ({binary_values})
        if remark:
            return frame_start(1, binary_header(code, PYTHON, VERSION, request.opaque, RESPONSE, remark, fields), body_bytes)
        size = len(fields)
        return both_heads(
            4 + {head_bytes} + size + body_bytes, 1 << 24 | {head_bytes} + size,
            code & 0xFFFF, PYTHON, VERSION, request.opaque, RESPONSE, 0, size,
        ) + fields
    noted = b"" if remark is None else b'"remark":%b,' % json(remark)
    header = {json!r} % (code, {json_values}request.opaque, noted)
    size = len(header)
    return head(4 + size + body_bytes, size) + header
"""
_JSON = (
    b'{"code":%%d,"extFields":{%b},"flag":%d,"language":"PYTHON","opaque":%%d,'
    b'%%b"serializeTypeCurrentRPC":"JSON","version":%d}'
)

_BOTH_HEADS = derive_head(
    construct.Struct(*[one for one in (*FRAME.subcons, *HEADER.subcons) if one.name in _IN_BOTH_HEADS]), *_IN_BOTH_HEADS
)
"""A frame with a ROCKETMQ header without a remark, up to the extFields."""

_encode_json = msgspec.json.Encoder().encode
_NAMES = {
    "binary_header": binary_header,
    "both_heads": _BOTH_HEADS.pack,
    "frame_start": frame_start,
    "head": HEAD.pack,
    "json": _encode_json,
    "value_length": value_length,
    "PYTHON": LANGUAGE_CODES["PYTHON"],
    "RESPONSE": RESPONSE_FLAG,
    "VERSION": CURRENT_VERSION,
}
"""The names that the source uses."""

_BOOLEAN = 'b"true" if {} else b"false"'
_JSON_VALUES = {
    FieldKind.TEXT: (b"%b", "json({})"),
    FieldKind.INT32: (b'"%d"', "{}"),
    FieldKind.INT64: (b'"%d"', "{}"),
    FieldKind.BOOLEAN: (b'"%b"', _BOOLEAN),
}
"""The format of a value of each kind, and the expression that makes it of an attribute."""
_BINARY_VALUES = {
    FieldKind.TEXT: "{}.encode()",
    FieldKind.INT32: "json({})",
    FieldKind.INT64: "json({})",
    FieldKind.BOOLEAN: _BOOLEAN,
}
"""The expression that makes a value's bytes of an attribute, by kind."""


def answer_encoder(
    header_class: Callable[Values, object], always: Mapping[str, str] = NOTHING_MORE
) -> AnswerEncoder[Values]:
    """Return the encoder of answers with this header, after the fields of `always`, none of which is the header's.

    Raises ValueError if no field is in every answer.
    """
    fields = wire_fields(cast(HeaderClass, header_class))
    json, json_values = _json_template(fields, always)
    binary, binary_values = _binary_template(fields, always)
    source = _SOURCE.format(
        parameters=", ".join(_parameter(field) for field in fields),
        binary=binary,
        binary_values=_tuple(binary_values),
        head_bytes=WITHOUT_REMARK.size,
        json=_JSON % (json, RESPONSE_FLAG, CURRENT_VERSION),
        json_values=_tuple(json_values),
    )
    names = dict(_NAMES)
    exec(source, names)
    return cast(AnswerEncoder[Values], names["encode"])


def _tuple(expressions: Sequence[str]) -> str:
    """Return the expressions as members of a tuple."""
    return "".join(f"{expression}, " for expression in expressions)


def _parameter(field: WireField) -> str:
    return field.attribute if field.required else f"{field.attribute}={field.default!r}"


def _literal(data: bytes) -> bytes:
    """Return the bytes as a part of a format."""
    return data.replace(b"%", b"%%")


def _json_template(fields: Sequence[WireField], always: Mapping[str, str]) -> tuple[bytes, list[str]]:
    """Return the members of extFields in the order of their names: a format, and the expressions of its values.

    The first one that is in every answer has no comma; those before it are followed by one, those after it follow one.
    """
    by_name = {field.wire: field for field in fields}
    sure = always.keys() | {field.wire for field in fields if not field.may_miss}
    if not sure:
        raise ValueError(f"nothing to make ready in an answer that may have none of its fields: {list(by_name)}")
    first = min(sure)
    template, values = b"", []
    for name in sorted(always.keys() | by_name.keys()):
        before, after = (b",", b"") if name > first else (b"", b"," if name < first else b"")
        if name in by_name:
            member, value = _json_member(by_name[name], before, after)
            values.append(value)
        else:
            member = _literal(before + _encode_json(name) + b":" + _encode_json(always[name]) + after)
        template += member
    return template, values


def _json_member(field: WireField, before: bytes, after: bytes) -> tuple[bytes, str]:
    form, value = _JSON_VALUES[field.kind]
    member = before + _encode_json(field.wire) + b":" + form + after
    return _unless_missing(field, member, value.format(field.attribute))


def _binary_template(fields: Sequence[WireField], always: Mapping[str, str]) -> tuple[bytes, list[str]]:
    """Return the extFields in the order of declaration: a format, and the expressions of its values."""
    template, values = _literal(encode_binary_fields(always)), []
    for field in fields:
        form, size = (b"%b%b", "value_length({})") if field.kind is FieldKind.TEXT else (SHORT_LENGTH + b"%b", "{}")
        size = size.format(f"len(_{field.attribute} := {_BINARY_VALUES[field.kind].format(field.attribute)})")
        member, value = _unless_missing(field, binary_name(field.wire) + form, f"{size}, _{field.attribute}")
        template += member
        values.append(value)
    return template, values


def _unless_missing(field: WireField, member: bytes, value: str) -> tuple[bytes, str]:
    """Return a part of the format for a field that may be missing: it is formatted by itself, if at all."""
    if not field.may_miss:
        return member, value
    return b"%b", f'b"" if {field.attribute} is None else {member!r} % ({value})'
