"""Texts of Java's types."""

from __future__ import annotations

import enum

import pytest

from twisted_mq.config.values import PARSERS, enum_parser, value_text


class Colour(enum.StrEnum):
    RED = "RED"
    BLUE = "BLUE"


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("int", "10911", 10911),
        ("int", " -1 ", -1),
        ("int", "+7", 7),
        ("int", "2147483647", 2147483647),
        ("long", "9223372036854775807", 9223372036854775807),
        ("boolean", "TRUE", True),
        ("boolean", "false ", False),
        ("double", "0.5", 0.5),
        ("string", " a b ", "a b"),
        ("string", "", ""),
    ],
)
def test_text_becomes_value(kind, text, value):
    assert PARSERS[kind](text) == value


@pytest.mark.parametrize(
    ("kind", "text", "reason"),
    [
        ("int", "ten", "a whole number is needed"),
        ("int", "", "a whole number is needed"),
        ("int", "1.5", "a whole number is needed"),
        ("int", "--1", "a whole number is needed"),
        ("int", "1_000", "a whole number is needed"),
        ("int", "２", "a whole number is needed"),
        ("int", "²", "a whole number is needed"),
        ("int", "2147483648", "a number from -2147483648 to 2147483647 is needed"),
        ("long", "9" * 5000, "a number from -9223372036854775808 to 9223372036854775807 is needed"),
        ("boolean", "yes", "true or false is needed"),
        ("double", "x", "a number is needed"),
    ],
)
def test_wrong_text_is_told_what_is_needed(kind, text, reason):
    with pytest.raises(ValueError, match=reason):
        PARSERS[kind](text)


def test_enumeration_takes_its_names():
    assert enum_parser(Colour)("RED") is Colour.RED
    with pytest.raises(ValueError, match="one of RED, BLUE is needed"):
        enum_parser(Colour)("red")


@pytest.mark.parametrize(
    ("value", "text"), [(True, "true"), (False, "false"), (7, "7"), (Colour.BLUE, "BLUE"), ("a", "a")]
)
def test_values_are_written_as_properties_have_them(value, text):
    assert value_text(value) == text
