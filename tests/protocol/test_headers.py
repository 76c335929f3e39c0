"""The header classes equal the reference tables of 5.3.3: fields, types, required or not, Java's own values."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import attrs
import pytest

import twisted_mq.protocol.headers
from twisted_mq.protocol.boundary_type import BoundaryType
from twisted_mq.protocol.headers.fields import FieldKind
from twisted_mq.protocol.wire.header_fields import WireField, wire_fields

REFERENCE = json.loads((Path(__file__).parent / "reference" / "headers.json").read_text())
JAVA_KINDS = {
    "String": FieldKind.TEXT,
    "int": FieldKind.INT32,
    "Integer": FieldKind.INT32,
    "long": FieldKind.INT64,
    "Long": FieldKind.INT64,
    "boolean": FieldKind.BOOLEAN,
    "Boolean": FieldKind.BOOLEAN,
    "BoundaryType": FieldKind.BOUNDARY,
}
PYTHON_TYPES = {
    FieldKind.TEXT: str,
    FieldKind.INT32: int,
    FieldKind.INT64: int,
    FieldKind.BOOLEAN: bool,
    FieldKind.BOUNDARY: BoundaryType,
}
PRIMITIVES = {"int": 0, "long": 0, "boolean": False}
CLOCK = 10**12
"""Initial values above it are the time of the reference's recording: Apache's constructors read the clock."""


def declared_default(java_type: str, nullable: bool, fresh: Any) -> Any:
    """Return the value of an absent field."""
    if not nullable:
        return None
    if type(fresh) is int and fresh > CLOCK:
        fresh = None
    return PRIMITIVES.get(java_type) if fresh is None else fresh


def expected_fields(name: str) -> set[tuple[str, FieldKind, bool, Any]]:
    return {
        (wire, JAVA_KINDS[java], not nullable, declared_default(java, nullable, fresh[0] if fresh else None))
        for wire, java, nullable, *fresh in REFERENCE["headers"][name]
    }


@pytest.mark.parametrize("name", REFERENCE["headers"])
def test_header_class_equals_the_reference(name: str) -> None:
    header_class = getattr(twisted_mq.protocol.headers, name)
    mine = {(field.wire, field.kind, field.required, field.default) for field in wire_fields(header_class)}
    assert mine == expected_fields(name)
    assert len(wire_fields(header_class)) == len(REFERENCE["headers"][name])


def test_exactly_the_classes_of_the_reference_are_exported() -> None:
    exported = {
        name for name, value in vars(twisted_mq.protocol.headers).items() if inspect.isclass(value) and attrs.has(value)
    }
    assert exported == set(REFERENCE["headers"])
    assert len(exported) == 143


def annotation_of(field: WireField) -> Any:
    python_type: Any = PYTHON_TYPES[field.kind]
    return python_type | None if not field.required and field.default is None else python_type


@pytest.mark.parametrize("name", REFERENCE["headers"])
def test_annotations_say_what_the_metadata_says(name: str) -> None:
    header_class = attrs.resolve_types(getattr(twisted_mq.protocol.headers, name))
    annotations = {field.name: field.type for field in attrs.fields(header_class)}
    assert annotations == {field.attribute: annotation_of(field) for field in wire_fields(header_class)}


def test_one_letter_names_stand_for_the_fields_of_the_first_version() -> None:
    first = {field.attribute: field.wire for field in wire_fields(twisted_mq.protocol.headers.SendMessageRequestHeader)}
    second = wire_fields(twisted_mq.protocol.headers.SendMessageRequestHeaderV2)
    letters = {field.wire: first.get(field.attribute, "bname") for field in second if len(field.wire) == 1}
    assert letters == REFERENCE["one_letter"]


@pytest.mark.parametrize("name", ["PullMessageRequestHeader", "PullMessageResponseHeader", "SendMessageResponseHeader"])
def test_fast_codec_headers_have_the_fields_that_apache_writes(name: str) -> None:
    wires = {field.wire for field in wire_fields(getattr(twisted_mq.protocol.headers, name))}
    assert wires == set(REFERENCE["fast_codes"][name])
