"""Values of the types that bodies are declared with: mostly what a peer would send, sometimes of another type."""

from __future__ import annotations

import functools
import types
import typing
from random import Random
from typing import Any

import attrs

from tests.fuzz import values
from twisted_mq.protocol.bodies.types import Bits, Names, wire_name

DEPTH = 4
WRONG = 0.03


def json_of(random: Random, kind: Any, depth: int = DEPTH) -> object:
    """A JSON value for a type; some members of classes are left out."""
    if random.random() < WRONG:
        return values.anything(random, 2)
    if attrs.has(kind):
        return {
            wire: json_of(random, member, depth - 1)
            for wire, member in members(kind)
            if random.random() < 0.9 and (depth > 0 or not is_nested(member))
        }
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        return None if random.random() < 0.2 else json_of(random, arguments[0], depth)
    if origin is typing.Annotated:
        return annotated(random, arguments[1])
    if origin is dict:
        return {str(json_of(random, arguments[0])): json_of(random, arguments[1], depth - 1) for _ in many(random)}
    if arguments:  # a list or a set of something
        return [json_of(random, arguments[0], depth - 1) for _ in many(random)]
    return plain(random, kind)


def many(random: Random) -> range:
    return range(random.choice((0, 1, 1, 2, 3, 20)))


@functools.cache
def members(kind: type) -> list[tuple[str, Any]]:
    """(name on the wire, type) of each."""
    hints = typing.get_type_hints(kind, include_extras=True)
    return [(wire_name(one.name, one.metadata), hints[one.name]) for one in attrs.fields(kind)]


def is_nested(kind: Any) -> bool:
    return attrs.has(kind) or any(map(is_nested, typing.get_args(kind)))


def annotated(random: Random, what: object) -> object:
    if isinstance(what, Names):
        return random.choice((*what.names, random.randrange(9)))
    assert isinstance(what, Bits)
    return random.choice((random.randrange(9), random.getrandbits(what.count) - (1 << (what.count - 1))))


def plain(random: Random, kind: object) -> object:
    if kind is bool:
        return random.random() < 0.5
    if kind is int:
        return values.number(random)
    return values.text(random) if kind is str else values.anything(random, 2)
