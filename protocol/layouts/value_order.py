"""Values in the order in which the code names them, whatever the order of their bytes in the declaration.

Where both orders are the same, the struct itself is used and nothing is spent.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable, Iterator, Sequence
from mmap import mmap
from typing import Any, Protocol, TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview | mmap
Values: TypeAlias = tuple[Any, ...]


class LayoutError(TypeError):
    """A layout of which no fast form can be derived, or names that are not the layout's."""


class Packer(Protocol):
    """The part of struct.Struct that does not depend on the order of the bytes."""

    @property
    def size(self) -> int: ...
    def pack(self, *values: Any) -> bytes: ...
    def unpack(self, data: Buffer, /) -> Values: ...
    def unpack_from(self, /, buffer: Buffer, offset: int = 0) -> Values: ...
    def iter_unpack(self, data: Buffer, /) -> Iterator[Values]: ...


def require_names(found: Sequence[str], declared: Sequence[str], what: str) -> None:
    """Raise LayoutError unless `found` are the declared names in the declared order: for code that has this order itself."""
    if tuple(found) != tuple(declared):
        raise LayoutError(f"{what} has {', '.join(found)}, the declaration {', '.join(declared)}")


def in_order(packed: struct.Struct, declared: Sequence[str], names: Sequence[str]) -> Packer:
    """Return a packer of these fields whose values are in the order of `names`. Raises LayoutError for other names."""
    if tuple(declared) == tuple(names):
        return packed
    require_names(sorted(names), sorted(declared), "the code")
    return _Reordered(packed, _picker(names, declared), _picker(declared, names))


def _picker(given: Sequence[str], wanted: Sequence[str]) -> Callable[[Values], Values]:
    return operator.itemgetter(*(given.index(name) for name in wanted))


class _Reordered:
    """Packs and unpacks values in another order than that of the bytes; one of them alone has no other order."""

    def __init__(
        self, packed: struct.Struct, as_declared: Callable[[Values], Values], as_named: Callable[[Values], Values]
    ) -> None:
        self._packed = packed
        self._as_declared = as_declared
        self._as_named = as_named
        self.size = packed.size

    def pack(self, *values: Any) -> bytes:
        return self._packed.pack(*self._as_declared(values))

    def unpack(self, data: Buffer, /) -> Values:
        return self._as_named(self._packed.unpack(data))

    def unpack_from(self, /, buffer: Buffer, offset: int = 0) -> Values:
        return self._as_named(self._packed.unpack_from(buffer, offset))

    def iter_unpack(self, data: Buffer, /) -> Iterator[Values]:
        return map(self._as_named, self._packed.iter_unpack(data))
