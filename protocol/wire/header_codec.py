"""Header classes from and to the extFields of a command.

Each header class gets a `msgspec.Struct` twin with the same attributes, derived from its attrs fields. On the hot paths
the twin is decoded straight from the raw bytes; whatever that fast way does not take is read again, field by field by
Java's rules, which either succeeds or names the field.

Java's rules: an int has 32 bits, a long 64; `true` in any case of letters is true, every other text is false (a C++
client's batch=1 is no batch). Unknown fields are ignored. Apache's "fast codec" headers (pull, send V2 and their
answers) only log a missing required field; here it is refused as in all others.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeVar

import attrs
import msgspec

from twisted_mq.protocol.errors import HeaderError
from twisted_mq.protocol.headers.fields import BoundaryType, Kind
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.field_templates import FieldTemplates

Header = TypeVar("Header")

_INT32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
_INT64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_TYPES = {Kind.TEXT: str, Kind.INT32: _INT32, Kind.INT64: _INT64, Kind.BOOLEAN: bool, Kind.BOUNDARY: BoundaryType}
_JAVA_INTEGER = re.compile(r"[+-]?[0-9]{1,64}")
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


@attrs.frozen
class WireField:
    """One field of a header class as the codec needs it."""

    attribute: str
    wire: str
    kind: Kind
    required: bool
    default: Any
    allowed: tuple[Any, ...] | None


@functools.cache
def wire_fields(header_class: Any) -> tuple[WireField, ...]:
    """The fields of a header class, the superclass's first."""
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


def _type_of(field: WireField) -> Any:
    declared: Any = _TYPES[field.kind]
    return declared | None if not field.required and field.default is None else declared


@functools.cache
def twin_class(header_class: type) -> type[msgspec.Struct]:
    """The struct with the attributes of `header_class` and its wire names."""
    members: list[Any] = []
    for field in sorted(wire_fields(header_class), key=lambda field: not field.required):
        default = {} if field.required else {"default": field.default}
        members.append((field.attribute, _type_of(field), msgspec.field(name=field.wire, **default)))
    return msgspec.defstruct(header_class.__name__, members, frozen=True, gc=False)


def _read_integer(text: str, bits: int) -> int:
    value = int(text) if _JAVA_INTEGER.fullmatch(text) else msgspec.convert(text, int, strict=False)
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise ValueError(f"not in the range of {bits} bits")
    return value


def _read_int32(text: str) -> int:
    return _read_integer(text, 32)


def _read_int64(text: str) -> int:
    return _read_integer(text, 64)


_READERS: dict[Kind, Callable[[str], Any]] = {
    Kind.TEXT: str,
    Kind.INT32: _read_int32,
    Kind.INT64: _read_int64,
    Kind.BOOLEAN: lambda text: text.lower() == "true",
    Kind.BOUNDARY: BoundaryType.of,
}


def _read_value(header_class: type, field: WireField, text: str) -> Any:
    try:
        value = _READERS[field.kind](text)
    except msgspec.ValidationError as error:
        raise HeaderError(header_class.__name__, field.wire, text, f"not of type {field.kind.value}") from error
    except ValueError as error:
        raise HeaderError(header_class.__name__, field.wire, text, str(error)) from error
    if field.allowed is not None and value not in field.allowed:
        raise HeaderError(header_class.__name__, field.wire, text, f"not one of {field.allowed}")
    return value


def read_fields(header_class: type, fields: Mapping[str, str]) -> dict[str, Any]:
    """Attribute values from the wire's text, absent ones left out. Raises HeaderError; nothing is read past it."""
    values = {}
    for field in wire_fields(header_class):
        text = fields.get(field.wire)
        if text is not None and not (text == "null" and field.kind is not Kind.TEXT):
            values[field.attribute] = _read_value(header_class, field, text)
        elif field.required:
            raise HeaderError(header_class.__name__, field.wire, text, "required, but missing")
    return values


def _allowed_values(header_class: type) -> dict[str, tuple[Any, ...]]:
    return {field.attribute: field.allowed for field in wire_fields(header_class) if field.allowed is not None}


def _doubtful(header_class: type) -> Callable[[Any], Any]:
    """A predicate: is any boolean of a twin true, or a value none of those allowed?

    As one expression: attrgetter takes four times as long.
    """
    allowed = _allowed_values(header_class)
    doubts = [f"twin.{field.attribute}" for field in wire_fields(header_class) if field.kind is Kind.BOOLEAN]
    doubts += [f"twin.{name} not in allowed['{name}']" for name in allowed]
    return eval(f"lambda twin: {' or '.join(doubts) or 'False'}", {"allowed": allowed})  # type: ignore[no-any-return]


