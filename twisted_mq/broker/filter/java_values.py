"""Compares values as Java does (Apache: ComparisonExpression, UnaryExpression of rocketmq-filter).

A property is text or missing (None). Constants are text, bool, None, `int` (Java's Integer), `Long` (Java's Long) and
`float` (Double). The number type of a constant matters: text is parsed as the type it is compared with, so
"3000000000" cannot be compared with 5, and "5.0" equals 5.0 but cannot be compared with 5.
"""

from __future__ import annotations

import math
import re
import unicodedata
from typing import TypeAlias

from twisted_mq.broker.filter.errors import EvaluationError
from twisted_mq.protocol.text.java import BLANKS

INTEGER_MIN, INTEGER_MAX = -(2**31), 2**31 - 1
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1
DOUBLE_MIN = 5e-324
"""Double.MIN_VALUE: the smallest number greater than 0."""

_SHORT_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_DECIMAL = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?")
_HEXADECIMAL = re.compile(
    r"([+-]?0[xX](?:[0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP])([+-]?[0-9]+)[fFdD]?"
)  # fmt: skip
_NOT_FINITE = re.compile(r"[+-]?(?:NaN|Infinity)")
_LARGEST_EXPONENT = 100_000
"""A number in a property with a larger exponent is 0 or infinite."""

Value: TypeAlias = str | float
"""A property's text, or a boolean or number that it is compared with."""


class Long(int):
    """A constant outside Java's int range, or the negative of one."""

    __slots__ = ()


def to_integer(text: str) -> int:
    """Parse as Integer.valueOf: an optional sign and digits of any script, no blanks. Raises EvaluationError."""
    value = _whole(text)
    if INTEGER_MIN <= value <= INTEGER_MAX:
        return value
    raise _no_number(text, "an int")


def to_long(text: str) -> Long:
    """Parse as Long.valueOf. Raises EvaluationError."""
    value = _whole(text)
    if LONG_MIN <= value <= LONG_MAX:
        return Long(value)
    raise _no_number(text, "a long")


def _whole(text: str) -> int:
    if _SHORT_INTEGER.fullmatch(text):
        return int(text)
    digits = text[1:] if text[:1] in ("+", "-") else text
    values = [unicodedata.decimal(one, -1) if one <= "\uffff" else -1 for one in digits]
    significant = "".join(map(str, values)).lstrip("0")
    if not values or -1 in values or len(significant) > 19:
        raise _no_number(text, "an integer in range")
    value = int(significant or "0")
    return -value if text[0] == "-" else value


def to_double(text: str) -> float:
    """Parse as Double.valueOf: surrounding blanks, a type suffix, NaN, Infinity and hexadecimal are allowed. Raises
    EvaluationError.
    """
    trimmed = text.strip(BLANKS)
    decimal = _DECIMAL.fullmatch(trimmed)
    if decimal:
        return float(decimal[1])
    if _NOT_FINITE.fullmatch(trimmed):
        return float(trimmed)
    hexadecimal = _HEXADECIMAL.fullmatch(trimmed)
    if hexadecimal:
        return _from_hexadecimal(hexadecimal[1], hexadecimal[2])
    raise _no_number(text, "a double")


def _from_hexadecimal(mantissa: str, exponent: str) -> float:
    digits = exponent.lstrip("+-").lstrip("0")
    size = _LARGEST_EXPONENT if len(digits) > 5 else int(digits or "0")
    try:
        return float.fromhex(f"{mantissa}{'-' if exponent[0] == '-' else ''}{size}")
    except OverflowError:
        return -math.inf if mantissa[0] == "-" else math.inf


def to_boolean(text: str) -> bool:
    """Parse as Boolean.valueOf: "true" in any case is True, everything else False."""
    return text.lower() == "true"


def compare_doubles(left: float, right: float) -> int:
    """Compare as Double.compareTo: -0.0 is less than 0.0; NaN equals itself and is greater than all others."""
    if left < right:
        return -1
    if left > right:
        return 1
    if left == right and left != 0:
        return 0
    return _total_order(left) - _total_order(right)


def _total_order(value: float) -> int:
    if math.isnan(value):
        return 2
    return 0 if math.copysign(1.0, value) > 0 or value != 0 else -1


def compare(left: Value, right: Value) -> int:
    """Return a negative number, 0 or a positive one for two values, neither None (Apache: ComparisonExpression.__compare).

    Values that cannot be compared count as less. Raises EvaluationError for text that is not of the other's type, and
    for a boolean on the left of text, which fails in Java with a ClassCastException.
    """
    if isinstance(left, str):
        if isinstance(right, str):
            return (left > right) - (left < right)
        return _compare_numbers(like(right, left), right)
    if isinstance(right, str):
        if isinstance(left, bool):
            raise EvaluationError(f"a boolean on the left of the text {right!r} cannot be compared")
        return _compare_numbers(left, like(left, right))
    return _compare_numbers(left, right)


def _compare_numbers(left: float, right: float) -> int:
    """Compare numbers; booleans are numbers here, and are only compared with booleans."""
    if isinstance(left, bool) or isinstance(right, bool):
        return int(left) - int(right) if isinstance(left, bool) and isinstance(right, bool) else -1
    if isinstance(left, float) or isinstance(right, float):
        return compare_doubles(float(left), float(right))
    return int(left > right) - int(left < right)


def like(sample: float, text: str) -> float:
    """Parse `text` as the type of `sample`, a boolean or a number. Raises EvaluationError."""
    if isinstance(sample, bool):
        return to_boolean(text)
    if isinstance(sample, float):
        return to_double(text)
    return to_long(text) if isinstance(sample, Long) else to_integer(text)


def equal(left: Value | None, right: Value | None) -> bool | None:
    """Evaluate `left = right`: None if only the left is missing, False if only the right is, True if both are."""
    if left is None:
        return True if right is None else None
    return right is not None and compare(left, right) == 0


def order(left: Value, right: Value) -> int:
    """Compare for <, <=, > and >=, where two texts count as numbers. Raises EvaluationError."""
    if isinstance(left, str) and isinstance(right, str):
        return compare_doubles(to_double(left), to_double(right))
    return compare(left, right)


def _no_number(text: str, what: str) -> EvaluationError:
    return EvaluationError(f"{text[:40]!r} is not {what}")
