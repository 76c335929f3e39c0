"""Java's rules: values taken from a Java runtime."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twisted_mq.protocol.text.java import from_utf8, java_hash, parse_int, tags_code, to_int, utf8

HASHES = {
    "": 0,
    "a": 97,
    "T0": 2652,
    "TagA": 2598919,
    "polygenelubricants": -2147483648,
    "CapOrder#ok0": None,
    "消息": 893927,
    "😀": 1772899,
}


def plain_hash(text: str) -> int:
    """The definition, one UTF-16 unit after the other."""
    data = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for high, low in zip(data[::2], data[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


@pytest.mark.parametrize(("text", "value"), [(t, v) for t, v in HASHES.items() if v is not None])
def test_hash_is_java_s(text: str, value: int) -> None:
    assert java_hash(text) == value


@given(st.text(alphabet=st.characters(), max_size=200))
def test_hash_equals_its_definition_for_any_text(text: str) -> None:
    assert java_hash(text) == plain_hash(text)


@given(st.text(alphabet=st.characters(min_codepoint=1, max_codepoint=127), min_size=60, max_size=400))
def test_hash_of_long_texts_equals_its_definition(text: str) -> None:
    assert java_hash(text) == plain_hash(text)


def test_absent_and_empty_tags_have_code_zero() -> None:
    assert [tags_code(None), tags_code(""), tags_code("TagA"), tags_code("x" * 500)] == [
        0,
        0,
        2598919,
        plain_hash("x" * 500),
    ]


@pytest.mark.parametrize(
    ("text", "bits", "value"),
    [
        ("12", 32, 12),
        ("+5", 32, 5),
        ("-2147483648", 32, -2147483648),
        ("2147483648", 32, None),
        ("2147483648", 64, 2147483648),
        ("9223372036854775808", 64, None),
        ("", 32, None),
        (None, 32, None),
        (" 1", 32, None),
        ("1_0", 32, None),
        ("1\n", 32, None),
        ("٣", 32, None),
        ("9" * 5000, 64, None),
    ],
)
def test_integers_are_read_as_java_reads_them(text: str | None, bits: int, value: int | None) -> None:
    assert parse_int(text, bits) == value


def test_to_int_keeps_the_low_32_bits_with_their_sign() -> None:
    assert [to_int(0xFFFFFFFF), to_int(0x80000000), to_int(1 << 40), to_int(-1)] == [-1, -2147483648, 0, -1]


def test_lone_surrogates_and_damaged_bytes_are_replaced_as_in_java() -> None:
    assert utf8("a\ud800b") == b"a?b"
    assert from_utf8(b"a\xffb") == "a�b"
