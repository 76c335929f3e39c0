"""Fast forms of the construct layouts: struct.Struct, numpy dtype, table of fields. Nothing is listed twice.

Derived is the leading run of fields whose size is known: all of a fixed layout, or the part of a record before the
first field whose length stands in the record. A size that hangs on an earlier field is known where that field's value
is given: `derive_struct(MESSAGE, sys_flag=0)` is the head of a record with IPv4 addresses.

Construct stays the truth: tests show every derived form equal to it byte for byte.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import attrs
import construct

if TYPE_CHECKING:
    import numpy

_TRANSPARENT = (construct.Renamed, construct.Rebuild, construct.Default, construct.Const)
"""Wrappers that change neither the bytes nor the value read from them."""


@attrs.frozen
class Field:
    """One field of a layout; `format` is its struct format without the byte order, e.g. "q" or "8s"."""

    offset: int
    size: int
    name: str
    format: str


class LayoutError(TypeError):
    """A layout of which no fast form can be derived."""


def _format(subcon: Any, size: int) -> str:
    """The struct format of one field. Raises LayoutError for kinds that struct cannot read."""
    while isinstance(subcon, _TRANSPARENT):
        subcon = subcon.subcon
    if isinstance(subcon, construct.FormatField):
        if subcon.fmtstr[0] != ">" and size > 1:
            raise LayoutError(f"{subcon!r} is not big-endian")
        return str(subcon.fmtstr[1:])
    if isinstance(subcon, construct.Bytes):
        return f"{size}s"
    raise LayoutError(f"no struct format for {subcon!r}")


def _known_size(subcon: Any, known: dict[str, Any]) -> int | None:
    """The size of a field in bytes, None where it hangs on a value that is not known."""
    try:
        return int(subcon.sizeof(**known))
    except (construct.SizeofError, KeyError, AttributeError):
        return None


def field_table(layout: construct.Struct, **known: Any) -> list[Field]:
    """The leading fields of known size, in order. Raises LayoutError where there is none."""
    fields: list[Field] = []
    offset = 0
    for subcon in layout.subcons:
        size = _known_size(subcon, known)
        if size is None:
            break
        fields.append(Field(offset, size, subcon.name, _format(subcon, size)))
        offset += size
    if not fields:
        raise LayoutError(f"{layout!r} does not begin with a field of known size")
    return fields


def derive_struct(layout: construct.Struct, **known: Any) -> struct.Struct:
    """The leading fields of known size as one big-endian struct."""
    return struct.Struct(">" + "".join(field.format for field in field_table(layout, **known)))


def derive_fields(layout: construct.Struct, *names: str, **known: Any) -> struct.Struct:
    """Only these of the leading fields, in the layout's order; the others are passed over, which is quicker."""
    table = field_table(layout, **known)
    last = max(index for index, field in enumerate(table) if field.name in names)
    formats = (field.format if field.name in names else f"{field.size}x" for field in table[: last + 1])
    return struct.Struct(">" + "".join(formats))


def _numpy_kind(format: str) -> str:
    """numpy's letter of a struct format; sizes are given beside it, because "l" is 4 bytes in struct and 8 in numpy."""
    if format in "efd":
        return "f"
    return "i" if format.islower() else "u"


def derive_dtype(layout: construct.Struct, **known: Any) -> numpy.dtype[Any]:
    """The leading fields of known size as a numpy record; byte fields become arrays of unsigned bytes."""
    import numpy

    kinds = []
    for field in field_table(layout, **known):
        if field.format.endswith("s"):
            kinds.append((field.name, numpy.dtype(("u1", (field.size,)))))
        else:
            kinds.append((field.name, numpy.dtype(f">{_numpy_kind(field.format)}{field.size}")))
    return numpy.dtype(kinds)


def field_offset(layout: construct.Struct, name: str, **known: Any) -> int:
    """Where a leading field begins. Raises LayoutError for a field that is not among them."""
    for field in field_table(layout, **known):
        if field.name == name:
            return field.offset
    raise LayoutError(f"no leading field {name!r} in {layout!r}")
