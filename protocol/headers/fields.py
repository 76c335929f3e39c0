"""The facts that a header class states about each field: its wire name and its Java type.

A header is an attrs class whose fields carry `metadata=int32("queueId")` and the like. A field without a default is
required (Apache: CFNotNull); one with a default may be absent. Optional fields of a Java primitive have the value Java
gives them, those of a Java object have None.
"""

from __future__ import annotations

import enum
from typing import TypeAlias

import attrs


class FieldKind(enum.Enum):
    """The type of a field as the wire has it: all travel as text."""

    TEXT = "String"
    INT32 = "int, -2^31 to 2^31-1"
    INT64 = "long, -2^63 to 2^63-1"
    BOOLEAN = "boolean: true in any case of letters; any other text is false"
    BOUNDARY = "BoundaryType"


HeaderClass: TypeAlias = type[attrs.AttrsInstance]
Metadata: TypeAlias = dict[str, object]


def _metadata(wire: str, kind: FieldKind, allowed: tuple[object, ...] | None = None) -> Metadata:
    return {"wire": wire, "kind": kind, "allowed": allowed}


def text(wire: str, allowed: tuple[str, ...] | None = None) -> Metadata:
    """Declare a String. Values outside of `allowed` are refused."""
    return _metadata(wire, FieldKind.TEXT, allowed)


def int32(wire: str, allowed: tuple[int, ...] | None = None) -> Metadata:
    """Declare an int or Integer. Values outside of `allowed` are refused."""
    return _metadata(wire, FieldKind.INT32, allowed)


def int64(wire: str) -> Metadata:
    """Declare a long or Long."""
    return _metadata(wire, FieldKind.INT64)


def boolean(wire: str) -> Metadata:
    """Declare a boolean or Boolean."""
    return _metadata(wire, FieldKind.BOOLEAN)


def boundary(wire: str) -> Metadata:
    """Declare a BoundaryType."""
    return _metadata(wire, FieldKind.BOUNDARY)
