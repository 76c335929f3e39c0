"""Readers of members: one for each declared type, put together from the annotations of the body classes."""

from __future__ import annotations

import functools
import re
import reprlib
import types
from collections.abc import Callable, Hashable
from typing import Annotated, TypeGuard, Union, get_args, get_origin

import attrs

from twisted_mq.protocol.bodies.types import Bits, Names, wire_name
from twisted_mq.protocol.errors import BodyError
from twisted_mq.protocol.text.fastjson import Json, loads

Reader = Callable[[Json], object]

_INTEGER = re.compile(r"[+-]?[0-9]{1,40}")


class WrongValue(Exception):
    """A value that its member cannot have; `path` leads to it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.path = ""


def _mismatch(expected: str, value: Json) -> WrongValue:
    return WrongValue(f"expected {expected}, got {reprlib.repr(value)}")


def _read_text(value: Json) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    raise _mismatch("text", value)


def _read_boolean(value: Json) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if value in (0, 1, "0", "1"):
        return bool(int(value))
    raise _mismatch("a boolean", value)


def _read_float(value: Json) -> float:
    if not isinstance(value, int | float | str):
        raise _mismatch("a number", value)
    try:
        return float(value)
    except (ValueError, OverflowError) as error:
        raise _mismatch("a number", value) from error


def _means_integer(value: Json) -> TypeGuard[bool | float | str]:
    if isinstance(value, str):
        return _INTEGER.fullmatch(value) is not None
    return isinstance(value, bool) or (isinstance(value, float) and value.is_integer())


def _integer_reader(bits: int) -> Reader:
    bound = 1 << bits - 1

    def read(value: Json) -> int:
        if type(value) is not int:
            if not _means_integer(value):
                raise _mismatch("an integer", value)
            value = int(value)
        if not -bound <= value < bound:
            raise _mismatch(f"an integer of {bits} bits", value)
        return value

    return read


def _enum_reader(names: tuple[str, ...]) -> Reader:
    def read(value: Json) -> str:
        if type(value) is int and 0 <= value < len(names):
            return names[value]
        if isinstance(value, str) and value in names:
            return value
        raise _mismatch(f"one of {', '.join(names)}", value)

    return read


def _list_reader(read_item: Reader, make: Callable[[list[object]], object]) -> Reader:
    def read(value: Json) -> object:
        if not isinstance(value, list):
            raise _mismatch("an array", value)
        items = []
        try:
            for item in value:
                items.append(read_item(item))
        except WrongValue as error:
            error.path = f"[{len(items)}]{error.path}"
            raise
        return make(items)

    return read


def _object_key_reader(read_object: Reader) -> Reader:
    """Return a reader of a map's keys that are objects: bare in the dialect, as text in standard JSON."""

    def read(value: Json) -> object:
        try:
            return read_object(loads(str(value).encode(errors="replace")))
        except BodyError as error:
            raise WrongValue(str(error)) from error

    return read


def _dict_reader(read_key: Reader, read_member: Reader) -> Reader:
    def read(value: Json) -> dict[object, object]:
        if not isinstance(value, dict):
            raise _mismatch("an object", value)
        members = {}
        for key, member in value.items():
            try:
                members[read_key(key)] = read_member(member)
            except WrongValue as error:
                error.path = f"{{{str(key)[:80]}}}{error.path}"
                raise
        return members

    return read


_PLAIN_READERS: dict[Hashable, Reader] = {
    str: _read_text,
    bool: _read_boolean,
    float: _read_float,
    int: _integer_reader(64),
    object: lambda value: value,
}


def _annotated_reader(mark: Bits | Names) -> Reader:
    return _integer_reader(mark.count) if isinstance(mark, Bits) else _enum_reader(mark.names)


@functools.cache
def reader_for(declared: Hashable) -> Reader:
    """Return the reader of a declared type: a body class, a plain type, list, frozenset, dict, or one of these or None."""
    if declared in _PLAIN_READERS:
        return _PLAIN_READERS[declared]
    if isinstance(declared, type) and attrs.has(declared):
        return _class_reader(declared)
    origin, arguments = get_origin(declared), get_args(declared)
    if origin is Annotated:
        return _annotated_reader(next(mark for mark in arguments[1:] if isinstance(mark, Bits | Names)))
    if origin in (list, frozenset):
        return _list_reader(reader_for(arguments[0]), list if origin is list else frozenset)
    if origin is dict:
        read_key = reader_for(arguments[0])
        return _dict_reader(
            _object_key_reader(read_key) if attrs.has(arguments[0]) else read_key, reader_for(arguments[1])
        )
    if origin in (Union, types.UnionType):
        return reader_for(next(argument for argument in arguments if argument is not type(None)))
    raise TypeError(f"no reader for {declared}")


def _class_reader(body_class: type[attrs.AttrsInstance]) -> Reader:
    fields = attrs.fields(attrs.resolve_types(body_class))
    readers = [
        (wire_name(field.name, field.metadata), field.metadata.get("older"), field.name, reader_for(field.type))
        for field in fields
    ]

    def read(value: Json) -> object:
        if not isinstance(value, dict):
            raise _mismatch("an object", value)
        members = {}
        for wire, older, attribute, read_member in readers:
            member = value.get(wire)
            if member is None and older is not None:
                member = value.get(older)
            if member is not None:
                try:
                    members[attribute] = read_member(member)
                except WrongValue as error:
                    error.path = f".{wire}{error.path}"
                    raise
        return body_class(**members)

    return read
