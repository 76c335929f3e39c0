"""Threads that wait for outcomes from the loop, and the queue in which they are woken."""

from __future__ import annotations

import collections
import queue
import time
from collections.abc import Callable
from typing import Any

PATIENCE_SECONDS = 0.001
"""If a woken caller does not wait again within this time, the loop wakes the callers after it."""
_AWAKE = 2
"""The number of callers awake at a time: one wakes up while the other one runs."""


class Row:
    """Callers with an outcome to get. The loop wakes the first two; each wakes one more before it waits again.

    Woken all at once, they would compete for the interpreter's lock with each other and with the loop. While callers wake
    each other, the loop checks at least every PATIENCE_SECONDS. If none was woken for so long, it wakes all: a caller may do
    other work than wait again. So no caller hangs, whatever another one does.
    """

    def __init__(self, ended: Callable[[], object]) -> None:
        """Take `ended`, which the last caller of a row calls, in its thread."""
        self._ended = ended
        self._callers: collections.deque[Caller] = collections.deque()
        self._moved = 0.0
        self.moves = False
        """True while a caller is awake that will wake the next one."""

    def add(self, caller: Caller) -> None:
        """Add a caller that has a new outcome. Called in the loop."""
        self._callers.append(caller)

    def look(self) -> float | None:
        """Wake callers that no other caller wakes. Called in the loop.

        Returns the seconds until the next look; None if it is needed only when the loop is awake.
        """
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
        """Wake the next caller. Called by a caller that is about to wait, in its thread."""
        if self._wake_next():
            self._moved = time.monotonic()
        elif self.moves:
            self.moves = False
            self._ended()

    def wake_all(self) -> None:
        """Wake all callers. Called in the loop."""
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
    """A thread that waits for one call, and the outcomes of the call.

    The thread removes an outcome only after it has read it, because a signal's handler may raise during the read.
    """

    __slots__ = ("_row", "outcomes", "wake")

    def __init__(self, row: Row) -> None:
        self._row = row
        self.outcomes: collections.deque[Any] = collections.deque()
        self.wake: queue.SimpleQueue[None] = queue.SimpleQueue()
        """An item per outcome."""

    def tell(self, outcome: object) -> None:
        """Give the caller an outcome. Called in the loop."""
        self.outcomes.append(outcome)
        self._row.add(self)

    def next_outcome(self, deadline: float | None) -> Any:
        """Wait for the next outcome and return it. Raises queue.Empty at the deadline, a time of time.monotonic()."""
        while not self.outcomes:
            self._row.pass_on()
            self.wake.get(timeout=None if deadline is None else max(0.0, deadline - time.monotonic()))
        return self.outcomes[0]
