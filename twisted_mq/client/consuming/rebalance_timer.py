"""Runs a consumer's rebalancing: every 20 s, at once on notice, sooner while something is missing."""

from __future__ import annotations

from collections.abc import Callable, Coroutine

from twisted.internet import defer, interfaces
from twisted.python import failure

from twisted_mq.logs import Logger

NOT_BALANCED_SECONDS = 1.0
"""The first retry after a topic, the group's members or a queue's offset were not known (minInterval).

Each further failure doubles it, up to the usual interval.
"""


class RebalanceTimer:
    """Runs `work` every `seconds`, and on request; never twice at the same time."""

    log = Logger()

    def __init__(
        self,
        clock: interfaces.IReactorTime,
        seconds: float,
        work: Callable[[], Coroutine[defer.Deferred[object], object, bool]],
    ) -> None:
        """`work` returns whether nothing was missing; if not, it runs again soon."""
        self._clock = clock
        self._seconds = seconds
        self._work = work
        self._timer: interfaces.IDelayedCall | None = None
        self._running: defer.Deferred[None] | None = None
        self._active = False
        self._again = False
        self._stopped = False
        self._in_vain = 0

    def now(self) -> None:
        """Run at once, as something has changed; if a run is under way, run once more after it."""
        self._in_vain = 0
        self._begin()

    def _begin(self) -> None:
        if self._stopped:
            return
        if self._active:
            self._again = True
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._active = True
        self._running = defer.Deferred.fromCoroutine(self._run())
        self._running.addErrback(self._report)

    def stop(self) -> None:
        """Begin no further run and cancel the one under way."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._active and self._running is not None:
            self._running.cancel()

    async def _run(self) -> None:
        balanced = False
        try:
            balanced = await self._work()
        finally:
            self._active = False
            if not self._stopped:
                self._timer = self._clock.callLater(self._delay(balanced), self._due)
                self._again = False

    def _delay(self, balanced: bool) -> float:
        if self._again:
            return 0.0
        if balanced:
            self._in_vain = 0
            return self._seconds
        self._in_vain += 1
        return min(self._seconds, NOT_BALANCED_SECONDS * 2.0 ** (self._in_vain - 1))

    def _due(self) -> None:
        self._timer = None
        self._begin()

    def _report(self, reason: failure.Failure) -> None:
        if not reason.check(defer.CancelledError):
            self.log.failure("rebalance failed", reason)
