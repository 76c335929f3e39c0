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
        ("int", "ten", "must be a whole number"),
        ("int", "", "must be a whole number"),
        ("int", "1.5", "must be a whole number"),
        ("int", "--1", "must be a whole number"),
        ("int", "1_000", "must be a whole number"),
        ("int", "２", "must be a whole number"),
        ("int", "²", "must be a whole number"),
        ("int", "2147483648", "must be a number from -2147483648 to 2147483647"),
        ("long", "9" * 5000, "must be a number from -9223372036854775808 to 9223372036854775807"),
        ("boolean", "yes", "must be true or false"),
        ("double", "x", "must be a number"),
    ],
)
def test_wrong_text_is_told_what_is_needed(kind, text, reason):
    with pytest.raises(ValueError, match=reason):
        PARSERS[kind](text)


def test_enumeration_takes_its_names():
    assert enum_parser(Colour)("RED") is Colour.RED
    with pytest.raises(ValueError, match="must be one of RED, BLUE"):
        enum_parser(Colour)("red")


@pytest.mark.parametrize(
    ("value", "text"), [(True, "true"), (False, "false"), (7, "7"), (Colour.BLUE, "BLUE"), ("a", "a")]
)
def test_values_are_written_as_properties_have_them(value, text):
    assert value_text(value) == text
