"""A fast way from the extFields of ROCKETMQ headers to values: layouts that were seen before are cut in one go.

A peer sends the same fields in the same order, and most values keep their length. So of the extFields of each length it
is remembered where names, lengths and values lie. The next ones of that length are compared with it in one operation:
each byte of a name or a length must be the same, each byte of a value ASCII. Then the values are slices at known places.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any, NamedTuple

MAX_LAYOUT_BYTES = 1024
"""Longer extFields have no layout."""

MAX_LAYOUTS = 64
"""Lengths that are remembered at a time: some 200 KB at most."""

LEARN_EVERY = 8
"""Once there is no room, or the layout of a length does not fit, one stranger of so many gives a new layout."""


class Layout(NamedTuple):
    """Where fields lie: `raw & mask == fixed` holds for all extFields of this layout, as big-endian integers."""

    names: tuple[str, ...]
    slices: tuple[slice, ...]
    mask: int
    fixed: int


def layout_of(raw: bytes) -> Layout | None:
    """The layout of intact extFields; None for values that are not ASCII."""
    names, slices = [], []
    mask = bytearray(b"\xff" * len(raw))
    position = 0
    while position < len(raw):
        name_at = position + 2
        size_at = name_at + int.from_bytes(raw[position:name_at], "big")
        value_at = size_at + 4
        position = value_at + int.from_bytes(raw[size_at:value_at], "big")
        if not raw[value_at:position].isascii():
            return None
        names.append(raw[name_at:size_at].decode())
        slices.append(slice(value_at, position))
        mask[value_at:position] = b"\x80" * (position - value_at)
    bits = int.from_bytes(mask, "big")
    return Layout(tuple(names), tuple(slices), bits, int.from_bytes(raw, "big") & bits)


def cutter(slices: list[slice]) -> Callable[[str], tuple[str, ...]]:
    """From a text to the tuple of its slices."""
    if len(slices) > 1:
        cut: Any = itemgetter(*slices)
        return cut  # type: ignore[no-any-return]
    return lambda text: tuple(text[part] for part in slices)


class KnownLayout(NamedTuple):
    """A layout in use: `convert(cut(raw.decode("latin-1")))` is the value of extFields that fit it."""

    mask: int
    fixed: int
    cut: Callable[[str], tuple[str, ...]]
    convert: Callable[[Any], Any]


class FieldLayouts:
    """Remembers layouts by length. `make` says what is done with the values; None means that the layout is of no use."""

    def __init__(self, make: Callable[[Layout], KnownLayout | None]) -> None:
        self._make = make
        self._strangers = 0
        self.by_length: dict[int, KnownLayout] = {}

    def learn(self, raw: bytes) -> None:
        """Remember the layout of extFields that were read without error, and that fitted none."""
        self._strangers += 1
        room = len(self.by_length) < MAX_LAYOUTS and len(raw) not in self.by_length
        if len(raw) > MAX_LAYOUT_BYTES or not (room or self._strangers % LEARN_EVERY == 0):
            return
        layout = layout_of(raw)
        known = self._make(layout) if layout is not None else None
        if known is None:
            return
        if not room and len(raw) not in self.by_length:
            del self.by_length[next(iter(self.by_length))]
        self.by_length[len(raw)] = known
