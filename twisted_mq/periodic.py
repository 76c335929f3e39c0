"""Runs periodic jobs: each survives its own failure, logs it once, and goes on."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet import defer, interfaces
from twisted.python import failure

from twisted_mq.logs import Logger

TOO_SOON = 0.01
"""The part of its interval by which a turn may come early: timers of an event loop use another clock than its time."""
LONG_SECONDS = 0.1
"""Work that takes longer before it returns is logged, because no peer was served meanwhile."""


class PeriodicJob:
    """Calls `work` every so many seconds, first after that time; the next turn waits for a turn's Deferred.

    A failure is logged with its traceback, the same one again only after a turn that succeeded. Twisted's LoopingCall
    would install the default reactor, even in an asyncio program.
    """

    log = Logger()

    def __init__(self, name: str, clock: interfaces.IReactorTime, seconds: float, work: Callable[[], object]) -> None:
        self._name = name
        self._work = work
        self._failing = False
        self._clock = clock
        self._seconds = seconds
        self._began = clock.seconds()
        self._running = True
        self._timer: interfaces.IDelayedCall | None = None
        self._plan()

    def stop(self) -> None:
        """Start no further turn. A second call does nothing."""
        self._running = False
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def _plan(self) -> None:
        """Schedule the next turn, at a multiple of the interval after the start."""
        if self._running:
            wait = self._seconds - (self._clock.seconds() - self._began) % self._seconds
            if wait < self._seconds * TOO_SOON:
                wait += self._seconds
            self._timer = self._clock.callLater(wait, self._turn)

    def _turn(self) -> None:
        self._timer = None
        began = self._clock.seconds()
        result = defer.maybeDeferred(self._work)
        seconds = self._clock.seconds() - began
        if seconds > LONG_SECONDS:
            self.log.warn("long turn: seconds={seconds} job={name}", seconds=round(seconds, 3), name=self._name)
        result.addCallbacks(self._went_well, self._failed)

    def _went_well(self, _: object) -> None:
        self._failing = False
        self._plan()

    def _failed(self, reason: failure.Failure) -> None:
        if not self._failing:
            self.log.failure("{name} failed, retrying at its next turn", reason, name=self._name)
        self._failing = True
        self._plan()
