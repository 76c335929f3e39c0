"""Every type of ours that a public signature names can be imported from the face that has the signature."""

from __future__ import annotations

import collections.abc
import importlib
import inspect
import types
import typing
from collections.abc import Iterator
from typing import Any

import attrs
import pytest

FACES = ["twisted_mq.client", "twisted_mq.aio", "twisted_mq.blocking"]
OF_TESTS = {"connect", "connect_coordinator", "rng", "get_pid"}
"""Arguments of the face of Deferreds that tests set."""
OF_THE_LIBRARY = {
    *["join_consumer", "leave_consumer", "join_producer", "leave_producer", "route_changed", "check_transaction"],
    *[
        "consume_directly",
        "running_info",
        "consumer_data",
        "handed_out",
        "poll_ahead",
        "put_back",
        "exceeded",
        "tls",
        "credentials",
    ],
}
"""Methods that a member and its client call of each other."""
MADE_BY_CONSUMERS = {"ReceivedMessage"}


def signatures(made: Any) -> Iterator[tuple[str, Any]]:
    """Name and function of each call that a user can make of a class or function of a face."""
    if not isinstance(made, type):
        yield made.__name__, made
        return
    for name, member in inspect.getmembers(made):
        if (name.startswith("_") and name != "__init__") or name in OF_THE_LIBRARY:
            continue
        function = member.fget if isinstance(member, property) else member
        if inspect.isfunction(function) or inspect.ismethod(function):
            yield name, inspect.unwrap(function)


def named(hint: Any) -> Iterator[type]:
    """All classes of ours that a hint names, however deep."""
    if isinstance(hint, type) and not isinstance(hint, types.GenericAlias):
        if hint.__module__.startswith("twisted_mq."):
            yield hint
        return
    if isinstance(hint, list | tuple):
        for one in hint:
            yield from named(one)
        return
    origin = typing.get_origin(hint)
    if isinstance(origin, type) and origin is not collections.abc.Callable:
        yield from named(origin)
    for one in typing.get_args(hint):
        yield from named(one)


def types_of(face: str, name: str) -> set[type]:
    """The classes of ours in the signatures of one public name."""
    made = getattr(importlib.import_module(face), name)
    found: set[type] = set()
    if name in MADE_BY_CONSUMERS:
        return found
    for _, function in signatures(made):
        hints = typing.get_type_hints(function, localns=names(face))
        for argument, hint in hints.items():
            if argument not in OF_TESTS:
                found |= set(named(hint))
    if isinstance(made, type) and attrs.has(made):
        attrs.resolve_types(made, localns=names(face))
        for field in attrs.fields(made):
            if not field.name.startswith("_"):
                found |= set(named(field.type))
    return found


def names(face: str) -> dict[str, Any]:
    """Names that modules import for type checkers alone."""
    module = importlib.import_module(face)
    return {name: getattr(module, name) for name in module.__all__}


def is_there(face: str, one: type) -> bool:
    """Return True if a face has the class, or a subclass: its Message is one of the protocol's."""
    own = getattr(importlib.import_module(face), one.__name__, None)
    return own is one or (isinstance(own, type) and one in own.__mro__)


@pytest.mark.parametrize("face", FACES)
def test_each_type_of_a_signature_is_a_name_of_the_face(face: str) -> None:
    module = importlib.import_module(face)
    missing = {
        f"{one.__module__}.{one.__qualname__}"
        for name in module.__all__
        if inspect.isclass(getattr(module, name)) or inspect.isfunction(getattr(module, name))
        for one in types_of(face, name)
        if not is_there(face, one)
    }
    assert missing == set()


def test_the_faces_differ_in_what_only_they_have() -> None:
    client, aio, blocking = (set(importlib.import_module(face).__all__) for face in FACES)
    assert client <= aio <= blocking
    assert (aio - client, blocking - aio) == ({"DeliveryEnded", "ReceivedMessage"}, {"CallTimedOut"})
