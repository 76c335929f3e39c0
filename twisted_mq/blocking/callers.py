"""Threads that wait for what the loop tells them, and the row in which they are woken."""

from __future__ import annotations

import collections
import queue
import time
from collections.abc import Callable
from typing import Any

PATIENCE_SECONDS = 0.001
"""How long a caller who was woken may take until he waits again, before the loop wakes those behind him."""
_AWAKE = 2
"""So many are awake at a time: one comes from his sleep while the other one runs."""


class Row:
    """Callers that were told something: the loop wakes the first two, and each wakes one more before he waits again.

    Woken all at once they would stand in line for the interpreter's lock, and the loop with them. The loop looks after the
    row, at the least every PATIENCE_SECONDS while it moves: one that has stood still for so long is woken as a whole,
    because a caller has other things to do than to wait again. So nobody hangs, whatever becomes of a caller.
    """

    def __init__(self, ended: Callable[[], object]) -> None:
        """`ended` is called by the last of a row, in his thread."""
        self._ended = ended
        self._callers: collections.deque[Caller] = collections.deque()
        self._moved = 0.0
        self.moves = False
        """Whether a caller is awake who is to wake the next."""

    def add(self, caller: Caller) -> None:
        """He was told something. In the loop."""
        self._callers.append(caller)

    def look(self) -> float | None:
        """Wake whom nobody else will wake; in how many seconds to look again, None: when the loop is awake. In the loop."""
        if not self.moves and not self._callers:
            return None
        now = time.monotonic()
        if self.moves and now - self._moved < PATIENCE_SECONDS:
            return PATIENCE_SECONDS
        if self.moves or len(self._callers) <= _AWAKE:
            self.moves = False
            self.wake_all()
            return None
        self.moves, self._moved = True, now
        for _ in range(_AWAKE):
            self._wake_next()
        return PATIENCE_SECONDS

    def pass_on(self) -> None:
        """A caller is about to wait: wake the next. In his thread."""
        if self._wake_next():
            self._moved = time.monotonic()
        elif self.moves:
            self.moves = False
            self._ended()

    def wake_all(self) -> None:
        """In the loop."""
        while self._wake_next():
            pass

    def _wake_next(self) -> bool:
        if not self._callers:
            return False
        try:
            caller = self._callers.popleft()
        except IndexError:  # another thread was faster
            return False
        caller.wake.put(None)
        return True


class Caller:
    """Who waits for one call, and what he is told.

    It is taken out by who has seen it: a signal's handler may raise where it is got.
    """

    __slots__ = ("_row", "outcomes", "wake")

    def __init__(self, row: Row) -> None:
        self._row = row
        self.outcomes: collections.deque[Any] = collections.deque()
        self.wake: queue.SimpleQueue[None] = queue.SimpleQueue()
        """An item for each outcome."""

    def tell(self, outcome: object) -> None:
        """Let him have it. In the loop."""
        self.outcomes.append(outcome)
        self._row.add(self)

    def next_outcome(self, deadline: float | None) -> Any:
        """What he is told next, at the latest at the deadline on the clock time.monotonic(): then raises queue.Empty."""
        while not self.outcomes:
            self._row.pass_on()
            self.wake.get(timeout=None if deadline is None else max(0.0, deadline - time.monotonic()))
        return self.outcomes[0]
