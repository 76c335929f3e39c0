"""Answers that come later than their requests' turn, and several at once: those of one connection leave in one write."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Protocol


class Writes(Protocol):
    """A connection."""

    def write_answers(self, answers: list[bytes]) -> None: ...


class LateAnswers:
    """Of all connections of one server: written when they come, or `together` at the end of what brings about many."""

    def __init__(self) -> None:
        self._kept: dict[Writes, list[bytes]] | None = None

    def write(self, connection: Writes, answer: bytes) -> None:
        """Now, or with the others."""
        if self._kept is None:
            connection.write_answers([answer])
        else:
            self._kept.setdefault(connection, []).append(answer)

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """Keep all answers until the outermost of these ends."""
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
