"""Compiles and evaluates SQL92 expressions over a message's properties, with the results of Apache's rocketmq-filter.

    compile_expression("price BETWEEN 10 AND 20 AND TAGS IN ('fruit', 'nuts')").evaluate(properties)

The parser is a dialect of sqlglot's. It is loaded with the first expression, because loading sqlglot takes 17 MB and
0.15 seconds. The tokenizer and the other rules of sqlglot are not used: they differ from Apache's in numbers (`.5e3`,
`007`, `0L`), comments, the precedence of NOT and IS, and in what may follow an expression.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from twisted_mq.broker.filter.errors import EvaluationError, ExpressionError

MAX_LENGTH = 8192
"""The longest expression in characters, which takes about 50 ms to compile. Apache has no limit of its own."""

CACHED_EXPRESSIONS = 100
"""The number of cached expressions, as in Apache's SelectorParser.PARSE_CACHE: all members of a group send the same one."""


@attrs.frozen(eq=False)
class CompiledExpression:
    """An expression as a function. Equal texts give the same object as long as it is cached."""

    text: str
    _function: Callable[[Callable[[str], str | None]], bool | None]

    def evaluate(self, properties: Mapping[str, str]) -> bool:
        """Return True if a message matches. An unknown result and a property of the wrong type count as False."""
        try:
            return self._function(properties.get) is True
        except EvaluationError:
            return False

    def result(self, properties: Mapping[str, str]) -> bool | None:
        """Return True, False, or None for unknown. Raises EvaluationError if a property does not have the type compared."""
        return self._function(properties.get)


def compile_expression(text: str) -> CompiledExpression:
    """Compile an expression. Raises ExpressionError, whose message shows the place."""
    if len(text) > MAX_LENGTH:
        raise ExpressionError(text, MAX_LENGTH, f"an expression of {len(text)} characters, more than {MAX_LENGTH},")
    known = _known.pop(text, None) or _compile(text)
    _known[text] = known
    if len(_known) > CACHED_EXPRESSIONS:
        del _known[next(iter(_known))]
    if isinstance(known, ExpressionError):
        raise ExpressionError(text, known.position, known.reason)
    return known


def is_known(text: str) -> bool:
    """Return True if the expression was compiled, or refused, recently: then it costs nothing."""
    return text in _known


_known: dict[str, CompiledExpression | ExpressionError] = {}
"""The longest unused first. It holds refusals too, because clients repeat them with each heartbeat."""


def _compile(text: str) -> CompiledExpression | ExpressionError:
    from twisted_mq.broker.filter.selector_code import make_function
    from twisted_mq.broker.filter.selector_parser import parse_selector

    try:
        return CompiledExpression(text, make_function(text, parse_selector(text)))
    except ExpressionError as error:
        return error.with_traceback(None)
