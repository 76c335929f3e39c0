"""Parsers of option values, which Spark passes as text. Each function raises WrongOption with the option's name."""

from __future__ import annotations

import datetime
import re

from twisted_mq.spark.errors import WrongOption

_SIZE = re.compile(r"([0-9]{1,15})([kmg]?)\Z", re.ASCII)
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_SPAN = re.compile(r"([0-9]{1,12})(ms|s|m|h|)\Z", re.ASCII)
_SPANS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "": 1.0}
_TRUTH = {"true": True, "false": False}
_NUMBER = re.compile(r"[0-9]{1,18}\Z", re.ASCII)


def names(name: str, value: str) -> tuple[str, ...]:
    """Parse words separated by commas."""
    found = tuple(part.strip() for part in value.split(",") if part.strip())
    if not found:
        raise WrongOption(name, value, "names are needed, separated by commas")
    return found


def numbers(name: str, value: str) -> tuple[int, ...]:
    """Parse whole numbers separated by commas."""
    return tuple(number(name, part) for part in names(name, value))


def number(name: str, value: str) -> int:
    """Parse a whole number of at least 0."""
    if not _NUMBER.match(value.strip()):
        raise WrongOption(name, value, "a whole number is needed")
    return int(value)


def size_bytes(name: str, value: str) -> int:
    """Parse a number of bytes: 67108864, 64m."""
    match = _SIZE.match(value.strip().lower())
    if match is None:
        raise WrongOption(name, value, "a number of bytes is needed, such as 67108864 or 64m")
    return int(match[1]) * _UNITS[match[2]]


def seconds(name: str, value: str) -> float:
    """Parse a time span to seconds: 500ms, 30s, 15m, 1h; a plain number is in seconds."""
    match = _SPAN.match(value.strip().lower())
    if match is None:
        raise WrongOption(name, value, "a time span is needed, such as 30s, 15m or 1h")
    return int(match[1]) * _SPANS[match[2]]


def truth(name: str, value: str) -> bool:
    """Parse true or false."""
    if value.strip().lower() not in _TRUTH:
        raise WrongOption(name, value, "true or false is needed")
    return _TRUTH[value.strip().lower()]


def time_ms(name: str, value: str) -> int:
    """Parse a time in ms since 1970, or in ISO 8601; UTC without a zone."""
    if _NUMBER.match(value.strip()):
        return int(value)
    try:
        time = datetime.datetime.fromisoformat(value.strip())
    except ValueError as error:
        raise WrongOption(name, value, "ms since 1970 are needed, or a time such as 2026-11-20T23:18:54Z") from error
    if time.tzinfo is None:
        time = time.replace(tzinfo=datetime.UTC)
    return int(time.timestamp() * 1000)


def pattern(name: str, value: str) -> re.Pattern[str]:
    """Parse a Python regular expression."""
    try:
        return re.compile(value)
    except re.error as error:
        raise WrongOption(name, value, f"is not a regular expression: {error}") from error
