"""Numbers of options that cannot work are refused when the options are made, in the options' own names."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import attrs

from twisted_mq.client.core.times import moment_ms
from twisted_mq.routing.errors import ClientOptionIllegal

Check: TypeAlias = "Callable[[Any, attrs.Attribute[Any], Any], None]"
"""An attrs validator."""


def moment(options: Any, option: attrs.Attribute[Any], value: Any) -> None:
    """A moment that can be meant. Raises ClientOptionIllegal."""
    moment_ms(value, f"{type(options).__name__}.{option.name}")


def number(least: float, most: float = math.inf) -> Check:
    """From `least` to `most`, both included. The check raises ClientOptionIllegal."""
    wanted = f"a number from {least:g} to {most:g}" if most != math.inf else f"a number of at least {least:g}"

    def check(options: Any, option: attrs.Attribute[Any], value: Any) -> None:
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise ClientOptionIllegal(f"{type(options).__name__}.{option.name}: {wanted} is needed, got {value!r}")

    return check
