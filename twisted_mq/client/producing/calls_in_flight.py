"""The calls of a producer that have not ended yet."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TypeVar

from twisted.internet import defer, interfaces
from twisted.python import failure

from twisted_mq.client.core.errors import ClientStateError

Result = TypeVar("Result")


class CallsInFlight:
    """Calls run while this is open; what is cancelled once it is closed fails with ClientStateError."""

    def __init__(self, group: str) -> None:
        self._group = group
        self._open = False
        self._cancels: dict[Callable[[], None], None] = {}
        self._all_ended: defer.Deferred[None] | None = None

    def open(self) -> None:
        """Take calls from now on."""
        self._open = True

    def run(self, work: Coroutine[defer.Deferred[object], object, Result]) -> defer.Deferred[Result]:
        """Start a user's call; it counts as in flight until it ends."""
        if not self._open:
            work.close()
            return defer.fail(ClientStateError(f"producer {self._group} is not running; start() comes first"))
        running = defer.Deferred.fromCoroutine(work)
        if not running.called:
            self._cancels[running.cancel] = None
            running.addBoth(self._ended, running.cancel)
        return running

    def _ended(self, result: Result | failure.Failure, cancel: Callable[[], None]) -> Result | failure.Failure:
        self._cancels.pop(cancel, None)
        if not self._cancels and self._all_ended is not None and not self._all_ended.called:
            self._all_ended.callback(None)
        if not self._open and isinstance(result, failure.Failure) and result.check(defer.CancelledError):
            raise ClientStateError(f"producer {self._group} was stopped before an answer came; it may have been sent")
        return result

    async def finish(self, finish_seconds: float, clock: interfaces.IReactorTime) -> None:
        """Take no more calls; let those in flight finish for that long."""
        self._open = False
        if self._cancels:
            self._all_ended = defer.Deferred()
            await self._all_ended.addTimeout(finish_seconds, clock, onTimeoutCancel=lambda *_: None)

    def cancel(self) -> None:
        """Give up those that are left."""
        for cancel in list(self._cancels):
            cancel()
