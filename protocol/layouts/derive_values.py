"""All values of one record, fixed fields and length-prefixed ones, by a reader made of the runs of its declaration."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from twisted_mq.protocol.layouts.derive import Field, LengthError, Run

Value: TypeAlias = int | float | bytes
ValueReader: TypeAlias = Callable[[bytes], tuple[Value, ...]]
PlacedReader: TypeAlias = Callable[[bytes, int], tuple[list[Value], int]]


def all_fields(runs: Iterable[Run]) -> list[Field]:
    """Return the fields in order; a length-prefixed one has the format "s" and the size 0."""
    return [field for run in runs for field in _with_follower(run)]


def _with_follower(run: Run) -> Iterator[Field]:
    yield from run.fields
    if run.follower:
        yield Field(run.size, 0, run.follower, "s")


def placed_reader(runs: Sequence[Run]) -> PlacedReader:
    """Return a function of bytes and the place where a record begins: its values in the order of `all_fields`, and its end.

    The function raises LengthError if the bytes end before the record does.
    """
    steps = [(run.size, run.as_struct().unpack_from, run.follower) for run in runs]
    name = all_fields(runs)[-1].name

    def read(data: bytes, position: int) -> tuple[list[Value], int]:
        values: list[Value] = []
        for size, unpack, follower in steps:
            if len(data) - position < size:
                raise LengthError(follower or name, size, len(data) - position)
            values += unpack(data, position)
            position += size
            if follower:
                length = values[-1]
                if not 0 <= length <= len(data) - position:  # type: ignore[operator]  # numbers are before what they measure
                    raise LengthError(follower, int(length), len(data) - position)
                values.append(data[position : position + int(length)])
                position += int(length)
        return values, position

    return read


def value_reader(runs: Iterable[Run]) -> ValueReader:
    """Return a function of the bytes of one whole record that returns its values.

    The function raises LengthError if the record is shorter or longer than its lengths say.
    """
    runs = tuple(runs)
    read, name = placed_reader(runs), all_fields(runs)[-1].name

    def read_whole(data: bytes) -> tuple[Value, ...]:
        values, end = read(data, 0)
        if end < len(data):
            raise LengthError(name, end, len(data))
        return tuple(values)

    return read_whole
