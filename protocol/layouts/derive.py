"""Fast forms of the construct layouts: struct.Struct, numpy dtype, table of fields, reader of spans. Nothing is listed twice.

A layout is a row of runs: neighbouring fields of known size, and between two runs one field whose length is the last
number of the run before it. A size that hangs on an earlier field is known where that field's value is given:
`derive_struct(MESSAGE, sys_flag=0)` is the head of a record with IPv4 addresses, with `magic` the runs behind its body
are known too, and with `body_length`, `topic_length` and `properties_length` the whole record is one run.

Construct stays the truth: tests show every derived form equal to it byte for byte.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

import attrs
import construct

from twisted_mq.protocol.layouts.value_order import Buffer as Buffer
from twisted_mq.protocol.layouts.value_order import LayoutError as LayoutError
from twisted_mq.protocol.layouts.value_order import Packer, in_order, require_names

if TYPE_CHECKING:
    import numpy

_TRANSPARENT = (construct.Renamed, construct.Rebuild, construct.Default, construct.Const)
"""Wrappers that change neither the bytes nor the value read from them."""


@attrs.frozen
class Field:
    """A field of a run; `format` is its struct format without the byte order, e.g. "q" or "8s"."""

    offset: int
    size: int
    name: str
    format: str


def _numpy_kind(field: Field) -> str:
    """Return the numpy kind with the size beside the letter, because "l" is 4 bytes in struct and 8 in numpy."""
    if field.format.endswith("s"):
        return f"V{field.size}"
    if field.format in "efd":
        return f">f{field.size}"
    return f">{'i' if field.format.islower() else 'u'}{field.size}"


@attrs.frozen
class Run:
    """Fields of known size, with their places in the run; `follower` is the field behind them, "" at the layout's end."""

    fields: tuple[Field, ...]
    follower: str

    @property
    def size(self) -> int:
        """In bytes."""
        return self.fields[-1].offset + self.fields[-1].size

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the fields, in the order of their bytes."""
        return tuple(field.name for field in self.fields)

    def as_struct(self) -> struct.Struct:
        """Return a struct of all fields, in the order of their bytes."""
        return struct.Struct(">" + "".join(field.format for field in self.fields))

    def of_all(self, *names: str) -> Packer:
        """Return a packer of all fields with values in the order of `names`. Raises LayoutError unless these are all."""
        return in_order(self.as_struct(), self.names, names)

    def of(self, *names: str) -> Packer:
        """Return a packer of some fields with values in the order of `names`; the others are skipped, which is quicker.

        Raises LayoutError for a name that is no field of the run.
        """
        last = max((place for place, name in enumerate(self.names) if name in names), default=-1)
        chosen = self.fields[: last + 1]
        formats = (field.format if field.name in names else f"{field.size}x" for field in chosen)
        declared = [name for name in self.names if name in names]
        return in_order(struct.Struct(">" + "".join(formats)), declared, names)

    def parts_around(self, fields: Collection[str]) -> tuple[str, ...]:
        """Return the names of these fields, and between them that of each stretch of others: its first field's."""
        return tuple(those[0].name for _, those in self._stretches(fields))

    def around(self, fields: Collection[str], parts: Sequence[str]) -> Packer:
        """Return a packer of these fields, with each stretch of others as one bytes value, so that it is packed only once.

        `parts` are the names of the values, see `parts_around`. Raises LayoutError for other parts.
        """
        found = self._stretches(fields)
        formats = [those[0].format if name else f"{sum(field.size for field in those)}s" for name, those in found]
        return in_order(struct.Struct(">" + "".join(formats)), self.parts_around(fields), parts)

    def _stretches(self, fields: Collection[str]) -> list[tuple[str, list[Field]]]:
        stretches = itertools.groupby(self.fields, lambda field: field.name if field.name in fields else "")
        return [(name, list(those)) for name, those in stretches]

    def as_dtype(self) -> numpy.dtype[numpy.void]:
        """Return all fields as a numpy record; byte fields are of the kind `V`, whose values are bytes."""
        import numpy

        return numpy.dtype([(field.name, _numpy_kind(field)) for field in self.fields])


