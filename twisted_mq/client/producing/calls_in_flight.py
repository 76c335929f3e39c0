"""Keeps the calls of one producer that have not ended."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeAlias, TypeVar

from twisted.internet import defer, interfaces
from twisted.python.failure import Failure

from twisted_mq.client.core.errors import ClientStateError

Result = TypeVar("Result")
Call: TypeAlias = defer.Deferred[Any]
"""The result is whatever the caller gets."""


class CallsInFlight:
    """Runs calls while it is open. A call that is cancelled after it is closed fails with ClientStateError."""

    def __init__(self, group: str) -> None:
        self._group = group
        self.is_open = False
        self.running: dict[Call, int | defer.Deferred[Any]] = {}
        """The calls. One whose end another Deferred brings has that; others have the bytes that they take of the window."""
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
            self.running[running] = 0
            running.addBoth(self._failed_or_ended, running)
        return running

    def check_end(self) -> None:
        """Continue `finish` if no call is left."""
        if self._all_ended is not None and not self.running and not self._all_ended.called:
            self._all_ended.callback(None)

    def _failed_or_ended(self, result: Result | Failure, call: Call) -> Result | Failure:
        self.running.pop(call, None)
        self.check_end()
        return self.told(result)

    def told(self, result: Result | Failure) -> Result | Failure:
        """Return what the caller gets of a result: ClientStateError if closing cancelled the call."""
        if not self.is_open and isinstance(result, Failure) and result.check(defer.CancelledError):
            return Failure(
                ClientStateError(
                    f"producer {self._group} was stopped before the answer came; the message may have been sent"
                )
            )
        return result

    async def finish(self, finish_seconds: float, clock: interfaces.IReactorTime) -> None:
        """Accept no more calls; let those in flight finish for that long."""
        self.is_open = False
        if self.running:
            self._all_ended = defer.Deferred()
            await self._all_ended.addTimeout(finish_seconds, clock, onTimeoutCancel=lambda *_: None)

    def cancel(self) -> None:
        """Cancel the calls that are left."""
        for call in list(self.running):
            call.cancel()
