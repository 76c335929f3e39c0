"""The words of an expression (Apache: the tokens of SelectorParser.jj). Keywords and names are of ASCII, in any case.

Oddities that clients can rely on: `007` is three numbers and `0L` a number and a name; `--` begins a comment only
where the line ends (on the last line it is two minus signs); the only escape in a text is a doubled quote.
"""

from __future__ import annotations

import re

from sqlglot import Dialect, Token, Tokenizer, TokenType

_WORDS = re.compile(
    r"""(?P<blank>[ \t\n\r\f]+|--[^\n\r]*(?:\r\n|\n|\r)|/\*[\s\S]*?\*/)
    |(?P<double>(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)
    |(?P<integer>0|[1-9][0-9]*[lL]?)
    |(?P<text>'(?:''|[^'])*')
    |(?P<name>[A-Za-z_$][A-Za-z0-9_$]*)
    |(?P<mark><>|>=|<=|[-=<>(),+])""",
    re.VERBOSE,
)

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
    """Makes sqlglot's tokens by Apache's rules: sqlglot's own scanner knows other numbers, comments and marks."""

    def __init__(self, dialect: Dialect | None = None) -> None:
        super().__init__(dialect or Dialect())

    def tokenize(self, sql: str) -> list[Token]:
        """All tokens. At a character that begins none, the last is UNKNOWN: an error if the parser comes that far."""
        tokens: list[Token] = []
        position = 0
        while position < len(sql):
            match = _WORDS.match(sql, position)
            if match is None:
                tokens.append(_token(TokenType.UNKNOWN, sql[position], position))
                break
            if match.lastgroup != "blank":
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
