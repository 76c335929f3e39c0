"""Rules of the Java runtime that reach the wire and the disk: string hashes, integers as text, UTF-8 of odd strings."""

from __future__ import annotations

import functools
import operator
import re
import struct

BLANKS = "".join(map(chr, range(0x21)))
"""The characters that String.trim() removes at both ends."""
_CHUNK = 64
_LONGEST_CACHED = 128
_DECIMAL = re.compile(r"[+-]?[0-9]{1,19}\Z")


def hash_power(length: int) -> int:
    """Return the factor of a string's hash when `length` units follow, 32 bits without sign."""
    return pow(31, length, 1 << 32)


def hash_powers(length: int) -> list[int]:
    """Return the weight of each unit of a string in its hash: `hash_power(length - 1)` to 1."""
    return [hash_power(length - 1 - place) for place in range(length)]


_POWERS = hash_powers(_CHUNK)


def to_int(value: int) -> int:
    """Return the low 32 bits as Java's signed int: 0xFFFFFFFF is -1."""
    return ((value + 0x80000000) & 0xFFFFFFFF) - 0x80000000


def _code_units(text: str) -> bytes | tuple[int, ...]:
    """Return the UTF-16 code units of `text`, as Java's strings hold them; lone surrogates included."""
    if text.isascii():
        return text.encode("ascii")
    data = text.encode("utf-16-be", "surrogatepass")
    return struct.unpack(f">{len(data) // 2}H", data)


def utf16_length(text: str) -> int:
    """String.length(): code units, of which a character outside of the basic plane has two."""
    return len(_code_units(text))


def java_hash(text: str) -> int:
    """Return String.hashCode(): sum of unit * 31 ** (rest of the length), signed 32 bits. "TagA" hashes to 2598919."""
    units = _code_units(text)
    size = len(units)
    if size <= _CHUNK:
        return to_int(sum(map(operator.mul, units, _POWERS[_CHUNK - size :])))
    value = 0
    for start in range(0, size, _CHUNK):
        part = units[start : start + _CHUNK]
        value = value * hash_power(len(part)) + sum(map(operator.mul, part, _POWERS[_CHUNK - len(part) :]))
        value &= 0xFFFFFFFF
    return to_int(value)


_cached_hash = functools.lru_cache(maxsize=4096)(java_hash)


def tags_code(tags: str | None) -> int:
    """Return a consume queue entry's code for a message's tags: their hash, 0 without tags.

    Apache: MessageExtBrokerInner.tagsString2tagsCode. Short tags are cached, because few different ones are in use.
    """
    if not tags:
        return 0
    return _cached_hash(tags) if len(tags) <= _LONGEST_CACHED else java_hash(tags)


def parse_int(text: str | None, bits: int = 32) -> int | None:
    """Parse as Integer.parseInt (or Long.parseLong with bits=64): None where Java would throw. ASCII digits and a sign only."""
    if text is None or not _DECIMAL.match(text):
        return None
    value = int(text)
    limit = 1 << (bits - 1)
    return value if -limit <= value < limit else None


def utf8(text: str) -> bytes:
    """String.getBytes(UTF_8): a lone surrogate becomes a question mark instead of an error."""
    return text.encode("utf-8", "replace")


def from_utf8(data: bytes | bytearray | memoryview) -> str:
    """new String(bytes, UTF_8): damaged bytes become U+FFFD instead of an error."""
    return str(data, "utf-8", "replace")


def camel_case(name: str) -> str:
    """Return a Python name as Java spells it: `broker_addrs` becomes brokerAddrs."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
