"""Splits an expression into words (Apache: the tokens of SelectorParser.jj). Keywords and names are ASCII, in any case.

Oddities that clients can rely on: `007` is three numbers and `0L` a number and a name; `--` begins a comment only
if the line ends (on the last line it is two minus signs); the only escape in a text is a doubled quote.

No pattern backtracks (all repeat by `*+` and `++`), so each character is read a few times at most.
"""

from __future__ import annotations

import re

from sqlglot import Dialect, Token, Tokenizer, TokenType

_WORDS = re.compile(
    r"""(?P<blank>[ \t\n\r\f]++|/\*(?:[^*]++|\*(?!/))*+\*/)
    |(?P<double>(?:[0-9]++\.[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?|[0-9]++[eE][+-]?[0-9]++)
    |(?P<zeros>0++)
    |(?P<integer>[1-9][0-9]*+[lL]?)
    |(?P<text>'[^']*+'(?:'[^']*+')*+)
    |(?P<name>[A-Za-z_$][A-Za-z0-9_$]*+)
    |(?P<mark><>|>=|<=|[-=<>(),+])""",
    re.VERBOSE,
)
_LINE_COMMENT = re.compile(r"--[^\n\r]*+(?:\r\n|\n|\r)")

KEYWORDS = {
    "NOT": TokenType.NOT,
    "AND": TokenType.AND,
    "OR": TokenType.OR,
    "BETWEEN": TokenType.BETWEEN,
    "IN": TokenType.IN,
    "TRUE": TokenType.TRUE,
    "FALSE": TokenType.FALSE,
    "NULL": TokenType.NULL,
    "IS": TokenType.IS,
    "CONTAINS": TokenType.LIKE,
    "STARTSWITH": TokenType.START_WITH,
    "ENDSWITH": TokenType.END,
}
MARKS = {
    "=": TokenType.EQ,
    "<>": TokenType.NEQ,
    ">": TokenType.GT,
    ">=": TokenType.GTE,
    "<": TokenType.LT,
    "<=": TokenType.LTE,
    "(": TokenType.L_PAREN,
    ")": TokenType.R_PAREN,
    ",": TokenType.COMMA,
    "+": TokenType.PLUS,
    "-": TokenType.DASH,
}


class SelectorTokenizer(Tokenizer):
    """Makes sqlglot's tokens by Apache's rules, because sqlglot's own scanner has other numbers, comments and marks."""

    def __init__(self, dialect: Dialect | None = None) -> None:
        super().__init__(dialect or Dialect())

    def tokenize(self, sql: str) -> list[Token]:
        """Return all tokens. A character that begins no token gives a last token UNKNOWN, an error if the parser reaches it."""
        tokens: list[Token] = []
        position, last_line_end = 0, max(sql.rfind("\n"), sql.rfind("\r"))
        while position < len(sql):
            in_comment = position < last_line_end and sql.startswith("--", position)
            match = (_LINE_COMMENT if in_comment else _WORDS).match(sql, position)
            if match is None:
                tokens.append(_token(TokenType.UNKNOWN, sql[position], position))
                break
            if match.lastgroup == "zeros":  # each is a number of its own
                tokens += (_token(TokenType.NUMBER, "0", place) for place in range(position, match.end()))
            elif not in_comment and match.lastgroup != "blank":
                tokens.append(_token(_type(str(match.lastgroup), match[0]), match[0], position))
            position = match.end()
        return tokens


def _type(kind: str, word: str) -> TokenType:
    if kind == "name":
        return KEYWORDS.get(word.upper(), TokenType.VAR)
    if kind == "mark":
        return MARKS[word]
    return TokenType.STRING if kind == "text" else TokenType.NUMBER


def _token(kind: TokenType, word: str, start: int) -> Token:
    return Token(kind, word, start=start, end=start + len(word) - 1)
