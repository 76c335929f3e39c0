"""Limits repeated log lines of one cause: the first ones are written, the others counted.

A cause is a line's format in its module. A peer that makes a server log the same line 87,000 times gets a few a minute.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import attrs

MINUTE_SECONDS = 60.0
MOST_LINES = 100
"""The limit of lines of one cause in a minute, in programs that use the library."""
MOST_COMPLAINTS = 5
"""The limit of warnings and errors of one cause in a minute, in servers and commands."""
MOST_CAUSES = 10_000
"""The most causes; past that all are forgotten. Causes are lines of the source, so there are not that many."""

Cause = tuple[str, int, str]
"""Module, level and format."""


@attrs.define
class _Minute:
    began: float
    lines: int = 0
    left_out: int = 0
    last: str = ""


@attrs.frozen
class LeftOut:
    """Lines of a cause that were not written; `last` is the text of the last one."""

    cause: Cause
    lines: int
    last: str


class LogRepeats:
    """Counts lines. `most` returns how many lines of a level are written in a minute."""

    def __init__(
        self, most: Callable[[int], int] = lambda level: MOST_LINES, now: Callable[[], float] = time.monotonic
    ) -> None:
        self.most = most
        self._now = now
        self._lock = threading.Lock()
        self._minutes: dict[Cause, _Minute] = {}
        self._due = 0.0

    def takes(self, cause: Cause, text: Callable[[], str]) -> bool:
        """Return True if a line is to be written; otherwise count it."""
        with self._lock:
            minute = self._minutes.get(cause)
            if minute is None:
                if len(self._minutes) >= MOST_CAUSES:
                    self._minutes.clear()
                minute = self._minutes[cause] = _Minute(self._now())
            if minute.lines < self.most(cause[1]):
                minute.lines += 1
                return True
            minute.left_out += 1
            minute.last = text()
            return False

    def over(self, *, at_end: bool = False) -> list[LeftOut]:
        """Return what was left out in minutes that are over, or with `at_end` in all minutes. Each is returned once."""
        now = self._now()
        if now < self._due and not at_end:
            return []
        with self._lock:
            self._due = now + 1
            ended = {
                cause: minute
                for cause, minute in self._minutes.items()
                if at_end or now - minute.began >= MINUTE_SECONDS
            }
            for cause in ended:
                del self._minutes[cause]
        return [LeftOut(cause, minute.left_out, minute.last) for cause, minute in ended.items() if minute.left_out]
