"""Body classes from and to JSON.

Read: both forms of JSON, members in any order, unknown ones ignored, null and missing ones as the class's default;
integers also as text (a C++ client's subVersion), booleans also as 0, 1 and text, enums also as their ordinal.
Written: members sorted, those that are None left out, as Apache's writer does.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar, cast, get_args, get_origin

import attrs
import msgspec

from twisted_mq.protocol.bodies.readers import WrongValue, reader_for
from twisted_mq.protocol.bodies.types import wire_name
from twisted_mq.protocol.errors import BodyError
from twisted_mq.protocol.text.fastjson import Json, ObjectKey, dumps, loads

Body = TypeVar("Body")

_PLAIN_TYPES = {str, int, float, bool, type(None), msgspec.Raw}


def _name_of(body_class: type) -> str:
    arguments = get_args(body_class)
    return f"list of {_name_of(arguments[0])}" if get_origin(body_class) is list else body_class.__name__


def decode_value(body_class: type[Body], value: Json) -> Body:
    """Return a body from a parsed JSON value. Raises BodyError."""
    try:
        return cast(Body, reader_for(cast(Hashable, body_class))(value))
    except WrongValue as error:
        raise BodyError(_name_of(body_class) + error.path, str(error)) from error


def decode_body(body_class: type[Body], data: bytes) -> Body:
    """Parse a body class, or `list[...]` of one, from JSON. Raises BodyError, which names the member."""
    try:
        value = loads(data)
    except BodyError as error:
        raise BodyError(_name_of(body_class), f"no JSON: {error.reason}") from error
    return decode_value(body_class, value)


@functools.cache
def _written_members(body_class: type[attrs.AttrsInstance]) -> tuple[tuple[str, str], ...]:
    """Return pairs of wire name and attribute, in the order of the wire names."""
    fields = [field for field in attrs.fields(body_class) if field.metadata.get("written", True)]
    names = ((wire_name(field.name, field.metadata), field.name) for field in fields)
    return tuple(sorted(names))


def to_value(body: object) -> Json:
    """Return the JSON value of a body: dicts, lists, text, numbers, booleans; sets sorted, objects as keys as ObjectKey."""
    body_class = type(body)
    if body_class in _PLAIN_TYPES:
        return cast(Json, body)
    if isinstance(body, dict):
        return {_to_key(key): to_value(member) for key, member in body.items()}
    if isinstance(body, set | frozenset):
        return sorted(body)
    if isinstance(body, list | tuple):
        return [to_value(item) for item in body]
    if not attrs.has(body_class):  # numbers and text of a subclass, such as flags
        return int(body) if isinstance(body, int) else str(body)
    members = ((wire, getattr(body, attribute)) for wire, attribute in _written_members(body_class))
    return {
        wire: member if type(member) in _PLAIN_TYPES else to_value(member)
        for wire, member in members
        if member is not None
    }


def _to_key(key: object) -> str | int:
    return key if isinstance(key, (str, int)) else ObjectKey(encode_body(key, standard=True).decode())


def encode_body(body: object, standard: bool = False) -> bytes:
    """Return the JSON of a body, or of a list of bodies; `standard` quotes the keys that the dialect leaves bare."""
    return dumps(to_value(body), standard, sort=False)


def encode_row(name: str, row: object) -> bytes:
    """Return the JSON of a table's row with its name."""
    return dumps(name) + b":" + encode_body(row)


def with_rows(body: Body, member: str, rows: Iterable[bytes]) -> Body:
    """Return an attrs value to encode, with these rows from `encode_row` as the table that its attribute `member` is."""
    evolve: Callable[..., Body] = attrs.evolve
    return evolve(body, **{member: msgspec.Raw(b"{" + b",".join(rows) + b"}")})


def encode_with_rows(body: object, member: str, rows: Iterable[bytes]) -> bytes:
    """Return what `encode_body` does, with these rows as the table that the attribute `member` is."""
    return encode_body(with_rows(body, member, rows))
