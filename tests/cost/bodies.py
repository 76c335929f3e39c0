"""The largest legal body of a request, made from the class that declares it: every list and table as long as fits."""

from __future__ import annotations

import json
import types
import typing
from typing import Any

import attrs

from tests.fuzz.typed import members
from twisted_mq.protocol.bodies.types import Bits, Names
from twisted_mq.protocol.requests.spec import Payload, RequestSpec

MOST_BYTES = 4 << 20
FIRST_COUNT = 200_000


def widest(spec: RequestSpec) -> bytes:
    """The body of a request with so many entries that it has MOST_BYTES at most."""
    kind = spec.request_body
    if isinstance(kind, Payload):
        return b"".join(b"k%d=v\n" % number for number in range(FIRST_COUNT))
    count = FIRST_COUNT
    while count:
        body = json.dumps(value(kind, count), separators=(",", ":")).encode()
        if len(body) <= MOST_BYTES:
            return body
        count = min(count - 1, int(count * 0.9 * MOST_BYTES / len(body)))
    raise AssertionError(f"{kind} is too large")


def value(kind: Any, count: int, depth: int = 3) -> Any:
    """A JSON value of a type: its outermost lists and tables have `count` entries, those within these one."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        return value(next(one for one in arguments if one is not types.NoneType), count, depth)
    if origin is typing.Annotated:
        return _annotated(arguments[1])
    if attrs.has(kind):
        return {
            wire: value(member, count, depth - 1) for wire, member in members(kind) if depth > 0 or _is_plain(member)
        }
    if origin is dict:
        one = value(arguments[1], 1, depth - 1)
        return {f"{number}" if arguments[0] is not str else f"k{number}": one for number in range(count)}
    if arguments:
        entry = value(arguments[0], 1, depth - 1)
        return [_numbered(entry, number) for number in range(count)]
    return {bool: True, int: 1, float: 1.0, str: "T"}.get(kind, {})


def _is_plain(kind: Any) -> bool:
    return not attrs.has(kind) and not any(map(attrs.has, typing.get_args(kind)))


def _annotated(what: Any) -> Any:
    return what.names[0] if isinstance(what, Names) else 1 if isinstance(what, Bits) else "T"


def _numbered(entry: Any, number: int) -> Any:
    """Entries that differ, where they have a number or a text."""
    if isinstance(entry, str):
        return f"{entry}{number}"
    if isinstance(entry, dict):
        return {
            name: f"{one}{number}" if isinstance(one, str) and "name" in name.lower() else one
            for name, one in entry.items()
        }
    return entry
