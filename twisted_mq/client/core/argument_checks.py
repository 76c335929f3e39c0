"""Checks of the constructor arguments of producers and consumers. Errors name the argument and say what to write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from twisted_mq.routing.errors import ClientOptionIllegal

Topics: TypeAlias = Mapping[str, str] | Iterable[str]
"""Topics with an expression each, as {"Orders": "paid || sent"}; or their names alone, for all of their messages."""

SUB_ALL = "*"


def expressions(topics: Topics | None) -> dict[str, str]:
    """Return the expression of each topic. Raises ClientOptionIllegal if it is neither a mapping nor names."""
    if topics is None:
        return {}
    if isinstance(topics, str):
        raise ClientOptionIllegal(f'topics: must be a list or dict, got {topics!r}; write ["{topics}"]')
    if isinstance(topics, Mapping):
        found = dict(topics)
    elif isinstance(topics, Iterable) and not isinstance(topics, bytes | bytearray):
        found = dict.fromkeys(topics, SUB_ALL)
    else:
        raise ClientOptionIllegal(f'topics: must be a list or dict, got {topics!r}; write {{"Orders": "*"}}')
    for topic, expression in found.items():
        if not isinstance(topic, str) or not isinstance(expression, str):
            raise ClientOptionIllegal(
                f'topics: names and expressions must be str, got {topic!r}: {expression!r}; write {{"Orders": "*"}}'
            )
    return found


def check_class(value: object, wanted: type, name: str) -> None:
    """Raise ClientOptionIllegal for a value of another class; None is allowed."""
    if value is not None and not isinstance(value, wanted):
        raise ClientOptionIllegal(f"{name}: must be {_named(wanted)}, got {_shown(value)}")


def check_function(value: object, name: str, example: str) -> None:
    """Raise ClientOptionIllegal for a value that cannot be called."""
    if not callable(value):
        raise ClientOptionIllegal(f"{name}: must be a function, got {value!r}; write {example}")


def check_most(most: object) -> None:
    """Raise ClientOptionIllegal for an impossible number of messages."""
    if not isinstance(most, int) or most < 1:
        raise ClientOptionIllegal(f"max_messages: must be at least 1, got {most!r}")


def check_reactor_argument(reactor: object) -> None:
    """Raise ClientOptionIllegal for a value that is not a reactor, such as an address in its place."""
    if not callable(getattr(reactor, "callLater", None)):
        raise ClientOptionIllegal(
            f"reactor: must be Twisted's reactor, got {reactor!r}; without one use twisted_mq.aio or twisted_mq.blocking"
        )


def check_client_arguments(client: object, client_options: object, client_class: type, options_class: type) -> None:
    """Raise ClientOptionIllegal for a client of another API, other options, or both if one would be ignored."""
    check_class(client, client_class, "client")
    check_class(client_options, options_class, "client_options")
    if client is not None and client_options is not None:
        raise ClientOptionIllegal("client_options: the client already has options; write MQClient(..., options=...)")


def _named(kind: type) -> str:
    module = kind.__module__
    face = next((one for one in ("aio", "blocking") if module.startswith(f"twisted_mq.{one}")), "")
    return f"{face}.{kind.__name__}" if face else kind.__name__


def _shown(value: object) -> str:
    """Return the class name for our own objects, whose repr is long; the repr of other values."""
    if isinstance(value, type):
        return f"the class {value.__name__}; write {value.__name__}(...)"
    kind = type(value)
    if kind.__module__.startswith("twisted_mq."):
        return f"{'an' if _named(kind)[0] in 'aeiouAEIOU' else 'a'} {_named(kind)}"
    return repr(value)