_DIGITS = {Kind.TEXT: 0, Kind.INT32: 9, Kind.INT64: 18}
"""How many digits fit a kind in any case; 0 for a text. The others are not read from bytes alone."""


def _templates(header_class: type, twin: type[msgspec.Struct]) -> FieldTemplates:
    fields = wire_fields(header_class)
    attributes = {field.wire.encode(): field.attribute for field in fields}
    free = [field for field in fields if field.kind in _DIGITS and field.allowed is None]
    return FieldTemplates(twin, attributes, {field.wire.encode(): _DIGITS[field.kind] for field in free})


def fast_header(header_class: type[Header]) -> Callable[[RemotingCommand], Header]:
    """A decoder for the hot paths: from a command to the header's twin, without an attrs object.

    To the type checker the twin is a header of that class: it has the same attributes, and nothing else is looked at.
    It raises HeaderError (a field is missing or wrong) or CommandError (the fields cannot be cut apart).
    """
    key: Any = header_class  # mypy takes no class of a type variable for hashable
    decode: Callable[[RemotingCommand], Header] = _decoder(key)
    return decode


@functools.cache
def _decoder(header_class: Any) -> Callable[[RemotingCommand], Any]:
    twin = twin_class(header_class)
    decode_json = msgspec.json.Decoder(twin, strict=False).decode
    convert = functools.partial(msgspec.convert, type=twin, strict=False)
    templates = _templates(header_class, twin)
    template_for = templates.by_length.get
    doubtful = _doubtful(header_class)
    booleans = [
        (field.attribute, field.wire, f'"{field.wire}":"true"'.encode())
        for field in wire_fields(header_class)
        if field.kind is Kind.BOOLEAN
    ]
    by_field = any(field.kind is Kind.BOUNDARY for field in wire_fields(header_class))
    allowed = _allowed_values(header_class)

    def reads_like_java(header: Any, command: RemotingCommand) -> bool:
        """Whether values are allowed, and what msgspec took for true is the text `true`: it takes 1 and on too."""
        if any(getattr(header, name) not in values for name, values in allowed.items()):
            return False
        raw = bytes(command.raw_ext_fields or b"")
        for attribute, wire, usual in booleans:
            if not getattr(header, attribute) or raw.find(usual) >= 0:
                continue
            if command.ext_fields.get(wire, "true").lower() != "true":
                return False
        return True

    def by_template(raw: bytes) -> Any:
        """None where no template fits."""
        template = template_for(len(raw))
        if template is not None and int.from_bytes(raw, "big") & template.mask == template.fixed:
            try:
                return template.read(raw)
            except ValueError:
                pass
        return None

    def decode(command: RemotingCommand) -> Any:
        raw = command.raw_ext_fields
        if raw and not by_field:
            is_binary = command.serialize_type == 1
            if is_binary and (header := by_template(raw)) is not None:
                return header
            try:
                header = convert(command.ext_fields) if is_binary else decode_json(raw)
                if doubtful(header) and not reads_like_java(header, command):
                    header = twin(**read_fields(header_class, command.ext_fields))
            except _UNREADABLE:
                header = twin(**read_fields(header_class, command.ext_fields))
            if is_binary:
                templates.learn(raw, header)
            return header
        return twin(**read_fields(header_class, command.ext_fields))

    return decode


def decode_header(header_class: type[Header], command: RemotingCommand) -> Header:
    """The header of a command. Raises HeaderError or CommandError, see `fast_header`."""
    twin: Any = fast_header(header_class)(command)
    return header_class(**msgspec.structs.asdict(twin))


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.name if isinstance(value, BoundaryType) else str(value)


@functools.cache
def _values_of(header_class: type) -> tuple[tuple[str, ...], Callable[[Any], tuple[Any, ...]]]:
    """The wire's names of a header class, and what gets all values of a header at once."""
    fields = wire_fields(header_class)
    names = tuple(field.wire for field in fields)
    if len(fields) < 2:  # of one attribute an attrgetter makes no tuple, of none there is no attrgetter
        return names, lambda header: tuple(getattr(header, field.attribute) for field in fields)
    return names, operator.attrgetter(*(field.attribute for field in fields))


def encode_header(header: Any) -> dict[str, str]:
    """The header's fields as the wire's text, in the order of declaration, without those that are None."""
    header_class: Any = type(header)
    names, values_of = _values_of(header_class)
    return {
        name: value if (kind := type(value)) is str else str(value) if kind is int else _as_text(value)
        for name, value in zip(names, values_of(header), strict=True)
        if value is not None
    }
