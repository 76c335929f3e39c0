"""The calls of a producer that have not ended yet."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

from twisted.internet import defer, interfaces
from twisted.python import failure

from twisted_mq.client.core.errors import ClientStateError

Result = TypeVar("Result")
Call = defer.Deferred[Any]
"""The result is whatever the caller gets."""


class CallsInFlight:
    """Runs calls while it is open. A call that is cancelled after it is closed fails with ClientStateError."""

    def __init__(self, group: str) -> None:
        self._group = group
        self.is_open = False
        self._running: dict[Call, None] = {}
        self._all_ended: defer.Deferred[None] | None = None

    def open(self) -> None:
        """Accept calls from now on."""
        self.is_open = True

    def run(self, work: Coroutine[defer.Deferred[object], object, Result]) -> defer.Deferred[Result]:
        """Start a user's call; it counts as in flight until it ends."""
        if not self.is_open:
            work.close()
            return self.refused()
        return self.run_on(work)

    def refused(self) -> defer.Deferred[Any]:
        """Return a failed Deferred for a call that comes while this is closed."""
        return defer.fail(ClientStateError(f"producer {self._group} is not running; call start() first"))

    def run_on(self, work: Coroutine[defer.Deferred[object], object, Result]) -> defer.Deferred[Result]:
        """Start a part of a call; this may be closed in the meantime."""
        running = defer.Deferred.fromCoroutine(work)
        if not running.called:
            self.began(running)
            running.addBoth(self.failed_or_ended, running)
        return running

    def began(self, call: Call) -> None:
        """Count a call as in flight until `ended` or `failed_or_ended` is called for it."""
        self._running[call] = None

    def ended(self, call: Call) -> None:
        self._running.pop(call, None)
        if self._all_ended is not None and not self._running and not self._all_ended.called:
            self._all_ended.callback(None)

    def failed_or_ended(self, result: Result | failure.Failure, call: Call) -> Result | failure.Failure:
        """Return its result, as a callback passes it on. Raises ClientStateError if closing cancelled it."""
        self.ended(call)
        if not self.is_open and isinstance(result, failure.Failure) and result.check(defer.CancelledError):
            raise ClientStateError(
                f"producer {self._group} was stopped before the answer came; the message may have been sent"
            )
        return result

    async def finish(self, finish_seconds: float, clock: interfaces.IReactorTime) -> None:
        """Accept no more calls; let those in flight finish for that long."""
        self.is_open = False
        if self._running:
            self._all_ended = defer.Deferred()
            await self._all_ended.addTimeout(finish_seconds, clock, onTimeoutCancel=lambda *_: None)

    def cancel(self) -> None:
        """Cancel the calls that are left."""
        for call in list(self._running):
            call.cancel()
