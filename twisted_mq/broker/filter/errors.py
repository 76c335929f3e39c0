"""Defines the errors of expressions: when one is compiled, or evaluated for a message."""

from __future__ import annotations

SHOWN_CHARACTERS = 60
"""The number of characters that the message shows of the expression on each side of the fault."""


class ExpressionError(Exception):
    """Raised for an expression that Apache's parser refuses, or one beyond a limit. `position` counts characters from 0."""

    def __init__(self, text: str, position: int, reason: str) -> None:
        super().__init__(f"{reason} at {place(text, position)}\n{pointed_line(text, position)}")
        self.text = text
        self.position = position
        self.reason = reason


class EvaluationError(Exception):
    """Raised when a property does not have the type that the expression compares it with; the message does not match."""


def place(text: str, position: int) -> str:
    """Return line and column, both from 1."""
    return f"line {text.count(chr(10), 0, position) + 1}, column {position - _line_start(text, position) + 1}"


def pointed_line(text: str, position: int) -> str:
    """Return the line of the fault, cut to its surroundings, and a caret below the character."""
    start = max(_line_start(text, position), position - SHOWN_CHARACTERS)
    end = text.find("\n", position)
    end = min(len(text) if end < 0 else end, position + SHOWN_CHARACTERS)
    before = text[start:position]
    blanks = "".join("\t" if character == "\t" else " " for character in before)
    return f"{text[start:end].rstrip()}\n{blanks}^"


def _line_start(text: str, position: int) -> int:
    return text.rfind("\n", 0, position) + 1
