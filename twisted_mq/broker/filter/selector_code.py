"""Compiles the tree of an expression to one Python function of a message's properties.

It makes the checks that Apache's classes make in their constructors (operands of comparisons, order of BETWEEN, range of
numbers). Then it makes a Python expression over `get`, the properties' own get, with True, False and None as truth
values:

    a > 5 AND b = 'x'
    lambda get: False if (t2 := None if (t0 := get('a')) is None else to_integer(t0) > 5) is False
        or (t3 := None if (t1 := get('b')) is None else t1 == 'x') is False
        else None if t2 is None or t3 is None else True

Both sides are evaluated unless the first decides: as in Apache, an error on the right of a NULL shows. A node's code is
in one pair of brackets wherever it is part of another's, and Python allows 200 of them: hence MAX_NESTING. Names and
texts enter the code only through `repr`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

from sqlglot import exp

from twisted_mq.broker.filter import java_values
from twisted_mq.broker.filter.errors import ExpressionError
from twisted_mq.broker.filter.java_values import Long
from twisted_mq.broker.filter.selector_parser import NEGATED, START

MAX_NESTING = 100
"""Levels of tests and signs; tests joined by AND or by OR on one level count once."""

Result = bool | None
Function = Callable[[Callable[[str], str | None]], Result]

_HELPERS = ("compare_doubles", "equal", "order", "to_boolean", "to_double", "to_integer", "to_long", "Long")
_PREDICATES = (
    *(exp.Or, exp.And, exp.Not, exp.Boolean, exp.Null, exp.Is, exp.Between, exp.In),
    *(exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Contains, exp.StartsWith, exp.EndsWith),
)
"""Apache's BooleanExpression."""

_ORDERS: dict[type[exp.Expr], str] = {exp.GT: ">", exp.GTE: ">=", exp.LT: "<", exp.LTE: "<="}
_MIRRORED = {">": "<", ">=": "<=", "<": ">", "<=": ">=", "==": "=="}
_TEXT_TESTS: dict[type[exp.Expr], str] = {
    exp.Contains: "{a} in {t}",
    exp.StartsWith: "{t}.startswith({a})",
    exp.EndsWith: "{t}.endswith({a})",
}


class _Number:
    """A number known when compiling: a literal, or one with minus signs."""

    def __init__(self, value: int | float) -> None:
        self.value = value
        if isinstance(value, float):
            self.comparison = "compare_doubles(to_double({t}), {c}) {op} 0"
        else:
            reader = "to_long" if isinstance(value, Long) else "to_integer"
            self.comparison = reader + "({t}) {op} {c}"

    def source(self) -> str:
        """Return the number as Python writes it, with its Java type."""
        return f"Long({int(self.value)})" if isinstance(self.value, Long) else f"({self.value!r})"


