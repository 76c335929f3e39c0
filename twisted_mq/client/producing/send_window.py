"""Limits the sends of one producer in flight; the others wait here, so that no timeout runs for them."""

from __future__ import annotations

import collections
from collections.abc import Callable

from twisted.internet import defer, interfaces

from twisted_mq.client.core.pace import Pace

STALL_SECONDS = 0.1
"""A reactor turn that sends and takes longer counts as a stall: no answer could be read meanwhile."""


class SendWindow:
    """At most `max_count` sends and `max_bytes` of bodies in flight, in the order of the calls. A larger body is sent alone.

    Starting many sends in one turn of the reactor keeps it from reading the answers. `stalled` is called with the seconds
    that this took, before any timer runs.
    """

    def __init__(
        self,
        clock: interfaces.IReactorTime,
        max_count: int,
        max_bytes: int,
        stalled: Callable[[float], None],
        pace: Pace | None = None,
    ) -> None:
        """`pace` limits the sends a second."""
        self._clock = clock
        self._max_count = max_count
        self._max_bytes = max_bytes
        self._stalled = stalled
        self._waiting: collections.deque[tuple[int, defer.Deferred[None]]] = collections.deque()
        self._turn: interfaces.IDelayedCall | None = None
        self._pace = pace
        self._paced: interfaces.IDelayedCall | None = None
        self._admitting = False
        self._open = True
        self.count = 0
        self.bytes = 0

    @property
    def waiting(self) -> int:
        """The number of sends that wait for their turn."""
        return len(self._waiting)

    def enter(self, size: int, *, at_once: bool) -> defer.Deferred[None] | None:
        """Return None if the send may go now, else a Deferred that fires when its turn comes, never within this call.

        Every send that may go calls `leave`. Without `at_once` it waits at least for the reactor's next turn.
        """
        if self.count and self._turn is None:
            self._next_turn()
        if at_once and not self._waiting and self._take(size):
            return None
        if not at_once and self._turn is None:
            self._next_turn()
        turn: defer.Deferred[None] = defer.Deferred()
        self._waiting.append((size, turn))
        return turn

    def leave(self, size: int, count: int = 1) -> None:
        """End sends of that size together; sends that wait for room may go."""
        self.count -= count
        self.bytes -= size
        if self._waiting:
            self._admit()

    def open(self) -> None:
        """Let sends go from now on, as at first."""
        self._open = True

    def stop(self) -> None:
        """Let no further send go. Waiting sends must be cancelled."""
        self._open = False
        self._waiting.clear()
        if self._turn is not None:
            self._turn.cancel()
            self._turn = None
        if self._paced is not None:
            self._paced.cancel()
            self._paced = None

    def _take(self, size: int) -> bool:
        """Count a send as in flight if it has room. Return whether it has."""
        if not self._open or self.count >= self._max_count or (self.count and self.bytes + size > self._max_bytes):
            return False
        if self._pace is not None and not self._in_pace(self._pace):
            return False
        self.count += 1
        self.bytes += size
        return True

    def _in_pace(self, pace: Pace) -> bool:
        """Return whether the pace allows one more send now; if not, plan to continue as soon as it does."""
        now = self._clock.seconds()
        wait = pace.wait(now)
        if not wait:
            pace.spend(1, now)
        elif self._paced is None:
            self._paced = self._clock.callLater(wait, self._go_on)
        return not wait

    def _go_on(self) -> None:
        self._paced = None
        self._admit()

    def _next_turn(self) -> None:
        self._turn = self._clock.callLater(0, self._turned, self._clock.seconds())

    def _turned(self, began: float) -> None:
        self._turn = None
        late = self._clock.seconds() - began
        if late > STALL_SECONDS:
            self._stalled(late)
        self._admit()

    def _admit(self) -> None:
        if self._admitting:  # a send that ended at once made room: the loop below continues
            return
        self._admitting = True
        try:
            while self._waiting:
                size, turn = self._waiting[0]
                if turn.called:  # it was cancelled
                    self._waiting.popleft()
                elif self._take(size):
                    self._waiting.popleft()
                    turn.callback(None)
                else:
                    return
        finally:
            self._admitting = False
