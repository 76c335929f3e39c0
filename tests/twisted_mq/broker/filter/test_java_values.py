"""Texts as Java's numbers. That Java agrees is shown in interop/test_sql_filter.py."""

from __future__ import annotations

import math

import pytest

from twisted_mq.broker.filter import java_values
from twisted_mq.broker.filter.errors import EvaluationError
from twisted_mq.broker.filter.java_values import (
    Long,
    compare,
    compare_doubles,
    equal,
    order,
    to_double,
    to_integer,
    to_long,
)

INTEGERS = {"5": 5, "+5": 5, "-5": -5, "007": 7, "2147483647": 2**31 - 1, "-2147483648": -(2**31), "٣": 3}
DOUBLES = {
    "5": 5.0,
    " 5.0\n": 5.0,
    "5.": 5.0,
    ".5": 0.5,
    "5e0": 5.0,
    "5f": 5.0,
    "5D": 5.0,
    "1e400": math.inf,
    "-Infinity": -math.inf,
    "0x1p3": 8.0,
    "0x.8P1": 1.0,
    "0x1p99999999999": math.inf,
    "-0x1p99999999999": -math.inf,
    "0x1p-99999999999": 0.0,
}


@pytest.mark.parametrize("text, value", [*INTEGERS.items(), ("0" * 5000 + "7", 7), ("-\uff17", -7)], ids=ascii)
def test_integers(text, value):
    assert (to_integer(text), to_long(text)) == (value, value)


@pytest.mark.parametrize("text", ["", "+", "-", " 5", "5 ", "5.0", "5L", "1_000", "𝟕", "abc", "9" * 5000, "--5"])
def test_texts_that_are_no_integers(text):
    for read in (to_integer, to_long):
        with pytest.raises(EvaluationError):
            read(text)


def test_ranges_of_integers():
    assert to_long("9223372036854775807") == 2**63 - 1
    for read, text in [(to_integer, "2147483648"), (to_long, "9223372036854775808"), (to_long, "-9223372036854775809")]:
        with pytest.raises(EvaluationError):
            read(text)


@pytest.mark.parametrize("text, value", DOUBLES.items())
def test_doubles(text, value):
    assert to_double(text) == value


@pytest.mark.parametrize("text", ["", ".", "e5", "1e", "inf", "nan", "0x1", "5L", "1_0", "٣", "\u00a05"])
def test_texts_that_are_no_doubles(text):
    with pytest.raises(EvaluationError):
        to_double(text)


def test_doubles_have_a_total_order():
    ordered = [-math.inf, -1.0, -0.0, 0.0, 1.0, math.inf, math.nan]
    signs = [
        [(compare_doubles(left, right) > 0) - (compare_doubles(left, right) < 0) for right in ordered]
        for left in ordered
    ]
    assert signs == [[(row > column) - (row < column) for column in range(7)] for row in range(7)]


def test_values_of_different_types():
    assert compare("5", 5) == compare(5, "5") == compare("5.0", 5.0) == compare(5, 5.0) == compare(Long(5), 5) == 0
    assert compare("true", True) == compare(True, True) == 0
    assert compare(True, 1) == compare(1, True) == -1
    assert compare("3000000000", Long(5)) == 1
    for left, right in [("3000000000", 5), (True, "true"), ("x", 5.0)]:
        with pytest.raises(EvaluationError):
            compare(left, right)


def test_missing_values_are_equal_to_each_other_only():
    assert [equal(None, None), equal("x", None), equal(None, "x")] == [True, False, None]


def test_two_texts_are_ordered_as_numbers_and_equal_as_texts():
    assert (order("10", "9.5"), equal("5", "5.0")) == (1, False)
    with pytest.raises(EvaluationError):
        order("x", "y")


def test_smallest_double_is_javas():
    assert math.ulp(0.0) == java_values.DOUBLE_MIN