class _Maker:
    """Makes the code of one expression. `depth` counts levels of the tree against MAX_NESTING."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._variables = map("t{}".format, itertools.count())

    def function(self, tree: exp.Expr) -> Function:
        code = compile(f"lambda get: {self.truth(tree, 0)}", "<SQL92>", "eval")
        names: dict[str, object] = {name: getattr(java_values, name) for name in _HELPERS}
        made: Function = eval(code, names | {"__builtins__": {}})
        return made

    def truth(self, node: exp.Expr, depth: int) -> str:
        """Return the code of a node as a truth value (Apache: asBooleanExpression): a property alone is false, or unknown."""
        if isinstance(node, exp.Identifier):
            return f"None if ({self.value(node, depth)}) is None else False"
        if not isinstance(node, _PREDICATES):
            raise self.fault(node, f"{_shown(node)} is neither true nor false")
        return self.value(node, depth)

    def value(self, node: exp.Expr, depth: int) -> str:
        """Return the code of a node's value; a property's value is its text."""
        if depth > MAX_NESTING:
            raise self.fault(node, f"more than {MAX_NESTING} tests within each other")
        if isinstance(node, exp.Identifier):
            return f"get({node.this!r})"
        if isinstance(node, exp.Boolean) or (isinstance(node, exp.Literal) and node.is_string):
            return repr(node.this)
        if isinstance(node, exp.Null):
            return "None"
        number = self.number(node)
        if number is not None:
            return number.source()
        return _RULES[type(node)](self, node, depth + 1)

    def number(self, node: exp.Expr) -> _Number | None:
        """Return the number of a node that is always one; None for any other node. Raises ExpressionError if out of range."""
        negative = False
        inner = node
        while isinstance(inner, exp.Neg):
            negative = not negative
            inner = inner.this
        if not isinstance(inner, exp.Literal) or inner.is_string:
            return None
        value = self._literal(inner)
        if negative:
            value = Long(-value) if isinstance(value, Long) else -value
        return _Number(value)

    def _literal(self, node: exp.Expr) -> int | float:
        """Return a literal's number (Apache: ConstantExpression.createFromDecimal and createFloat, which refuses 0.0)."""
        word = node.this
        if not word.rstrip("lL").isdigit():
            double = float(word)
            if java_values.DOUBLE_MIN <= double < float("inf"):
                return double
            raise self.fault(node, f"{word[:40]} is outside of the numbers from 4.9E-324 to 1.797E308")
        digits = word.rstrip("lL")
        if len(digits) > 19 or int(digits) > java_values.LONG_MAX:
            raise self.fault(node, f"{word[:40]} is greater than {java_values.LONG_MAX}")
        value = int(digits)
        return value if value <= java_values.INTEGER_MAX else Long(value)

    def fault(self, node: exp.Expr, reason: str) -> ExpressionError:
        return ExpressionError(self._text, _start(node), reason)

    def negated(self, value: str) -> str:
        name = next(self._variables)
        return f"None if ({name} := {value}) is None else not {name}"

    def chain(self, node: exp.Expr, depth: int, decisive: bool) -> str:
        """Return the code of AND (False decides) or OR (True decides) over all operands of one level."""
        operands = {next(self._variables): self.truth(one, depth) for one in _operands(node)}
        decided = " or ".join(f"({name} := {value}) is {decisive}" for name, value in operands.items())
        unknown = " or ".join(f"{name} is None" for name in operands)
        return f"{decisive} if {decided} else None if {unknown} else {not decisive}"

    def negate(self, node: exp.Expr, depth: int) -> str:
        """Return the code of a minus before something that is not a number: unknown, after it was evaluated."""
        return f"None if ({self.value(node.this, depth)}) else None"

    def is_null(self, node: exp.Expr, depth: int) -> str:
        negated = bool(node.meta.get(NEGATED))
        value = self.value(node.this, depth)
        if isinstance(node.this, exp.Literal | exp.Boolean) or self.number(node.this) is not None:
            return repr(negated)
        return f"({value}) {'is not' if negated else 'is'} None"

    def equality(self, node: exp.Expr, depth: int) -> str:
        """Return the code of = and <> (Apache: createEqual). <> is the negation, so a text that is not a number matches
        neither.
        """
        left, right = node.this, node.expression
        for operand in (left, right):
            if isinstance(operand, exp.Null):
                raise self.fault(operand, "NULL cannot be compared; use IS NULL")
        if isinstance(left, exp.Boolean) and isinstance(right, exp.Literal):
            raise self.fault(node, f"{_shown(left)} cannot be compared with {_shown(right)}")
        made = self._property_equality(left, right)
        if made is None:
            made = f"equal({self.value(left, depth)}, {self.value(right, depth)})"
        return self.negated(made) if isinstance(node, exp.NEQ) else made

    def _property_equality(self, left: exp.Expr, right: exp.Expr) -> str | None:
        """Return the common comparison of a property with a constant, without a call; None for any other."""
        if not isinstance(left, exp.Identifier):
            return None
        name = next(self._variables)
        if isinstance(right, exp.Literal) and right.is_string:
            test = f"{name} == {right.this!r}"
        elif isinstance(right, exp.Boolean):
            test = f"to_boolean({name}) is {right.this}"
        else:
            number = self.number(right)
            if number is None:
                return None
            test = number.comparison.format(t=name, op="==", c=repr(number.value))
        return f"None if ({name} := get({left.this!r})) is None else {test}"

    def ordering(self, node: exp.Expr, depth: int) -> str:
        return self._order(node.this, node.expression, _ORDERS[type(node)], depth)

    def _order(self, left: exp.Expr, right: exp.Expr, mark: str, depth: int) -> str:
        """Return the code of <, <=, > or >= (Apache: createGreaterThan and similar): numbers and properties only."""
        self._check_ordered(left)
        self._check_ordered(right)
        numbers = self.number(left), self.number(right)
        if isinstance(left, exp.Identifier) and numbers[1] is not None:
            return self._property_order(left, numbers[1], mark)
        if isinstance(right, exp.Identifier) and numbers[0] is not None:
            return self._property_order(right, numbers[0], _MIRRORED[mark])
        one, other = next(self._variables), next(self._variables)
        operands = f"({one} := {self.value(left, depth)}) is None or ({other} := {self.value(right, depth)}) is None"
        return f"None if {operands} else order({one}, {other}) {mark} 0"

    def _check_ordered(self, operand: exp.Expr) -> None:
        if isinstance(operand, _PREDICATES) or (isinstance(operand, exp.Literal) and operand.is_string):
            raise self.fault(operand, f"{_shown(operand)} cannot be compared by <, <=, > or >=")

    def _property_order(self, left: exp.Expr, number: _Number, mark: str) -> str:
        name = next(self._variables)
        test = number.comparison.format(t=name, op=mark, c=repr(number.value))
        return f"None if ({name} := get({left.this!r})) is None else {test}"

    def between(self, node: exp.Expr, depth: int) -> str:
        """Return the code of BETWEEN (>= AND <=) or NOT BETWEEN (< OR >). Only the first checks the constants' order, as
        in Apache.
        """
        this, low, high = node.this, node.args["low"], node.args["high"]
        negated = bool(node.meta.get(NEGATED))
        if not negated and isinstance(low, exp.Literal) and isinstance(high, exp.Literal):
            bounds = self.number(low), self.number(high)
            if bounds[0] and bounds[1] and java_values.compare(bounds[1].value, bounds[0].value) < 0:
                raise self.fault(
                    low, f"BETWEEN needs its lower bound first: {low.this[:40]} is greater than {high.this[:40]}"
                )
        if isinstance(this, exp.Neg) and self.number(this) is None:
            return self._unknown_between(this, low, high, depth)
        below = self._order(this, low, "<" if negated else ">=", depth)
        above = self._order(this, high, ">" if negated else "<=", depth)
        one, other = next(self._variables), next(self._variables)
        decided = f"({one} := {below}) is {negated} or ({other} := {above}) is {negated}"
        return f"{negated} if {decided} else None if {one} is None or {other} is None else {not negated}"

    def _unknown_between(self, this: exp.Expr, low: exp.Expr, high: exp.Expr, depth: int) -> str:
        """Return the code for a minus before something that is not a number: the result is unknown, and the bounds are
        still checked.
        """
        for operand in (low, high):
            self._check_ordered(operand)
            self.value(operand, depth)
        return self.value(this, depth)

    def membership(self, node: exp.Expr, depth: int) -> str:
        if not isinstance(node.this, exp.Identifier):
            raise self.fault(node, f"IN needs a property on its left, not {_shown(node.this)}")
        texts = frozenset(one.this for one in node.expressions)
        name = next(self._variables)
        test = "not in" if node.meta.get(NEGATED) else "in"
        members = ", ".join(map(repr, sorted(texts)))
        return f"None if ({name} := get({node.this.this!r})) is None else {name} {test} {{{members}}}"

    def text_test(self, node: exp.Expr, depth: int) -> str:
        """Return the code of CONTAINS, STARTSWITH, ENDSWITH and their NOT forms: never unknown, false if the text is missing."""
        name = next(self._variables)
        searched = node.expression.this
        value = self.value(node.this, depth)
        if not searched:  # Apache does not evaluate the left side
            return "False"
        if isinstance(node.this, _PREDICATES) or self.number(node.this) is not None:
            return f"False if ({value}) else False"
        test = _TEXT_TESTS[type(node)].format(t=name, a=repr(searched))
        inverted = "not " if node.meta.get(NEGATED) else ""
        return f"False if ({name} := {value}) is None else {inverted}({test})"


