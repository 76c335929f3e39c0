"""How many sends of one producer wait for an answer at a time; the others wait here, so that no timeout runs for them."""

from __future__ import annotations

import collections
from collections.abc import Callable

from twisted.internet import defer, interfaces

from twisted_mq.client.core.pace import Pace

STALL_SECONDS = 0.1
"""A turn of the reactor that sends and takes longer counts as a stall: no answer could be read meanwhile."""


class SendWindow:
    """At most `max_count` sends and `max_bytes` of bodies in flight; a larger body goes alone. First come, first sent.

    Who starts many sends in one turn of the reactor keeps it from reading the answers. `stalled` is told for how many
    seconds that was, before any timer runs.
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
        """How many sends wait for their turn."""
        return len(self._waiting)

    def enter(self, size: int, *, at_once: bool) -> defer.Deferred[None] | None:
        """None where the send may go now, else a Deferred that fires when its turn comes, never within this call.

        Every send that may go calls `leave`. Without `at_once` it waits for the reactor's next turn at the least.
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

    def leave(self, size: int) -> None:
        """A send of that size has ended; who waits for its room goes."""
        self.count -= 1
        self.bytes -= size
        if self._waiting:
            self._admit()

    def open(self) -> None:
        """Let sends go from now on, as at first."""
        self._open = True

    def stop(self) -> None:
        """Let no further send go: those that wait are to be cancelled."""
        self._open = False
        self._waiting.clear()
        if self._turn is not None:
            self._turn.cancel()
            self._turn = None
        if self._paced is not None:
            self._paced.cancel()
            self._paced = None

    def _take(self, size: int) -> bool:
        """Let one in, if there is room."""
        if not self._open or self.count >= self._max_count or (self.count and self.bytes + size > self._max_bytes):
            return False
        if self._pace is not None and not self._in_pace(self._pace):
            return False
        self.count += 1
        self.bytes += size
        return True

    def _in_pace(self, pace: Pace) -> bool:
        """Let one more go in this second, or have the sends go on as soon as one may."""
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
        if self._admitting:  # a send that ended at once made room: the loop below goes on
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