class LengthError(ValueError):
    """The length of a field that does not fit: `left` bytes are there for it and what is behind it."""

    def __init__(self, name: str, length: int, left: int) -> None:
        super().__init__(f"{name} of {length} bytes, {left} are left")
        self.name = name
        self.length = length
        self.left = left


def _plain(subcon: construct.Construct, known: dict[str, int]) -> construct.Construct:
    """Return what is inside wrappers and inside a choice that the known values decide."""
    while isinstance(subcon, (*_TRANSPARENT, construct.IfThenElse)):
        if isinstance(subcon, construct.IfThenElse):
            decided = construct.evaluate(subcon.condfunc, construct.Container(known))
            subcon = subcon.thensubcon if decided else subcon.elsesubcon
        else:
            subcon = subcon.subcon
    return subcon


def _format(subcon: construct.Construct, size: int) -> str:
    """Return the struct format of one field. Raises LayoutError for kinds that struct cannot read."""
    if isinstance(subcon, construct.FormatField):
        if subcon.fmtstr[0] != ">" and size > 1:
            raise LayoutError(f"{subcon!r} is not big-endian")
        return str(subcon.fmtstr[1:])
    if isinstance(subcon, construct.Bytes):
        return f"{size}s"
    raise LayoutError(f"no struct format for {subcon!r}")


def _known_size(subcon: construct.Construct, known: dict[str, int]) -> int | None:
    """Return the size of a field in bytes, None if it depends on a value that is not known."""
    try:
        return int(subcon.sizeof(**known))
    except (construct.SizeofError, KeyError, AttributeError):
        return None


def _is_prefixed(subcon: construct.Construct, length_name: str) -> bool:
    """Return whether a field is as long as the number before it says."""
    while isinstance(subcon, _TRANSPARENT):
        subcon = subcon.subcon
    try:
        return isinstance(subcon, construct.Bytes) and bool(subcon.length(construct.Container({length_name: 1})) == 1)
    except (KeyError, AttributeError):
        return False


def derive_runs(layout: construct.Struct, **known: int) -> Iterator[Run]:
    """Yield the runs in order. Raises LayoutError at one that does not end with the length of the next field."""
    fields: list[Field] = []
    offset = 0
    for subcon in layout.subcons:
        size = _known_size(subcon, known)
        if size is not None:
            fields.append(Field(offset, size, subcon.name, _format(_plain(subcon, known), size)))
            offset += size
            continue
        if not fields:
            raise LayoutError(f"{layout!r} has no field of known size before {subcon.name!r}")
        yield Run(tuple(fields), subcon.name)
        if not _is_prefixed(subcon, fields[-1].name):
            raise LayoutError(f"{fields[-1].name!r} is not the length of {subcon.name!r}")
        fields, offset = [], 0
    if fields:
        yield Run(tuple(fields), "")


def field_table(layout: construct.Struct, **known: int) -> list[Field]:
    """Return the fields of the first run, in order. Raises LayoutError if the layout has no such run."""
    return list(next(derive_runs(layout, **known)).fields)


def derive_struct(layout: construct.Struct, *names: str, **known: int) -> struct.Struct:
    """Return the first run as one big-endian struct.

    Code that packs and unpacks it by position says so by `names`: raises LayoutError unless they are the fields in order.
    """
    run = next(derive_runs(layout, **known))
    require_names(names or run.names, run.names, "the code")
    return run.as_struct()


def derive_head(layout: construct.Struct, *names: str, **known: int) -> Packer:
    """Return a packer of the whole first run with values in the order of `names`; see `Run.of_all`."""
    return next(derive_runs(layout, **known)).of_all(*names)


def derive_fields(layout: construct.Struct, *names: str, **known: int) -> Packer:
    """Return a packer of only these fields of the first run, with values in the order of `names`; see `Run.of`."""
    return next(derive_runs(layout, **known)).of(*names)