_RULES: dict[type, Callable[[_Maker, exp.Expr, int], str]] = {
    exp.Or: lambda maker, node, depth: maker.chain(node, depth, True),
    exp.And: lambda maker, node, depth: maker.chain(node, depth, False),
    exp.Not: lambda maker, node, depth: maker.negated(maker.truth(node.this, depth)),
    exp.Neg: _Maker.negate,
    exp.Is: _Maker.is_null,
    exp.EQ: _Maker.equality,
    exp.NEQ: _Maker.equality,
    exp.Between: _Maker.between,
    exp.In: _Maker.membership,
    **dict.fromkeys(_ORDERS, _Maker.ordering),
    **dict.fromkeys(_TEXT_TESTS, _Maker.text_test),
}


def _operands(node: exp.Expr) -> list[exp.Expr]:
    """Return the operands of `a OR b OR c`, a tree that leans left, from left to right."""
    found: list[exp.Expr] = []
    kind = type(node)
    while type(node) is kind:
        found.append(node.expression)
        node = node.this
    return [node, *reversed(found)]


def _start(node: exp.Expr) -> int:
    while START not in node.meta:
        node = node.this
    return int(node.meta[START])


def _shown(node: exp.Expr) -> str:
    if isinstance(node, exp.Literal):
        return f"'{node.this[:40]}'" if node.is_string else node.this[:40]
    if isinstance(node, exp.Boolean | exp.Null):
        return "NULL" if isinstance(node, exp.Null) else str(node.this).upper()
    return "a test" if isinstance(node, _PREDICATES) else "a value with a sign"


def make_function(text: str, tree: exp.Expr) -> Function:
    """Return the function of an expression's tree. Raises ExpressionError for operands that Apache refuses.

    The function takes the properties' `get`; it raises EvaluationError if a property does not have the type compared.
    """
    return _Maker(text).function(tree)
