"""Parses expressions with sqlglot's parser (Apache: SelectorParser.jj). Importing this loads sqlglot.

    or:         and (OR and)*                                   sqlglot's rule
    and:        equality (AND equality)*                        sqlglot's rule
    equality:   comparison (= comparison | <> comparison | IS NULL | IS NOT NULL)*
    comparison: unary (> unary | >= unary | < unary | <= unary | [NOT] BETWEEN unary AND unary | [NOT] IN (text, ...)
                       | [NOT] CONTAINS text | [NOT] STARTSWITH text | [NOT] ENDSWITH text)*
    unary:      + unary | - unary | NOT unary | primary
    primary:    text | number | TRUE | FALSE | NULL | name | ( or )

sqlglot's cursor, its two binary rules and its tree are used. Rules whose precedence differs from sqlglot's are
overridden (NOT binds closer than =, all tests of one level may follow each other). As in Apache, parsing ends at the
first word that cannot continue the expression, and the rest is ignored: `a = 1 b` means `a = 1`.
"""

from __future__ import annotations

from typing import NoReturn

from sqlglot import Parser, Token, TokenType, exp

from twisted_mq.broker.filter.errors import ExpressionError
from twisted_mq.broker.filter.selector_tokens import SelectorTokenizer

MAX_DEPTH = 100
"""Levels of parentheses and signs. Apache's parser is bounded only by its thread's stack."""

START = "start"
NEGATED = "negated"
"""Keys of a node's meta: the position of its first or decisive word; set for the NOT form of a test."""

_TEXT_TESTS = {TokenType.LIKE: exp.Contains, TokenType.START_WITH: exp.StartsWith, TokenType.END: exp.EndsWith}
_WORD_VALUES = {TokenType.TRUE: True, TokenType.FALSE: False}


class SelectorParser(Parser):
    """Parses one expression. A fault raises ExpressionError with its place."""

    DISJUNCTION = {TokenType.OR: exp.Or}
    CONJUNCTION = {TokenType.AND: exp.And}
    EQUALITY = {TokenType.EQ: exp.EQ, TokenType.NEQ: exp.NEQ}
    COMPARISON = {TokenType.GT: exp.GT, TokenType.GTE: exp.GTE, TokenType.LT: exp.LT, TokenType.LTE: exp.LTE}

    def parse_selector(self, text: str) -> exp.Expr:
        """Return the tree of an expression. Raises ExpressionError."""
        self.reset()
        self.sql = text
        self._depth = 0
        self._tokens = SelectorTokenizer().tokenize(text)
        self._tokens_size = len(self._tokens)
        self._advance(0)
        tree = self._parse_whole()
        if self._curr.token_type == TokenType.UNKNOWN:
            self.raise_error("an operator or the end")
        return tree

    def raise_error(self, message: str, token: Token | None = None) -> NoReturn:
        """Raise ExpressionError. `message` says what was expected at the current word."""
        found = self._curr
        position = found.start if found else len(self.sql)
        reason = f"expected {message}, found {found.text[:40] if found else 'the end'}"
        raise ExpressionError(self.sql, position, reason)

    def _parse_whole(self) -> exp.Expr:
        tree = self._parse_disjunction()
        assert tree is not None  # sqlglot's own parser gives up in this way; here a fault raises
        return tree

    def _parse_equality(self, parse_is: bool = True) -> exp.Expr:
        left = self._parse_comparison()
        while True:
            token = self._curr
            if self._match_set(self.EQUALITY):
                left = _at(token, self.EQUALITY[token.token_type](this=left, expression=self._parse_comparison()))
            elif self._match(TokenType.IS):
                negated = self._match(TokenType.NOT)
                self._expect(TokenType.NULL, "NULL" if negated else "NULL or NOT NULL")
                left = _at(token, exp.Is(this=left, expression=exp.Null()), negated)
            else:
                return left

    def _parse_comparison(self, this: exp.Expr | None = None) -> exp.Expr:
        left = self._parse_unary()
        while True:
            token = self._curr
            if self._match_set(self.COMPARISON):
                left = _at(token, self.COMPARISON[token.token_type](this=left, expression=self._parse_unary()))
                continue
            negated = self._match(TokenType.NOT)
            test = self._parse_test(left, negated)
            if test is None:
                if negated:
                    self.raise_error("BETWEEN, IN, CONTAINS, STARTSWITH or ENDSWITH after NOT")
                return left
            left = test

    def _parse_test(self, left: exp.Expr, negated: bool) -> exp.Expr | None:
        token = self._curr
        if self._match_set(_TEXT_TESTS):
            return _at(token, _TEXT_TESTS[token.token_type](this=left, expression=self._parse_text()), negated)
        if self._match(TokenType.IN):
            return _at(token, exp.In(this=left, expressions=self._parse_texts()), negated)
        if self._match(TokenType.BETWEEN):
            low = self._parse_unary()
            self._expect(TokenType.AND, "AND")
            return _at(token, exp.Between(this=left, low=low, high=self._parse_unary()), negated)
        return None

    def _parse_texts(self) -> list[exp.Expr]:
        self._expect(TokenType.L_PAREN, "(")
        texts = [self._parse_text()]
        while self._match(TokenType.COMMA):
            texts.append(self._parse_text())
        self._expect(TokenType.R_PAREN, ", or )")
        return texts

    def _parse_text(self) -> exp.Expr:
        token = self._expect(TokenType.STRING, "a text in single quotes")
        return _at(token, exp.Literal.string(token.text[1:-1].replace("''", "'")))

    def _parse_unary(self) -> exp.Expr:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ExpressionError(self.sql, self._curr.start, f"more than {MAX_DEPTH} levels")
        token = self._curr
        if self._match(TokenType.PLUS):
            parsed = self._parse_unary()
        elif self._match(TokenType.DASH):
            parsed = _at(token, exp.Neg(this=self._parse_unary()))
        elif self._match(TokenType.NOT):
            parsed = _at(token, exp.Not(this=self._parse_unary()))
        else:
            parsed = self._parse_primary()
        self._depth -= 1
        return parsed

    def _parse_primary(self) -> exp.Expr:
        token = self._curr
        kind = token.token_type
        if kind == TokenType.STRING:
            return self._parse_text()
        if self._match(TokenType.L_PAREN):
            inner = self._parse_whole()
            self._expect(TokenType.R_PAREN, "an operator or )")
            return inner
        node: exp.Expr
        if kind == TokenType.VAR:
            node = exp.Identifier(this=token.text)
        elif kind == TokenType.NUMBER:
            node = exp.Literal.number(token.text)
        elif kind == TokenType.NULL:
            node = exp.Null()
        elif kind in _WORD_VALUES:
            node = exp.Boolean(this=_WORD_VALUES[kind])
        else:
            self.raise_error("a value or (")
        self._advance()
        return _at(token, node)

    def _expect(self, kind: TokenType, expected: str) -> Token:
        token = self._curr
        if not self._match(kind):
            self.raise_error(expected)
        return token


def _at(token: Token, node: exp.Expr, negated: bool = False) -> exp.Expr:
    node.meta[START] = token.start
    if negated:
        node.meta[NEGATED] = True
    return node


def parse_selector(text: str) -> exp.Expr:
    """Return the sqlglot tree of an expression. Raises ExpressionError."""
    return SelectorParser().parse_selector(text)