def _leading_field(layout: construct.Struct, name: str, known: dict[str, int]) -> Field:
    for field in field_table(layout, **known):
        if field.name == name:
            return field
    raise LayoutError(f"no leading field {name!r} in {layout!r}")


def derive_field(layout: construct.Struct, name: str, **known: int) -> struct.Struct:
    """Return the struct of one field of the first run, to be read or written at its offset."""
    return struct.Struct(f">{_leading_field(layout, name, known).format}")


def repeated(one: struct.Struct, count: int) -> struct.Struct:
    """Return the struct repeated `count` times, back to back."""
    return struct.Struct(one.format[:1] + one.format[1:] * count)


def texts(lengths: Iterable[int]) -> struct.Struct:
    """Cuts bytes into pieces of these lengths."""
    return struct.Struct("".join(f"{length}s" for length in lengths))


def field_offset(layout: construct.Struct, name: str, **known: int) -> int:
    """Return where a field of the first run begins. Raises LayoutError for a field that is not in it."""
    return _leading_field(layout, name, known).offset


def least_bytes(layout: construct.Struct, **known: int) -> int:
    """Return the size of all runs: the size of the whole if all fields between them are empty."""
    return sum(run.size for run in derive_runs(layout, **known))


SpanReader: TypeAlias = Callable[[Buffer, int, int, int], list[int]]
"""A buffer, where the field behind the first run begins, its length, where the layout's last field must end."""


def require_variable(layout: construct.Struct, *names: str, **known: int) -> None:
    """Raise LayoutError unless these are the fields between the runs, in this order: for code that has it itself."""
    require_names(names, [run.follower for run in derive_runs(layout, **known) if run.follower], "the code")


def derive_spans(layout: construct.Struct, **known: int) -> SpanReader:
    """Reads where the fields between the runs lie: begin and end of each, in order.

    The reader raises LengthError unless all lengths add up; it looks at no byte behind the end.
    """
    first, *rest = derive_runs(layout, **known)
    steps = [(run.size, run.of(run.fields[-1].name).unpack_from) for run in rest]
    names = [run.follower for run in (first, *rest)]

    def read_spans(buffer: Buffer, begin: int, length: int, end: int) -> list[int]:
        spans: list[int] = []
        for size, unpack in steps:
            stop = begin + length
            following = stop + size
            if length < 0 or following > end:
                raise LengthError(names[len(spans) // 2], length, end - begin)
            spans += (begin, stop)
            begin = following
            (length,) = unpack(buffer, stop)
        if length < 0 or begin + length != end:
            raise LengthError(names[-1], length, end - begin)
        spans += (begin, end)
        return spans

    return read_spans if len(steps) != 2 else _read_two(steps, read_spans)


def _read_two(steps: Sequence[tuple[int, Callable[[Buffer, int], tuple[int]]]], otherwise: SpanReader) -> SpanReader:
    """Return the same reader for layouts of three runs, without its loop; `otherwise` reads what does not fit."""
    (size_1, unpack_1), (size_2, unpack_2) = steps

    def read_spans(buffer: Buffer, begin: int, length: int, end: int) -> list[int]:
        stop_1 = begin + length
        begin_2 = stop_1 + size_1
        if length >= 0 and begin_2 <= end:
            (length_2,) = unpack_1(buffer, stop_1)
            stop_2 = begin_2 + length_2
            begin_3 = stop_2 + size_2
            if length_2 >= 0 and begin_3 <= end:
                (length_3,) = unpack_2(buffer, stop_2)
                if length_3 >= 0 and begin_3 + length_3 == end:
                    return [begin, stop_1, begin_2, stop_2, begin_3, end]
        return otherwise(buffer, begin, length, end)

    return read_spans


def derive_dtype(layout: construct.Struct, **known: int) -> numpy.dtype[numpy.void]:
    """Return the first run as a numpy record, see `Run.as_dtype`."""
    return next(derive_runs(layout, **known)).as_dtype()
