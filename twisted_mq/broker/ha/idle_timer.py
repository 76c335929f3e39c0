"""Fires after a time without activity, at little cost for each activity."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet import interfaces


class IdleTimer:
    """Calls `expired` when `seconds` have passed since the last `touch`, repeatedly until it is stopped.

    A touch is one assignment: the pending call checks it when it fires, and waits for the rest.
    """

    def __init__(self, clock: interfaces.IReactorTime, seconds: float, expired: Callable[[], None]) -> None:
        self.last = clock.seconds()
        self._clock = clock
        self._seconds = seconds
        self._expired = expired
        self._call: interfaces.IDelayedCall | None = None

    def start(self) -> None:
        """Start to count now."""
        self.touch()
        self._call = self._clock.callLater(self._seconds, self._look)

    def touch(self) -> None:
        """Record an activity."""
        self.last = self._clock.seconds()

    def _look(self) -> None:
        rest = self.last + self._seconds - self._clock.seconds()
        if rest <= 0:
            self.last, rest = self._clock.seconds(), self._seconds
            self._call = self._clock.callLater(rest, self._look)
            self._expired()
        else:
            self._call = self._clock.callLater(rest, self._look)

    def stop(self) -> None:
        """Stop. A second call does nothing."""
        call, self._call = self._call, None
        if call is not None and call.active():
            call.cancel()
