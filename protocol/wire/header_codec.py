"""Header classes from and to the extFields of a command.

Each header class gets a `msgspec.Struct` twin with the same attributes, derived from its attrs fields. On the hot paths
the twin is decoded straight from the raw bytes; whatever that fast way does not take is read again, field by field by
Java's rules, which either succeeds or names the field.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Annotated, Any, TypeVar, cast

import attrs
import msgspec

from twisted_mq.protocol.boundary_type import BoundaryType
from twisted_mq.protocol.headers.fields import FieldKind, HeaderClass
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.field_templates import FieldTemplates
from twisted_mq.protocol.wire.header_fields import WireField, allowed_values, read_fields, wire_fields

Header = TypeVar("Header", bound=attrs.AttrsInstance)

_INT32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
_INT64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_TYPES = {
    FieldKind.TEXT: str,
    FieldKind.INT32: _INT32,
    FieldKind.INT64: _INT64,
    FieldKind.BOOLEAN: bool,
    FieldKind.BOUNDARY: BoundaryType,
}
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_DIGITS = {FieldKind.TEXT: 0, FieldKind.INT32: 9, FieldKind.INT64: 18}
"""The digits that fit a kind in any case; 0 for a text. The others are not read from bytes alone."""


@attrs.define(eq=False)
class TypedCommand(RemotingCommand):
    """A command that was made here. Readers of its header in this process get the header itself, not its text.

    `ext_fields` has the text all the same, encoded at the first call. Values that the wire has no place for are refused as
    if they had come over it.
    """

    header: attrs.AttrsInstance | None = None

    @property
    def ext_fields(self) -> dict[str, str]:
        """Return all header fields as text."""
        fields = self._ext_fields
        if fields is None:
            fields = self._ext_fields = {} if self.header is None else encode_header(self.header)
        return fields

    def replace_fields(self, fields: dict[str, str]) -> None:
        """Replace the fields that the command was made with, and the header."""
        self.header, self._ext_fields = None, fields


def _type_of(field: WireField) -> object:
    declared: Any = _TYPES[field.kind]  # typing's forms have no type of their own
    return declared | None if field.may_miss else declared


@functools.cache
def twin_class(header_class: HeaderClass) -> type[msgspec.Struct]:
    """Return the struct with the attributes of `header_class` and its wire names."""
    members: list[tuple[str, object, object]] = []
    for field in sorted(wire_fields(header_class), key=lambda field: not field.required):
        named = (
            msgspec.field(name=field.wire) if field.required else msgspec.field(name=field.wire, default=field.default)
        )
        members.append((field.attribute, _type_of(field), named))
    return msgspec.defstruct(header_class.__name__, members, frozen=True, gc=False)


def _templates(header_class: HeaderClass, twin: type[msgspec.Struct]) -> FieldTemplates[msgspec.Struct]:
    fields = wire_fields(header_class)
    attributes = {field.wire.encode(): field.attribute for field in fields}
    free = [field for field in fields if field.kind in _DIGITS and field.allowed is None]
    return FieldTemplates(twin, attributes, {field.wire.encode(): _DIGITS[field.kind] for field in free})


def _doubtful(header_class: HeaderClass) -> Callable[[msgspec.Struct], bool] | None:
    """Return a predicate: is any boolean of a twin true, or a value not among those allowed? None if neither can be.

    As one expression: attrgetter takes four times as long.
    """
    allowed = allowed_values(header_class)
    doubts = [f"twin.{field.attribute}" for field in wire_fields(header_class) if field.kind is FieldKind.BOOLEAN]
    doubts += [f"twin.{name} not in allowed['{name}']" for name in allowed]
    if not doubts:
        return None
    predicate = eval(f"lambda twin: {' or '.join(doubts)}", {"allowed": allowed})
    return cast(Callable[[msgspec.Struct], bool], predicate)


def _reads_like_java(header_class: HeaderClass) -> Callable[[msgspec.Struct, RemotingCommand], bool]:
    """Return whether values are allowed, and what msgspec took for true is the text `true`: it takes 1 and on too."""
    allowed = allowed_values(header_class)
    booleans = [
        (field.attribute, field.wire, f'"{field.wire}":"true"'.encode())
        for field in wire_fields(header_class)
        if field.kind is FieldKind.BOOLEAN
    ]

    def predicate(twin: msgspec.Struct, command: RemotingCommand) -> bool:
        if any(getattr(twin, name) not in values for name, values in allowed.items()):
            return False
        raw = bytes(command.raw_ext_fields or b"")
        for attribute, wire, usual in booleans:
            if not getattr(twin, attribute) or raw.find(usual) >= 0:
                continue
            if command.ext_fields.get(wire, "true").lower() != "true":
                return False
        return True

    return predicate


def _fits(header_class: HeaderClass) -> Callable[[object], bool]:
    """Return a predicate: are all values of a header of this class such that the wire gives them back as they are?"""
    checks, names = ["True"], {"allowed": allowed_values(header_class), "BoundaryType": BoundaryType}
    for field in wire_fields(header_class):
        value = f"header.{field.attribute}"
        if field.kind in (FieldKind.INT32, FieldKind.INT64):
            limit = 2 ** (31 if field.kind is FieldKind.INT32 else 63)
            check = f"type({value}) is int and -{limit} <= {value} < {limit}"
        else:
            name = {FieldKind.TEXT: "str", FieldKind.BOOLEAN: "bool", FieldKind.BOUNDARY: "BoundaryType"}[field.kind]
            check = f"type({value}) is {name}"
        if field.allowed is not None:
            check += f" and {value} in allowed['{field.attribute}']"
        checks.append(f"({value} is None or {check})" if field.may_miss else check)
    return cast(Callable[[object], bool], eval(f"lambda header: {' and '.join(checks)}", names))


def fast_header(header_class: type[Header]) -> Callable[[RemotingCommand], Header]:
    """Return a decoder for the hot paths: from a command to the header's twin, without an attrs object.

    To the type checker the twin is a header of that class: it has the same attributes, and nothing else is used.
    It raises HeaderError (a field is missing or wrong) or CommandError (the fields cannot be cut apart).
    """
    return cast(Callable[[RemotingCommand], Header], _decoder(header_class))


@functools.cache
def _decoder(header_class: HeaderClass) -> Callable[[RemotingCommand], msgspec.Struct]:
    twin = twin_class(header_class)
    decode_json = msgspec.json.Decoder(twin, strict=False).decode
    templates = _templates(header_class, twin)
    template_for = templates.by_length.get
    doubtful, reads_like_java = _doubtful(header_class), _reads_like_java(header_class)
    by_field = any(field.kind is FieldKind.BOUNDARY for field in wire_fields(header_class))
    fits = _fits(header_class)

    def slowly(command: RemotingCommand) -> msgspec.Struct:
        return twin(**read_fields(header_class, command.ext_fields))

    def without_template(command: RemotingCommand) -> msgspec.Struct:
        """Decode a ROCKETMQ header, which becomes a template for others."""
        try:
            header = msgspec.convert(command.ext_fields, twin, strict=False)
            if doubtful is not None and doubtful(header) and not reads_like_java(header, command):
                header = slowly(command)
        except _UNREADABLE:
            header = slowly(command)
        templates.learn(bytes(command.raw_ext_fields or b""), header)
        return header

    def decode(command: RemotingCommand) -> msgspec.Struct:
        raw = command.raw_ext_fields
        if not raw or by_field:
            if type(command) is TypedCommand and type(command.header) is header_class and fits(command.header):
                return cast(msgspec.Struct, command.header)
            return slowly(command)
        if command.serialize_type:
            template = template_for(len(raw))
            if template is not None and int.from_bytes(raw, "big") & template.mask == template.fixed:
                try:
                    return template.read(raw)
                except ValueError:
                    pass
            return without_template(command)
        try:
            header = decode_json(raw)
        except _UNREADABLE:
            return slowly(command)
        if doubtful is not None and doubtful(header) and not reads_like_java(header, command):
            return slowly(command)
        return header

    return decode


def decode_header(header_class: type[Header], command: RemotingCommand) -> Header:
    """Return the header of a command. Raises HeaderError or CommandError, see `fast_header`."""
    found: object = _decoder(header_class)(command)
    return (
        found
        if isinstance(found, header_class)
        else header_class(**msgspec.structs.asdict(cast(msgspec.Struct, found)))
    )


@functools.cache
def _values_of(header_class: HeaderClass) -> tuple[tuple[str, ...], Callable[[object], tuple[object, ...]]]:
    """Return the wire's names of a header class, and a function that gets all values of a header at once."""
    fields = wire_fields(header_class)
    names = tuple(field.wire for field in fields)
    if len(fields) < 2:  # of one attribute an attrgetter makes no tuple, of none there is no attrgetter
        return names, lambda header: tuple(getattr(header, field.attribute) for field in fields)
    return names, operator.attrgetter(*(field.attribute for field in fields))


def encode_header(header: attrs.AttrsInstance) -> dict[str, str]:
    """Return the header's fields as the wire's text, in the order of declaration, without those that are None."""
    names, values_of = _values_of(type(header))
    return {
        name: value if type(value) is str else str(value) if type(value) is int else _as_text(value)
        for name, value in zip(names, values_of(header), strict=True)
        if value is not None
    }


def _as_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.name if isinstance(value, BoundaryType) else str(value)
