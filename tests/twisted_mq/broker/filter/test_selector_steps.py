"""The cost of an expression grows with its length only: steps are counted, never time."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable
from re import _parser  # type: ignore[attr-defined]
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twisted_mq.broker.filter import selector_tokens
from twisted_mq.broker.filter.errors import ExpressionError
from twisted_mq.broker.filter.expression import MAX_LENGTH, _compile, compile_expression
from twisted_mq.broker.filter.selector_tokens import SelectorTokenizer

PATTERNS = [selector_tokens._WORDS, selector_tokens._LINE_COMMENT]

PIECES = [
    "-", "--", "--\n", "-- a\r\n", "/*", "*/", "/**/", "0", "00", "007L", "9", ".", "0.", ".5", "1e", "1e+", "e5", "'", "''",
    "'a'", "'a''", " ", "\t\n", "(", ")", "((", ",", "=", "<", ">", "<>", ">=", "+", "a", "$_", "NOT ", " AND ", " OR ", "a = 1",
    "a IN (", "a IN ('x')", " BETWEEN ", " BETWEEN 1 AND 2", " IS NULL", " IS NOT ", "NULL", "TRUE", " CONTAINS 'x'", "#", "é",
]  # fmt: skip

STEPS_OF_CHARACTER = 40
CALLS_OF_CHARACTER = 120
CALLS_OF_EXPRESSION = 3000

texts = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=60).map("".join),
    st.tuples(
        st.text(max_size=10), st.lists(st.sampled_from(PIECES), min_size=1, max_size=3), st.text(max_size=10)
    ).map(lambda parts: parts[0] + ("".join(parts[1]) * MAX_LENGTH)[: MAX_LENGTH - 20] + parts[2]),
    st.text(max_size=200),
)


class Stepped:
    """A pattern that counts each comparison of a character, as a matcher that never goes back makes them."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self.pattern = pattern
        self.nodes = _parser.parse(pattern.pattern, pattern.flags)
        self.steps = 0

    def match(self, text: str, position: int) -> re.Match[str] | None:
        found = self.pattern.match(text, position)
        assert self._sequence(self.nodes, text, position) == (None if found is None else found.end())
        return found

    def _sequence(self, nodes: Any, text: str, position: int | None) -> int | None:
        for kind, argument in nodes:
            if position is not None:
                position = getattr(self, f"_{str(kind).lower()}")(argument, text, position)
        return position

    def _character(self, fits: Callable[[str], bool], text: str, position: int) -> int | None:
        self.steps += 1
        return position + 1 if position < len(text) and fits(text[position]) else None

    def _literal(self, code: int, text: str, position: int) -> int | None:
        return self._character(lambda one: ord(one) == code, text, position)

    def _not_literal(self, code: int, text: str, position: int) -> int | None:
        return self._character(lambda one: ord(one) != code, text, position)

    def _in(self, members: Any, text: str, position: int) -> int | None:
        negated = str(members[0][0]) == "NEGATE"
        bounds = [
            argument if isinstance(argument, tuple) else (argument, argument) for _, argument in members[negated:]
        ]
        return self._character(
            lambda one: any(low <= ord(one) <= high for low, high in bounds) is not negated, text, position
        )

    def _subpattern(self, argument: Any, text: str, position: int) -> int | None:
        return self._sequence(argument[-1], text, position)

    def _branch(self, argument: Any, text: str, position: int) -> int | None:
        ends = (self._sequence(nodes, text, position) for nodes in argument[1])
        return next((end for end in ends if end is not None), None)

    def _assert_not(self, argument: Any, text: str, position: int) -> int | None:
        return position if self._sequence(argument[1], text, position) is None else None

    def _possessive_repeat(self, argument: Any, text: str, position: int) -> int | None:
        least, most, nodes = argument
        count, end = 0, self._sequence(nodes, text, position)
        while end is not None and count < most:
            count, position = count + 1, end
            end = self._sequence(nodes, text, position)
        return position if count >= least else None

    def _max_repeat(self, argument: Any, text: str, position: int) -> int | None:
        assert argument[:2] == (0, 1), "a pattern that goes back"
        end = self._sequence(argument[2], text, position)
        return position if end is None else end


@settings(max_examples=200, deadline=None)
@given(texts)
def test_words_take_so_many_steps_a_character(text):
    stepped = [Stepped(pattern) for pattern in PATTERNS]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(selector_tokens, "_WORDS", stepped[0])
        patched.setattr(selector_tokens, "_LINE_COMMENT", stepped[1])
        tokens = SelectorTokenizer().tokenize(text)
    assert sum(one.steps for one in stepped) <= STEPS_OF_CHARACTER * (len(text) + 1)
    for token in tokens:
        assert token.text == text[token.start : token.end + 1]


def calls(text: str) -> int:
    """Calls of functions, Python's and C's, that it takes to compile."""
    count = 0

    def note(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    compile_expression("a = 1")
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        with contextlib.suppress(ExpressionError):
            _compile(text)
    finally:
        sys.setprofile(before)
    return count


@settings(max_examples=100, deadline=None)
@given(texts)
def test_compiling_takes_so_many_calls_a_character(text):
    assert calls(text) <= CALLS_OF_EXPRESSION + CALLS_OF_CHARACTER * len(text)


@pytest.mark.parametrize("piece", PIECES, ids=ascii)
def test_twice_as_long_costs_twice_as_much(piece):
    one, two = (calls((piece * length)[:length]) for length in (2000, 4000))
    assert two <= 2.2 * one + CALLS_OF_EXPRESSION
