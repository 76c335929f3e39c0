"""Provides the two clocks: timers follow monotonic time; the time of day is only for the times in messages and for people.

Twisted's reactors use the time of day for both, so a clock that is set back by an hour stops every timer for an hour.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import attrs
from twisted.internet.base import ReactorBase
from twisted.internet.interfaces import IReactorTime
from twisted.python.runtime import seconds as reactor_default


def steady() -> Callable[[], float]:
    """Return a clock that shows the time of day of this moment, and from then on advances as monotonic time does."""
    began = time.time() - time.monotonic()
    return lambda: began + time.monotonic()


def follow_monotonic_time(reactor: IReactorTime) -> None:
    """Let a reactor's timers follow monotonic time: those that wait already, and all later ones.

    `reactor.seconds()` still shows seconds since 1970; it misses what the clock is set by from now on. A second call, and
    a call for a reactor with a clock of its own (task.Clock), change nothing.
    """
    if isinstance(reactor, ReactorBase) and reactor.seconds is reactor_default:
        reactor.seconds = steady()


def time_of_day(clock: IReactorTime) -> Callable[[], float]:
    """Return a function for the seconds since 1970: the machine's clock or, in a test, the virtual clock."""
    shown: Callable[[], float] | None = getattr(clock, "time_of_day", None)
    if shown is not None:
        return shown
    return time.time if isinstance(clock, ReactorBase) else clock.seconds


def wall_ms(clock: IReactorTime) -> Callable[[], int]:
    """Return a function for the time of day in ms since 1970."""
    shown = time_of_day(clock)
    return lambda: int(shown() * 1000)


STEP_MS = 500
"""The clocks may differ by this much without a step: each is read by itself, and drift is slow."""


@attrs.define(eq=False)
class ClockSteps:
    """Measures how far the time of day was set since the start.

    Times on disk or from peers are times of day. `deadline - steps.ms()` is the same moment for timers.
    """

    now_ms: Callable[[], int]
    wall_ms: Callable[[], int]
    _noted: int = 0
    _most: int = 0

    def ms(self) -> int:
        """Return ms, 0 until the clock was set by more than half a second."""
        apart = self.wall_ms() - self.now_ms()
        if abs(apart - self._noted) >= STEP_MS:
            self._noted = apart
            self._most = max(self._most, apart)
        return self._noted

    def latest_ms(self) -> int:
        """Return a time of day that no message stored so far is later than, even after the clock was set back."""
        self.ms()
        return self.now_ms() + self._most
