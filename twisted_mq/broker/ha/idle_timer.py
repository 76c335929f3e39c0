"""A timer that fires after a time without activity, however often there is some."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet import interfaces


class IdleTimer:
    """Calls `expired` when `seconds` passed since the last `touch`, again and again until it is stopped.

    A touch is one assignment: the running call looks at it when it fires and waits for the rest.
    """

    def __init__(self, clock: interfaces.IReactorTime, seconds: float, expired: Callable[[], None]) -> None:
        self.last = clock.seconds()
        self._clock = clock
        self._seconds = seconds
        self._expired = expired
        self._call: interfaces.IDelayedCall | None = None

    def start(self) -> None:
        """Count from now."""
        self.touch()
        self._call = self._clock.callLater(self._seconds, self._look)

    def touch(self) -> None:
        """Something happened now."""
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
        """End; a second call does nothing."""
        call, self._call = self._call, None
        if call is not None and call.active():
            call.cancel()
