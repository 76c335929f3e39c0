"""Parses lists of addresses whose requests need no signature (Apache: RemoteAddressStrategyFactory).

*                      every address
10.0.0.1               one
10.0.0.1,10.0.0.2      several, also 10.0.0.{1,2}
10.0.1-20.*            ranges of its parts; IPv6 likewise, 2001:db8::5-1f:*
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import TypeAlias

Pattern: TypeAlias = tuple[range, ...]
"""The allowed numbers of each part of an address: 4 of IPv4, 8 of IPv6."""

EVERYBODY = ("*", "*.*.*.*", "*:*:*:*:*:*:*:*")


def white_list(texts: Iterable[str | None]) -> list[Pattern]:
    """Return the patterns of such lines; blank lines match no address. Raises ValueError, which names the line."""
    return [pattern for text in texts if text and text.strip() for pattern in _patterns(text.strip())]


def _patterns(text: str) -> list[Pattern]:
    if text in EVERYBODY:
        return [(range(256),) * 4, (range(65536),) * 8]
    try:
        return [_pattern(one) for one in _parted(text)]
    except ValueError:
        raise ValueError(f"NetAddress examine Exception netAddress is {text}") from None


def _parted(text: str) -> list[str]:
    if text.endswith("}"):
        common, _, last = text[:-1].partition("{")
        return [common + part.strip() for part in last.split(",")]
    return [part.strip() for part in text.split(",")]


def _pattern(text: str) -> Pattern:
    if ":" in text:
        return _parts(_expanded(text), 16, 65536, 8)
    return _parts(text.split("."), 10, 256, 4)


def _expanded(text: str) -> list[str]:
    """Return the parts of an IPv6 address; `::` is replaced by as many zeros as are missing."""
    head, gap, tail = text.partition("::")
    if "::" in tail:
        raise ValueError("more than one gap")
    before, after = [part for part in head.split(":") if part], [part for part in tail.split(":") if part]
    return [*before, *(["0"] * (8 - len(before) - len(after)) if gap else []), *after]


def _parts(parts: list[str], base: int, limit: int, count: int) -> Pattern:
    if len(parts) != count:
        raise ValueError("wrong number of parts")
    return tuple(_numbers(part.strip(), base, limit) for part in parts)


def _numbers(text: str, base: int, limit: int) -> range:
    if text == "*":
        return range(limit)
    low, minus, high = text.partition("-")
    numbers = range(int(low, base), int(high if minus else low, base) + 1)
    if not numbers or numbers[0] < 0 or numbers[-1] >= limit:
        raise ValueError("out of range")
    return numbers


def is_listed(source_ip: str, patterns: Iterable[Pattern]) -> bool:
    """Return True if one of the patterns matches the address; False for something that is not an address."""
    try:
        address = ipaddress.ip_address(source_ip)
    except ValueError:
        return False
    separator, base = (".", 10) if address.version == 4 else (":", 16)
    parts = [int(part, base) for part in address.exploded.partition("%")[0].split(separator)]
    return any(
        len(pattern) == len(parts) and all(part in one for part, one in zip(parts, pattern, strict=True))
        for pattern in patterns
    )
