"""Encodes the headers of answers (HPACK, RFC 7541). They are nearly always the same, so their blocks are kept.

The headers of every answer enter the dynamic table once, the others never do. Texts are not Huffman-coded: an answer whose
headers are in the tables has no texts. For a client whose table is smaller than TABLE_BYTES the table stays empty.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TypeAlias

from twisted_mq.protocol.http2.events import Pair
from twisted_mq.protocol.http2.header_table import STATIC, TABLE_BYTES

MOST_KEPT = 16
Block: TypeAlias = tuple[Pair, ...]
"""The headers of a block."""
INDEXED, ADDED, NOT_ADDED, RESIZED = 0x80, 0x40, 0x00, 0x20
"""The first octet of each form: its other bits begin a number."""
INDEXED_BITS, ADDED_BITS, NOT_ADDED_BITS, TEXT_BITS = 7, 6, 4, 7
"""The bits of these numbers, and of a text's length."""

_PLACES: dict[Pair, int] = {pair: number for number, pair in enumerate(STATIC) if number}
_NAMES: dict[bytes, int] = {name: number for number, (name, _) in reversed(list(enumerate(STATIC))) if number}


def as_block(headers: Iterable[tuple[str, str]]) -> Block:
    """Return headers as bytes."""
    return tuple((name.encode(), value.encode()) for name, value in headers)


def number(first: int, bits: int, value: int) -> bytes:
    """Return a number whose first octet has these bits for it (RFC 7541, 5.1)."""
    most = (1 << bits) - 1
    if value < most:
        return bytes((first | value,))
    octets = bytearray((first | most,))
    value -= most
    while value >= 0x80:
        octets.append(value & 0x7F | 0x80)
        value >>= 7
    octets.append(value)
    return bytes(octets)


def text(content: bytes) -> bytes:
    """Return a text with its length."""
    return number(0, TEXT_BITS, len(content)) + content


class HeaderEncoder:
    """The encoder of one connection. `repeated` are the headers that enter the dynamic table; it must have room for all."""

    def __init__(self, repeated: Collection[Pair] = ()) -> None:
        self._repeated = frozenset(repeated)
        self._added: list[Pair] = []
        """The dynamic table, oldest first."""
        self._kept: dict[Block, bytes] = {}
        self._start = b""

    def limit_table(self, size: int) -> None:
        """Take the client's setting for the dynamic table."""
        if size < TABLE_BYTES:
            self._repeated = frozenset()
            self._added.clear()
            self._kept.clear()
            self._start = number(RESIZED, 5, 0)

    def encode(self, headers: Block) -> bytes:
        """Return the block of these headers."""
        block = self._kept.get(headers)
        if block is not None:
            return block
        added = len(self._added)
        start, self._start = self._start, b""
        block = start + b"".join(map(self._encoded, headers))
        if start or len(self._added) != added or len(self._kept) >= MOST_KEPT:
            self._kept.clear()  # what is added gives other entries other numbers
        else:
            self._kept[headers] = block
        return block

    def _encoded(self, pair: Pair) -> bytes:
        place = _PLACES.get(pair)
        if place is None and pair in self._added:
            place = len(STATIC) + len(self._added) - 1 - self._added.index(pair)
        if place is not None:
            return number(INDEXED, INDEXED_BITS, place)
        name, value = pair
        is_added = pair in self._repeated
        first, bits = (ADDED, ADDED_BITS) if is_added else (NOT_ADDED, NOT_ADDED_BITS)
        known = _NAMES.get(name)
        head = number(first, bits, known) if known is not None else number(first, bits, 0) + text(name)
        if is_added:
            self._added.append(pair)
        return head + text(value)
