"""Counts the fields of an encoded protobuf message without making objects of them.

A field is a varint of its number and kind, then its value: 0 a varint, 1 eight bytes, 2 a length and so many bytes, 3 and 4 the
begin and end of a group, 5 four bytes. A parser makes up to 70 bytes of memory of a field of two bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

Nested: TypeAlias = "Mapping[int, Nested]"
"""The fields of a message that are messages themselves, by number."""
_VARINT, _EIGHT, _BYTES, _BEGIN, _END, _FOUR = range(6)


def has_more_fields(data: bytes, nested: Nested, most: int) -> bool:
    """Return whether a message and those in it have more than `most` fields. What is wrong in the data ends the count."""
    try:
        return _count(data, nested, 0, len(data), most) > most
    except IndexError:
        return False


def _count(data: bytes, nested: Nested, at: int, end: int, most: int) -> int:
    """Return how many fields there are from `at` to `end`, or a number above `most`."""
    count = 0
    while at < end and count <= most:
        count += 1
        tag = data[at]
        at += 1
        if tag > 0x7F:
            tag, at = _varint(data, at, tag)
        kind = tag & 7
        if kind == _BYTES:
            size = data[at]
            at += 1
            if size > 0x7F:
                size, at = _varint(data, at, size)
            inner = nested.get(tag >> 3)
            if inner is not None:
                count += _count(data, inner, at, min(at + size, end), most - count)
            at += size
        elif kind == _VARINT:
            while data[at] > 0x7F:
                at += 1
            at += 1
        elif kind == _EIGHT:
            at += 8
        elif kind == _FOUR:
            at += 4
        elif kind > _FOUR:
            break
    return count


def _varint(data: bytes, at: int, first: int) -> tuple[int, int]:
    """Return a number whose first byte is `first`, and where it ends."""
    value, shift = first & 0x7F, 7
    while True:
        octet = data[at]
        at += 1
        value |= (octet & 0x7F) << shift
        if octet < 0x80 or shift > 63:
            return value, at
        shift += 7
