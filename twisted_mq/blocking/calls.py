"""A plain call: its work runs in the loop while its caller waits."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import attrs
from twisted.internet import defer
from twisted.python.failure import Failure

from twisted_mq.blocking.callers import Caller
from twisted_mq.blocking.loop_thread import LoopThread
from twisted_mq.client.core.errors import ClientError

Result = TypeVar("Result")
Answer = TypeVar("Answer")

CANCEL_SECONDS = 10.0
"""The time in which a cancelled call must end. A consumer's cancelled start still unregisters at the brokers."""


class CallTimedOut(ClientError, TimeoutError):
    """Raised when a call exceeds its `timeout`. The call is cancelled, but may have had its effect."""


@attrs.frozen
class InCaller:
    """A function that a call runs in its caller's thread, which waits for the call anyway."""

    function: Callable[[], object]
    done: defer.Deferred[Any]


class Call(Caller, Generic[Result]):
    """A call. Its caller's thread uses the `wait` methods, the loop's thread the others."""

    def __init__(self, thread: LoopThread) -> None:
        super().__init__(thread.row)
        self._thread = thread
        self._running: defer.Deferred[None] | None = None

    def begin(self, work: Callable[[], defer.Deferred[Result]]) -> None:
        """Begin the work. Called in the loop."""
        try:
            self._running = work().addBoth(self.tell)
        except Exception:
            self.tell(Failure())

    def in_caller(self, function: Callable[[], Answer]) -> defer.Deferred[Answer]:
        """Call a function in the caller's thread."""
        done: defer.Deferred[Any] = defer.Deferred()
        self.tell(InCaller(function, done))
        return done

    def wait(self, timeout: float | None) -> Result:
        """Wait for the result and return it. Raises the work's error, or CallTimedOut."""
        try:
            outcome = self._outcome(timeout)
        except queue.Empty:
            outcome = self._cancelled()
            if isinstance(outcome, Failure):
                raise CallTimedOut(f"no result within {timeout:g} s") from outcome.value
        except BaseException:  # Ctrl-C
            self._cancelled()
            raise
        if isinstance(outcome, Failure):
            outcome.raiseException()
        return outcome

    def wait_to_its_end(self) -> Result:
        """Wait for work that must not be left half done. Ctrl-C is raised when it has ended, a second one at once."""
        try:
            outcome = self._outcome(None)
        except BaseException:
            self._outcome(None)
            raise
        if isinstance(outcome, Failure):
            outcome.raiseException()
        return outcome

    def _outcome(self, timeout: float | None) -> Result | Failure:
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            outcome: Result | Failure | InCaller = self.next_outcome(deadline)
            if not isinstance(outcome, InCaller):
                return outcome
            self.outcomes.popleft()
            self._run(outcome)

    def _run(self, asked: InCaller) -> None:
        soon = self._thread.soon
        try:
            result = asked.function()
        except Exception:
            soon(asked.done.errback, Failure())
        else:
            soon(asked.done.callback, result)

    def _cancelled(self) -> Result | Failure:
        """Cancel the work; return how it ended."""
        self._thread.soon(self._cancel)
        try:
            return self._outcome(CANCEL_SECONDS)
        except queue.Empty:
            return Failure(defer.CancelledError())

    def _cancel(self) -> None:
        if self._running is not None:
            self._running.cancel()
