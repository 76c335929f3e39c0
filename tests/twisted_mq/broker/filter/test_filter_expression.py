"""Expressions against answers recorded from Apache's classes, their faults, limits and cost."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from twisted_mq.broker.filter import expression
from twisted_mq.broker.filter.errors import EvaluationError, ExpressionError
from twisted_mq.broker.filter.expression import CACHED_EXPRESSIONS, MAX_LENGTH, compile_expression
from twisted_mq.broker.filter.expression import _compile as once

RECORDED = json.loads((Path(__file__).parent / "apache_answers.json").read_text())
"""Made by interop/peers/java/Filters.java, and compared with it again by interop/test_sql_filter.py."""

WRITTEN = {True: "true", False: "false", None: "null"}


def one_answer(expression, message):
    try:
        return WRITTEN[expression.result(message)]
    except EvaluationError:
        return "error"


def our_answer(case):
    try:
        expression = compile_expression(case["expression"])
    except ExpressionError:
        return None
    return [one_answer(expression, message) for message in case["messages"]]


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: ascii(case["expression"]))
def test_expression_has_the_answer_that_apaches_classes_gave(case):
    assert our_answer(case) == case["answer"]


def test_only_true_matches():
    messages = [{"a": "6"}, {"a": "5"}, {}, {"a": "6.0"}]
    expression = compile_expression("a > 5")
    assert [expression.evaluate(message) for message in messages] == [True, False, False, False]


@pytest.mark.parametrize(
    "text, position, reason",
    [
        ("a = ", 4, "expected a value or (, found the end"),
        ("", 0, "expected a value or (, found the end"),
        ("a = 1 AND > 5", 10, "expected a value or (, found >"),
        ("(a = 1", 6, "expected an operator or ), found the end"),
        ("a = 1 #", 6, "expected an operator or the end, found #"),
        ("a IN (1)", 6, "expected a text in single quotes, found 1"),
        ("a IN ('x' 'y')", 10, "expected , or ), found 'y'"),
        ("a IS 5", 5, "expected NULL or NOT NULL, found 5"),
        ("a NOT 5", 6, "expected BETWEEN, IN, CONTAINS, STARTSWITH or ENDSWITH after NOT, found 5"),
        ("a BETWEEN 1 OR 2", 12, "expected AND, found OR"),
        ("a BETWEEN 9 AND 1", 10, "BETWEEN needs its lower bound first: 9 is greater than 1"),
        ("a = NULL", 4, "NULL cannot be compared; use IS NULL"),
        ("TRUE = 5", 5, "TRUE cannot be compared with 5"),
        ("a > 'x'", 4, "'x' cannot be compared by <, <=, > or >="),
        ("a > 1 > 2", 2, "a test cannot be compared by <, <=, > or >="),
        ("'x' OR a", 0, "'x' is neither true nor false"),
        ("a > 1 AND -b", 10, "a value with a sign is neither true nor false"),
        ("5 IN ('5')", 2, "IN needs a property on its left, not 5"),
        ("a = 9223372036854775808", 4, "9223372036854775808 is greater than 9223372036854775807"),
        ("a = 0.0", 4, "0.0 is outside of the numbers from 4.9E-324 to 1.797E308"),
    ],
)
def test_a_refused_expression_names_place_and_reason(text, position, reason):
    with pytest.raises(ExpressionError) as raised:
        compile_expression(text)
    assert (raised.value.text, raised.value.position, raised.value.reason) == (text, position, reason)


def test_the_message_points_at_the_place():
    with pytest.raises(ExpressionError) as raised:
        compile_expression("a = 1\n\tAND b >= 'x' OR c")
    assert str(raised.value) == (
        "'x' cannot be compared by <, <=, > or >= at line 2, column 11\n\tAND b >= 'x' OR c\n\t         ^"
    )


def test_the_message_shows_only_what_is_near():
    text = "a = 1 AND " * 100 + "= " + "AND b = 2 " * 100
    with pytest.raises(ExpressionError) as raised:
        compile_expression(text)
    said, line, caret = str(raised.value).split("\n")
    assert said == "expected a value or (, found = at line 1, column 1001"
    assert (line, caret) == (text[940:1060].rstrip(), " " * 60 + "^")


@pytest.mark.parametrize(
    "text, found",
    [
        ("(" * 99 + "a IS NULL" + ")" * 99, True),
        ("NOT " * 98 + "TRUE", True),
        ("a" + " IS NULL" * 99, False),
        (" OR ".join(["a = 1"] * 800 + ["a IS NULL"]), True),
        (" AND ".join(["a IS NULL"] * 580), True),
    ],
    ids=["brackets", "NOT", "tests after each other", "OR", "AND"],
)
def test_long_and_deep_expressions_compile_up_to_the_limits(text, found):
    assert compile_expression(text).evaluate({}) is found


@pytest.mark.parametrize(
    "text",
    [
        "(" * 100 + "a" + ")" * 100,
        "NOT " * 2000 + "a",
        "-" * 5000 + "5 = a",
        "+" * 5000 + "5 = a",
        "a" + " IS NULL" * 1000,
    ],
    ids=["brackets", "NOT", "minus", "plus", "tests after each other"],
)
def test_deeper_expressions_are_refused(text):
    with pytest.raises(ExpressionError, match="more than 100 "):
        compile_expression(text)


def test_minus_before_nested_tests_costs_no_more_than_its_length():
    """Apache evaluates the value of BETWEEN twice at each level."""
    text = "a"
    for _ in range(40):
        text = f"-({text} BETWEEN 1 AND 2)"
    assert compile_expression(f"{text} IS NULL").evaluate({"a": "1"}) is True


def test_too_long_an_expression_is_refused_before_it_is_read():
    with pytest.raises(ExpressionError, match=f"more than {MAX_LENGTH}"):
        compile_expression("a" * (MAX_LENGTH + 1))


def test_equal_texts_are_compiled_once():
    assert compile_expression("once = 1") is compile_expression("once = 1")


def test_refusals_are_remembered_and_all_that_is_remembered_is_bounded(monkeypatch):
    compiled = []
    monkeypatch.setattr(expression, "_compile", lambda text: compiled.append(text) or once(text))
    for _ in range(3):
        with pytest.raises(ExpressionError, match="found the end") as raised:
            compile_expression("refused = ")
        assert (raised.value.text, raised.value.position) == ("refused = ", 10)
    assert compiled == ["refused = "]
    for number in range(CACHED_EXPRESSIONS):
        compile_expression(f"other = {number}")
    assert not expression.is_known("refused = ")
    assert len(expression._known) == CACHED_EXPRESSIONS


@pytest.mark.parametrize("name", ["__class__", "__import__", "get", "t0", "Long"])
def test_names_and_texts_reach_the_code_as_texts_only(name):
    text = f"{name} = '''); __import__(''os'')' AND {name} IS NOT NULL"
    assert compile_expression(text).evaluate({name: "'); __import__('os')"}) is True


def test_the_parser_is_loaded_with_the_first_expression_only():
    program = (
        "import sys; from twisted_mq.broker.filter import message_filter, consumer_filter_manager as m;"
        "from twisted_mq.broker.filter.expression import compile_expression;"
        "before = 'sqlglot' in sys.modules; compile_expression('a = 1'); print(before, 'sqlglot' in sys.modules)"
    )
    root = Path(__file__).parents[4]
    printed = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True)
    assert printed.stdout == "False True\n"
