"""The fields of a header class as the codec needs them, and how one is read from text by Java's rules.

An int has 32 bits, a long 64; `true` in any case of letters is true, every other text is false (a C++ client's batch=1 is
no batch). Unknown fields are ignored. Apache's "fast codec" headers (pull, send V2 and their answers) only log a missing
required field; here it is refused as in all others.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping

import attrs
import msgspec

from twisted_mq.protocol.boundary_type import BoundaryType
from twisted_mq.protocol.errors import HeaderError
from twisted_mq.protocol.headers.fields import FieldKind, HeaderClass

_JAVA_INTEGER = re.compile(r"[+-]?[0-9]{1,64}")


@attrs.frozen
class WireField:
    """A field; `allowed` are the values that it may have, None where these are all."""

    attribute: str
    wire: str
    kind: FieldKind
    required: bool
    default: object
    allowed: tuple[object, ...] | None

    @property
    def may_miss(self) -> bool:
        """Return whether it can be None: it is not on the wire then."""
        return not self.required and self.default is None


@functools.cache
def wire_fields(header_class: HeaderClass) -> tuple[WireField, ...]:
    """Return the fields of a header class, the superclass's first."""
    return tuple(
        WireField(
            attribute=field.name,
            wire=field.metadata["wire"],
            kind=field.metadata["kind"],
            required=field.default is attrs.NOTHING,
            default=None if field.default is attrs.NOTHING else field.default,
            allowed=field.metadata["allowed"],
        )
        for field in attrs.fields(header_class)
    )


def allowed_values(header_class: HeaderClass) -> dict[str, tuple[object, ...]]:
    """Return the allowed values of the attributes whose values are limited."""
    return {field.attribute: field.allowed for field in wire_fields(header_class) if field.allowed is not None}


def _read_integer(text: str, bits: int) -> int:
    value = int(text) if _JAVA_INTEGER.fullmatch(text) else msgspec.convert(text, int, strict=False)
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise ValueError(f"not in the range of {bits} bits")
    return value


_READERS: dict[FieldKind, Callable[[str], object]] = {
    FieldKind.TEXT: str,
    FieldKind.INT32: functools.partial(_read_integer, bits=32),
    FieldKind.INT64: functools.partial(_read_integer, bits=64),
    FieldKind.BOOLEAN: lambda text: text.lower() == "true",
    FieldKind.BOUNDARY: BoundaryType.of,
}


def _read_value(header_class: HeaderClass, field: WireField, text: str) -> object:
    try:
        value = _READERS[field.kind](text)
    except msgspec.ValidationError as error:
        raise HeaderError(header_class.__name__, field.wire, text, f"not of type {field.kind.value}") from error
    except ValueError as error:
        raise HeaderError(header_class.__name__, field.wire, text, str(error)) from error
    if field.allowed is not None and value not in field.allowed:
        raise HeaderError(header_class.__name__, field.wire, text, f"not one of {field.allowed}")
    return value


def read_fields(header_class: HeaderClass, fields: Mapping[str, str]) -> dict[str, object]:
    """Return attribute values from the wire's text, absent ones left out. Raises HeaderError at the first wrong one."""
    values = {}
    for field in wire_fields(header_class):
        text = fields.get(field.wire)
        if text is not None and not (text == "null" and field.kind is not FieldKind.TEXT):
            values[field.attribute] = _read_value(header_class, field, text)
        elif field.required:
            raise HeaderError(header_class.__name__, field.wire, text, "required, but missing")
    return values
