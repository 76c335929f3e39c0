"""Decodes header blocks (HPACK, RFC 7541).

    1xxxxxxx  indexed
    01xxxxxx  literal, added to the dynamic table
    001xxxxx  size of the dynamic table
    000xxxxx  literal, not added

A test compares it with hpack's decoder, which takes three times as long.
"""

from __future__ import annotations

from collections import deque

from twisted_mq.protocol.http2.errors import HeaderBlockError, HeadersTooLarge
from twisted_mq.protocol.http2.events import Pair
from twisted_mq.protocol.http2.header_table import ENTRY_BYTES, STATIC, TABLE_BYTES
from twisted_mq.protocol.http2.huffman import decode_huffman

MOST_OCTETS = 4
"""The limit of octets that continue a number: none is above 2^28."""
DYNAMIC = len(STATIC)
"""The number of the dynamic table's newest entry."""


class HeaderDecoder:
    """The decoder of one connection. `most_bytes` is the limit of a block's headers, ENTRY_BYTES for each and its texts."""

    def __init__(self, most_bytes: int = 65_536) -> None:
        self.most_bytes = most_bytes
        self._limit = TABLE_BYTES
        self._entries: deque[Pair] = deque()
        self._size = 0

    def decode(self, block: bytes) -> list[Pair]:
        """Return the headers of a block. Raises HeaderError, HeadersTooLarge."""
        try:
            return self._decode(block)
        except IndexError:
            raise HeaderBlockError("header block is cut off, or names a header that is in no table") from None

    def _decode(self, block: bytes) -> list[Pair]:
        found: list[Pair] = []
        entries, room, at, end = self._entries, self.most_bytes, 0, len(block)
        while at < end:
            octet = block[at]
            at += 1
            if octet & 0x80:
                index = octet & 0x7F
                if index == 0x7F:
                    index, at = _number(block, at, index)
                if not index:
                    raise HeaderBlockError("no header has the index 0")
                pair = STATIC[index] if index < DYNAMIC else entries[index - DYNAMIC]
            elif octet & 0xE0 == 0x20:
                if found:
                    raise HeaderBlockError("the size of the dynamic table changes within a header block")
                at = self._resize(block, at, octet & 0x1F)
                continue
            else:
                mask = 0x3F if octet & 0x40 else 0x0F
                index = octet & mask
                if index == mask:
                    index, at = _number(block, at, index)
                if not index:
                    name, at = _text(block, at, end)
                else:
                    name = (STATIC[index] if index < DYNAMIC else entries[index - DYNAMIC])[0]
                length = block[at]
                stop = at + 1 + length
                if length < 0x7F and stop <= end:  # as short as nearly all, and not Huffman-coded
                    value, at = block[at + 1 : stop], stop
                else:
                    value, at = _text(block, at, end)
                pair = name, value
                if octet & 0x40:
                    self._add(pair)
            room -= len(pair[0]) + len(pair[1]) + ENTRY_BYTES
            if room < 0:
                raise HeadersTooLarge(self.most_bytes)
            found.append(pair)
        return found

    def _resize(self, block: bytes, at: int, size: int) -> int:
        if size == 0x1F:
            size, at = _number(block, at, size)
        if size > TABLE_BYTES:
            raise HeaderBlockError(f"dynamic table of {size} bytes, the limit is {TABLE_BYTES}")
        self._limit = size
        self._shrink()
        return at

    def _add(self, pair: Pair) -> None:
        self._entries.appendleft(pair)
        self._size += len(pair[0]) + len(pair[1]) + ENTRY_BYTES
        if self._size > self._limit:
            self._shrink()

    def _shrink(self) -> None:
        entries, size, limit = self._entries, self._size, self._limit
        while size > limit:
            name, value = entries.pop()
            size -= len(name) + len(value) + ENTRY_BYTES
        self._size = size


def _number(block: bytes, at: int, number: int) -> tuple[int, int]:
    """Return a number that its first octet has no room for, and where it ends. Raises IndexError, HeaderError."""
    shift = 0
    while True:
        octet = block[at]
        at += 1
        number += (octet & 0x7F) << shift
        if octet < 0x80:
            return number, at
        shift += 7
        if shift >= 7 * MOST_OCTETS:
            raise HeaderBlockError("number in a header block is too large")


def _text(block: bytes, at: int, end: int) -> tuple[bytes, int]:
    """Return a text and where it ends. Raises IndexError, HeaderError."""
    octet = block[at]
    at += 1
    length = octet & 0x7F
    if length == 0x7F:
        length, at = _number(block, at, length)
    stop = at + length
    if stop > end:
        raise HeaderBlockError("header block is cut off")
    text = block[at:stop]
    return decode_huffman(text) if octet & 0x80 else text, stop
