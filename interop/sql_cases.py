"""Random expressions and messages for the comparison with Apache's filter classes. The same seed gives the same cases.

Three kinds: expressions that the grammar allows, such expressions damaged by a few changed words, and single tests of
one value against one constant, where the conversions of Java decide.
"""

from __future__ import annotations

import random
from typing import Any

NAMES = ["a", "b", "C", "TAGS", "$x_1", "_n", "missing", "Between1"]
TEXTS = [
    "",
    "x",
    "abc",
    "5",
    "5.0",
    "-7",
    "a''b",
    "''",
    "true",
    "TRUE",
    "é",
    "日本",
    "\n",
    "NULL",
    "x y",
    "%",
    "\\",
    '"',
    "😀",
]
NUMBERS = [
    "0", "1", "5", "7", "10", "2147483647", "2147483648", "3000000000", "9223372036854775807", "9223372036854775808",
    "99999999999999999999", "5L", "5l", "0L", "007", "1.0", "5.", ".5", "5.0", "1e3", "5E0", "1e-3", "1.5e+2", "1e", "0.0",
    "0e5", "1e400", "1e-400", "1.7976931348623157e308", "4.9e-324", "9007199254740993", "9007199254740992.0", "0x1F", "1.2.3",
]  # fmt: skip
VALUES = [
    "", " ", "x", "abc", "xabc", "a'b", "'", "5", "+5", "-5", "-7", "05", " 5", "5 ", "5.0", "5.", ".5", "5e0", "5f", "5D", "5L",
    "-0", "-0.0", "0.0", "0", "NaN", "-NaN", "Infinity", "-Infinity", "+Infinity", "inf", "nan", "0x1p3", "0x.8P1", "0x1", "0xp1",
    "0x1p-99999999999", "-0x1.8p99999999", "1_000", "2147483647", "2147483648", "-2147483648", "-2147483649", "3000000000",
    "9223372036854775807", "9223372036854775808", "-9223372036854775808", "00000000000000000000000000007", "1e400", "-1e400",
    "1e99999999999", "9007199254740993", "true", "TRUE", "True", "false", "yes", "null", "NULL", "٣", "५", "\uff17", "𝟕",
    "+", "-", ".", "e5", "1e", "1e+", "日本", "é", "😀", "\t5\n", "\u00a05", "x y", "%", "\\", '"', "\n", "1.0E-3", "1000", "150",
]  # fmt: skip
ODD_WORDS = [
    "--",
    "-- c\n",
    "/* c */",
    "/*",
    "/**/",
    "#",
    "!",
    "!=",
    "==",
    "'",
    "''",
    '"',
    ";",
    ".",
    "*",
    "ſ",
    "K",
    "NOT",
    "(",
    ")",
    ",",
    "é",
]
BLANKS = [" "] * 8 + ["  ", "\t", "\n", "\r\n", "\f", " /* x */ ", " -- y\n", "\u00a0", ""]


class Cases:
    """Makes cases from one random number generator."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def case(self) -> dict[str, Any]:
        """An expression and a few messages."""
        kind = self._random.random()
        if kind < 0.35:
            words = self._single()
        else:
            words = self._any_of(self._random.choice([1, 2, 2, 3]))
            if kind > 0.75:
                words = self._damaged(words)
        return {"expression": self._written(words), "messages": [self._message() for _ in range(5)]}

    def _message(self) -> dict[str, str]:
        values = VALUES if self._random.random() < 0.7 else ["5", "7", "x", "abc", "true", "1000"]
        names = [name for name in NAMES if name != "missing" and self._random.random() < 0.75]
        return {name: self._random.choice(values) for name in names}

    def _single(self) -> list[str]:
        operands = [self._random.choice([self._name, self._name, self._constant])(), self._constant()]
        if self._random.random() < 0.3:
            self._random.shuffle(operands)
        if self._random.random() < 0.15:
            return [operands[0], *self._between()]
        return [operands[0], self._random.choice(["=", "<>", "<", "<=", ">", ">="]), operands[1]]

    def _any_of(self, depth: int) -> list[str]:
        words = self._test(depth)
        for _ in range(self._random.choice([0, 0, 1, 1, 2])):
            words += [self._keyword(self._random.choice(["AND", "OR"])), *self._test(depth)]
        return words

    def _test(self, depth: int) -> list[str]:
        left = self._operand(depth)
        kind = self._random.randrange(10)
        if kind < 4:
            return [*left, self._random.choice(["=", "<>", "<", "<=", ">", ">="]), *self._operand(depth)]
        if kind == 4:
            return [*left, *self._between()]
        if kind == 5:
            return [*left, *self._not(), self._keyword("IN"), "(", *self._list(), ")"]
        if kind < 8:
            word = self._random.choice(["CONTAINS", "STARTSWITH", "ENDSWITH"])
            return [*left, *self._not(), self._keyword(word), self._text()]
        if kind == 8:
            return [*left, self._keyword("IS"), *self._not(), self._keyword("NULL")]
        return left

    def _between(self) -> list[str]:
        bounds = [self._random.choice([self._number, self._number, self._name, self._constant])() for _ in range(2)]
        if self._random.random() < 0.6:
            bounds = sorted(
                self._random.sample(["1", "5", "7", "10", "5.5", "100L"], 2), key=lambda word: float(word.rstrip("L"))
            )
        low, high = bounds
        minus = ["-"] if self._random.random() < 0.1 else []
        return [*self._not(), self._keyword("BETWEEN"), *minus, low, self._keyword("AND"), high]

    def _operand(self, depth: int) -> list[str]:
        kind = self._random.random()
        if kind < 0.55:
            return [self._name()]
        if kind < 0.75:
            return [self._constant()]
        if kind < 0.85:
            return [self._random.choice(["-", "+", "-", self._keyword("NOT")]), *self._operand(depth)]
        return ["(", *self._any_of(depth - 1), ")"] if depth else [self._name()]

    def _constant(self) -> str:
        kind = self._random.random()
        if kind < 0.5:
            return self._number()
        return self._text() if kind < 0.8 else self._keyword(self._random.choice(["TRUE", "FALSE", "NULL"]))

    def _number(self) -> str:
        return self._random.choice(
            NUMBERS if self._random.random() < 0.5 else ["1", "5", "5.0", "7", "10", "3000000000"]
        )

    def _text(self) -> str:
        return f"'{self._random.choice(TEXTS)}'"

    def _list(self) -> list[str]:
        words = [self._text()]
        for _ in range(self._random.choice([0, 1, 1, 2, 6])):
            words += [",", self._text()]
        return words

    def _name(self) -> str:
        return self._random.choice(NAMES)

    def _not(self) -> list[str]:
        return [self._keyword("NOT")] if self._random.random() < 0.3 else []

    def _keyword(self, word: str) -> str:
        return self._random.choice([word, word, word.lower(), word.capitalize()])

    def _damaged(self, words: list[str]) -> list[str]:
        words = list(words)
        for _ in range(self._random.choice([1, 1, 2])):
            at = self._random.randrange(len(words) + 1)
            change = self._random.random()
            if change < 0.4:
                words.insert(at, self._random.choice(ODD_WORDS))
            elif change < 0.7 and len(words) > 1:
                del words[min(at, len(words) - 1)]
            else:
                words.insert(at, self._random.choice(words))
        return words

    def _written(self, words: list[str]) -> str:
        """The words with blanks between them; seldom without."""
        text = words[0]
        for word in words[1:]:
            text += ("" if self._random.random() < 0.08 else self._random.choice(BLANKS)) + word
        return text
