"""Periodic jobs: each survives its own failure, says it once, and goes on."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet import defer, interfaces, task
from twisted.python import failure

from twisted_mq.logs import Logger


class PeriodicJob:
    """Calls `work` every so many seconds, first after that time; a turn whose Deferred waits is not overtaken.

    A failure is logged with its traceback, the same one again only after a turn that went well.
    """

    log = Logger()

    def __init__(self, name: str, clock: interfaces.IReactorTime, seconds: float, work: Callable[[], object]) -> None:
        self._name = name
        self._work = work
        self._failing = False
        self._loop = task.LoopingCall(self._turn)
        self._loop.clock = clock
        self._loop.start(seconds, now=False)

    def stop(self) -> None:
        """No further turn begins. A second call does nothing."""
        if self._loop.running:
            self._loop.stop()

    def _turn(self) -> defer.Deferred[None]:
        return defer.maybeDeferred(self._work).addCallbacks(self._went_well, self._failed)

    def _went_well(self, _: object) -> None:
        self._failing = False

    def _failed(self, reason: failure.Failure) -> None:
        if not self._failing:
            self.log.failure("{name} failed, tried again at its next turn", reason, name=self._name)
        self._failing = True
