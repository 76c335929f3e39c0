"""SQL92 expressions put together from the grammar's words: they compile and give an answer, or are refused with a place."""

from __future__ import annotations

from random import Random

from tests.fuzz.cases import cases, dice
from twisted_mq.broker.filter.errors import EvaluationError, ExpressionError
from twisted_mq.broker.filter.expression import MAX_LENGTH, compile_expression
from twisted_mq.broker.filter.selector_tokens import KEYWORDS, MARKS

NAMES = ("a", "b", "TAGS", "$x_1", "_", "nOt", "price")
NUMBERS = ("0", "7", "007", "1L", "3.", ".5e3", "1e99999", "9" * 40, "9223372036854775808", "-1", "1e-400", "0.0")
TEXTS = ("'x'", "''", "''''", "'a''b'", "'%'", "'\u00e9'", "'7'")
TESTS = ("CONTAINS", "STARTSWITH", "ENDSWITH")
BLANKS = (" ", "", "\t", "\n", "/* c */", "-- c\n", "/**/", "/*", "--", "  ")
NOISE = ("\\", ";", "\x00", "\u00e9", "*", "'", '"', "@", "||", "\ud800")
PROPERTIES = ({}, {"a": "1", "b": "x", "TAGS": "A"}, {"a": "x", "b": "1e5", "price": "", "_": "true"}, {"a": "9" * 400})
DEPTH = 6


def value(random: Random) -> str:
    return random.choice((*NAMES, *NUMBERS, *TEXTS, "TRUE", "FALSE", "NULL"))


def expression(random: Random, depth: int = DEPTH) -> str:
    """By the grammar."""
    if depth == 0:
        return value(random)
    inner = [expression(random, depth - random.randrange(1, depth + 1)) for _ in range(3)]
    texts = ", ".join(random.choices(TEXTS, k=random.choice((1, 2, 50))))
    return random.choice(
        (
            value(random),
            f"({inner[0]})",
            f"{inner[0]} {random.choice(('AND', 'OR', *(mark for mark in MARKS if mark not in '(),')))} {inner[1]}",
            f"{random.choice(('NOT', '-', '+'))} {inner[0]}",
            f"{inner[0]} {random.choice(('', 'NOT '))}BETWEEN {inner[1]} AND {inner[2]}",
            f"{inner[0]} {random.choice(('', 'NOT '))}IN ({texts})",
            f"{inner[0]} IS {random.choice(('', 'NOT '))}NULL",
            f"{inner[0]} {random.choice(('', 'NOT '))}{random.choice(TESTS)} {random.choice(TEXTS)}",
        )
    )


def words(random: Random) -> str:
    """Any words in a row, some of them many times."""
    known = (*KEYWORDS, *MARKS, *NAMES, *NUMBERS, *TEXTS, *BLANKS, *NOISE)
    chosen = (random.choice(known) * random.choice((1, 1, 1, 1, 2, 300)) for _ in range(random.randrange(20)))
    return random.choice(BLANKS).join(chosen)


def damaged(random: Random, text: str) -> str:
    """Something put in, left out, or repeated."""
    at, end = sorted(random.randrange(len(text) + 1) for _ in range(2))
    return text[:at] + random.choice((words(random), "", text[at:end] * random.choice((2, 40)))) + text[end:]


def generated(random: Random) -> str:
    text = random.choice((expression, expression, words))(random)
    return damaged(random, text) if random.random() < 0.3 else text


def test_expressions_have_an_answer_or_are_refused_with_their_place() -> None:
    compiled = refused = 0
    for case in cases(0.5):
        with dice(case) as random:
            text = generated(random)
            try:
                found = compile_expression(text)
            except ExpressionError as error:
                refused += 1
                assert 0 <= error.position <= min(len(text), MAX_LENGTH) and error.reason in str(error)
                continue
            compiled += 1
            for properties in PROPERTIES:
                try:
                    result = found.result(properties)
                except EvaluationError:
                    result = None
                assert result in (True, False, None) and found.evaluate(properties) is (result is True)
    assert compiled and refused
