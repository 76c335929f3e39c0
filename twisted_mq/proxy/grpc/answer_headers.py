"""Encodes the headers of answers. They are nearly always the same, so their blocks are kept while they hold."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from hpack.hpack import Encoder

MOST_KEPT = 16
Block: TypeAlias = tuple[tuple[bytes, bytes], ...]
"""The headers of a block, as HPACK takes them."""


def as_block(headers: Iterable[tuple[str, str]]) -> Block:
    """Return headers as bytes."""
    return tuple((name.encode(), value.encode()) for name, value in headers)


class AnswerEncoder:
    """HPACK's encoder as h2 uses it. A block holds until the dynamic table changes."""

    def __init__(self) -> None:
        self._encoder = Encoder()
        self._kept: dict[Block, bytes] = {}

    @property
    def header_table_size(self) -> int:
        """Return the size of the dynamic table, which the client's settings limit."""
        return self._encoder.header_table_size

    @header_table_size.setter
    def header_table_size(self, size: int) -> None:
        self._encoder.header_table_size = size
        self._kept.clear()

    def encode(self, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
        """Return the block of these headers."""
        given = tuple(headers)
        block = self._kept.get(given)
        if block is not None:
            return block
        table = self._encoder.header_table
        before = list(table.dynamic_entries), table.resized
        block = self._encoder.encode(given)
        if (list(table.dynamic_entries), table.resized) != before or len(self._kept) >= MOST_KEPT:
            self._kept.clear()
        else:
            self._kept[given] = block
        return block
