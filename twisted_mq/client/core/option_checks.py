"""Validators that refuse impossible option values when the options are made. Errors name the option."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from typing import Any, TypeAlias

import attrs

from twisted_mq.client.core.times import moment_ms
from twisted_mq.routing.errors import ClientOptionIllegal

Check: TypeAlias = "Callable[[Any, attrs.Attribute[Any], Any], None]"
"""An attrs validator."""


def moment(options: Any, option: attrs.Attribute[Any], value: Any) -> None:
    """Require a valid moment. Raises ClientOptionIllegal."""
    moment_ms(value, f"{type(options).__name__}.{option.name}")


def kind(*wanted: type) -> Check:
    """Return a check that requires a value of one of these classes. The check raises ClientOptionIllegal."""
    named = " or ".join("None" if one is type(None) else one.__name__ for one in wanted)

    def check(options: Any, option: attrs.Attribute[Any], value: Any) -> None:
        if not isinstance(value, wanted):
            raise ClientOptionIllegal(
                f"{type(options).__name__}.{option.name}: must be {named}, got {value!r}{_members(wanted[0])}"
            )

    return check


def function(options: Any, option: attrs.Attribute[Any], value: Any) -> None:
    """Require a function. Raises ClientOptionIllegal."""
    if not callable(value):
        raise ClientOptionIllegal(f"{type(options).__name__}.{option.name}: must be a function, got {value!r}")


def hooks(options: Any, option: attrs.Attribute[Any], value: Any) -> None:
    """Require a list or tuple. Raises ClientOptionIllegal, also for a hook that is not in a list."""
    if not isinstance(value, list | tuple):
        raise ClientOptionIllegal(
            f"{type(options).__name__}.{option.name}: must be a list or tuple, got {value!r}; write [hook]"
        )


def _members(wanted: type) -> str:
    """Return the members of the option's enum, to show what to write."""
    if not issubclass(wanted, enum.Enum):
        return ""
    return f"; write {' or '.join(map(str, wanted))}"


def number(least: float, most: float = math.inf) -> Check:
    """Return a check that requires a number from `least` to `most`, both included. The check raises ClientOptionIllegal."""
    wanted = f"a number from {least:g} to {most:g}" if most != math.inf else f"a number of at least {least:g}"

    def check(options: Any, option: attrs.Attribute[Any], value: Any) -> None:
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise ClientOptionIllegal(f"{type(options).__name__}.{option.name}: must be {wanted}, got {value!r}")

    return check
