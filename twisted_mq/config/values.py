"""Converts property values from text and back; the types are Java's."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import TypeAlias

Value: TypeAlias = bool | int | float | str | None
"""The types of a property; enumerations are texts."""

_BOOLEANS = {"true": True, "false": False}


def _integer(bits: int) -> Callable[[str], int]:
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1

    def parse(text: str) -> int:
        digits = text.strip()
        if not digits.lstrip("+-").isascii() or not digits[digits[:1] in ("+", "-") :].isdigit():
            raise ValueError("must be a whole number")
        number = int(digits) if len(digits) < 32 else high + 1
        if not low <= number <= high:
            raise ValueError(f"must be a number from {low} to {high}")
        return number

    return parse


def _boolean(text: str) -> bool:
    try:
        return _BOOLEANS[text.strip().lower()]
    except KeyError:
        raise ValueError("must be true or false") from None


def _double(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError("must be a number") from None


PARSERS: dict[str, Callable[[str], Value]] = {
    "int": _integer(32),
    "long": _integer(64),
    "boolean": _boolean,
    "double": _double,
    "string": str.strip,
}
"""Java type -> the parser of its text, which raises ValueError with what is needed."""


def hours(text: str) -> str:
    """Check a text as "04;16", hours of the day. Raises ValueError for others."""
    parts = [one.strip() for one in text.split(";") if one.strip()]
    if not parts or not all(one.isascii() and one.isdigit() and int(one) < 24 for one in parts):
        raise ValueError("must be hours from 0 to 23, separated by semicolons")
    return text.strip()


def enum_parser(kind: type[enum.StrEnum]) -> Callable[[str], enum.StrEnum]:
    """Return a parser for the names of an enumeration."""

    def parse(text: str) -> enum.StrEnum:
        try:
            return kind(text.strip())
        except ValueError:
            raise ValueError(f"must be one of {', '.join(kind)}") from None

    return parse


def value_text(value: object) -> str:
    """Return a value as a properties file has it: true, 10911, SYNC_FLUSH."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
