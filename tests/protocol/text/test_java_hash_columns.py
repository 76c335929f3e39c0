"""Hashing many strings at once gives what hashing one gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twisted_mq.protocol.text.java import java_hash
from twisted_mq.protocol.text.java_hash_columns import WIDEST, hashes_at, hashes_of

TEXTS = st.text(st.characters(codec="utf-8"), max_size=80)
ASCII = st.text(st.characters(max_codepoint=127), max_size=WIDEST)


def single(text: str) -> int:
    return java_hash(text) & 0xFFFFFFFF


@given(st.lists(ASCII | TEXTS, max_size=40))
def test_many_hashes_are_those_of_each(texts: list[str]) -> None:
    assert hashes_of([text.encode() for text in texts]).tolist() == [single(text) for text in texts]


@given(st.lists(ASCII, min_size=1, max_size=70))
def test_many_ascii_hashes_are_those_of_each(texts: list[str]) -> None:
    assert hashes_of([text.encode() for text in texts]).tolist() == [single(text) for text in texts]


@pytest.mark.parametrize("count", [1, 2, 1500])
@pytest.mark.parametrize("length", [1, 32, 64, 65])
def test_any_count_and_length(count: int, length: int) -> None:
    texts = [f"{number:x}".rjust(length, "~")[-length:] for number in range(count)]
    assert hashes_of([text.encode() for text in texts]).tolist() == [single(text) for text in texts]


def test_no_strings_have_no_hashes() -> None:
    assert hashes_of([]).tolist() == []


def test_strings_of_any_length_within_a_buffer() -> None:
    """Bytes before a string do not matter, and bytes that are not ASCII are named."""
    data = b"x" * 8 + "abc-d-ü".encode()
    hashes, ascii_only = hashes_at(data, np.array([11, 13, 16]), np.array([3, 1, 2]))
    assert hashes[:2].tolist() == [single("abc"), single("d")]
    assert ascii_only.tolist() == [True, True, False]
