"""Writes answers that come after their requests' turn: those of one connection that come together leave in one write."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Protocol


class Writes(Protocol):
    """A connection that answers are written to."""

    def write_answers(self, answers: list[bytes]) -> None: ...


class LateAnswers:
    """The late answers of all connections of one server: written when they come or, inside `together`, at its end."""

    def __init__(self) -> None:
        self._kept: dict[Writes, list[bytes]] | None = None

    def write(self, connection: Writes, answer: bytes) -> None:
        """Write an answer now or, inside `together`, with the others."""
        if self._kept is None:
            connection.write_answers([answer])
        else:
            self._kept.setdefault(connection, []).append(answer)

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """Hold all answers until the outermost of these blocks ends."""
        if self._kept is not None:
            yield
            return
        kept = self._kept = {}
        try:
            yield
        finally:
            self._kept = None
            for connection, answers in kept.items():
                connection.write_answers(answers)
