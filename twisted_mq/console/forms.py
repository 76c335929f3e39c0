"""Formats values for pages, and makes addresses of pages. Nothing here trusts the values."""

from __future__ import annotations

import datetime
import unicodedata
import urllib.parse

from twisted_mq.protocol.errors import BrokerError

UNKNOWN = "—"
"""Shown for unknown values, which are never shown as 0."""

_HIDING = {"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"}
"""Unicode's categories of characters without a shape, or that change the direction of the text after them."""
_SHOWN = {"\n", "\t"}

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def visible(text: str) -> str:
    """Return text in which nothing is hidden: control characters and direction marks are shown as \\u202e."""
    if text.isprintable():
        return text
    return "".join(map(_visible, text))


def _visible(letter: str) -> str:
    if letter in _SHOWN or unicodedata.category(letter) not in _HIDING:
        return letter
    return f"\\u{ord(letter):04x}" if ord(letter) < 0x10000 else f"\\U{ord(letter):08x}"


def link(path: str, **fields: object) -> str:
    """Return the address of a page; fields that are None are left out."""
    given = {name: str(value) for name, value in fields.items() if value is not None}
    return f"{path}?{urllib.parse.urlencode(given, errors='replace')}" if given else path


def count(value: float | None) -> str:
    """Return a number as 1 234 567, with narrow spaces; a rate with one decimal."""
    if value is None:
        return UNKNOWN
    text = f"{value:,d}" if isinstance(value, int) else f"{value:,.1f}"
    return text.replace(",", "\u2009")


def size(value: int | None) -> str:
    """Return a size as 1.5 GiB."""
    if value is None:
        return UNKNOWN
    number, unit = float(value), 0
    while abs(number) >= 1024 and unit < len(_UNITS) - 1:
        number, unit = number / 1024, unit + 1
    return f"{number:.0f} {_UNITS[unit]}" if unit == 0 else f"{number:.1f} {_UNITS[unit]}"


def when(timestamp_ms: int | None) -> str:
    """Return a time as 2026-11-22 08:00:01.250 in UTC; unknown for 0 and less."""
    moment = _moment(timestamp_ms)
    return UNKNOWN if moment is None else f"{moment:%Y-%m-%d %H:%M:%S}.{(timestamp_ms or 0) % 1000:03d}"


def machine_time(timestamp_ms: int | None) -> str:
    """Return a time for the attribute of <time>; empty if it is unknown."""
    moment = _moment(timestamp_ms)
    return "" if moment is None else f"{moment:%Y-%m-%dT%H:%M:%S}Z"


def _moment(timestamp_ms: int | None) -> datetime.datetime | None:
    if timestamp_ms is None or timestamp_ms <= 0:
        return None
    try:
        return datetime.datetime.fromtimestamp(timestamp_ms // 1000, datetime.UTC)
    except (OverflowError, ValueError, OSError):  # a time that a hostile producer invented
        return None


def span(seconds: float | None) -> str:
    """Return a duration as 3 d 4 h, 12 min, 40 s."""
    if seconds is None:
        return UNKNOWN
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 86400} d {whole % 86400 // 3600} h"


def said(error: Exception) -> str:
    """Return an error in one line; Apache's remarks have links to its documentation in further ones."""
    text = error.remark if isinstance(error, BrokerError) else str(error)
    return next(iter(text.splitlines()), "") or type(error).__name__


def percent(ratio: float | None) -> str:
    return UNKNOWN if ratio is None else f"{ratio * 100:.0f} %"
