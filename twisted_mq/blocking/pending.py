"""Futures of calls that run while their caller goes on."""

from __future__ import annotations

import collections
import concurrent.futures
import queue
import time
from collections.abc import Callable
from concurrent.futures._base import FINISHED, PENDING
from typing import Any, TypeVar

from twisted.internet import defer
from twisted.python.failure import Failure

from twisted_mq.blocking.callers import Caller
from twisted_mq.blocking.loop_thread import LoopThread

Result = TypeVar("Result")


class Pending(concurrent.futures.Future[Result]):
    """A concurrent.futures.Future of a call in the loop.

    It can't be cancelled: the call may already have had its effect.
    """

    def __init__(self, thread: LoopThread) -> None:
        # as Future.__init__, except for the condition, which is slow to make: no thread waits on it, so all share one as a lock
        self._condition = thread.lock_of_futures
        self._state = PENDING
        self._result = None
        self._exception = None
        self._waiters: list[Any] = []
        self._done_callbacks: list[Callable[[Any], object]] = []
        self._thread = thread
        self._waiting: list[Caller] = []

    def cancel(self) -> bool:
        return False

    def running(self) -> bool:
        return not self.done()

    def begin(self, work: Callable[[], defer.Deferred[Result]]) -> None:
        """Begin the work. Called in the loop."""
        try:
            work().addBoth(self._settle)
        except Exception:
            self._settle(Failure())

    def _settle(self, result: Result | Failure) -> None:
        if isinstance(result, Failure):
            self.set_exception(result.value)
        else:
            self.set_result(result)
        for caller in self._waiting:  # a caller that comes now sees that it is done
            caller.tell(None)

    def done(self) -> bool:
        # without the lock, which may be held for ever in a fork; the result is set before the state
        return self._state == FINISHED

    def result(self, timeout: float | None = None) -> Result:
        error = self.exception(timeout)
        if error is None:
            return self._result  # type: ignore[return-value]
        try:
            raise error
        finally:
            del error, self  # else they and the error's traceback refer to each other

    def exception(self, timeout: float | None = None) -> BaseException | None:
        self.wait(timeout)
        if not self.done():
            raise TimeoutError
        return self._exception

    def wait(self, timeout: float | None = None) -> None:
        """Wait until it is done, or the time is over. Raises ClientStateError or ForkedProcess if it can't become done."""
        if self.done():
            return
        self._thread.check_caller()
        caller, deadline = Caller(self._thread.row), None if timeout is None else time.monotonic() + timeout
        self._waiting.append(caller)
        if self.done():  # else the loop wakes the caller
            return
        try:
            caller.next_outcome(deadline)
        except queue.Empty:
            return


class Window:
    """A limit of calls in flight: a thread that begins one more waits for the oldest."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._begun: collections.deque[Pending[Any]] = collections.deque()

    def add(self, pending: Pending[Any]) -> None:
        """Add a call that has begun; wait while too many are in flight."""
        self._begun.append(pending)
        while len(self._begun) > self._size:
            try:
                oldest = self._begun.popleft()
            except IndexError:  # another thread was faster
                break
            oldest.wait()
