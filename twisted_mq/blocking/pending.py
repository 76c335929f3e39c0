"""What a call that nobody waits for yet comes to."""

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
    """A future of the standard library's kind.

    It can't be cancelled: what has begun may have had its effect.
    """

    def __init__(self, thread: LoopThread) -> None:
        # as Future.__init__, but for the condition, which is dear: none waits on it here, so that all share it as their lock
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
        """In the loop."""
        try:
            work().addBoth(self._settle)
        except Exception:
            self._settle(Failure())

    def _settle(self, result: Result | Failure) -> None:
        if isinstance(result, Failure):
            self.set_exception(result.value)
        else:
            self.set_result(result)
        for caller in self._waiting:  # who comes now sees that it is done
            caller.tell(None)

    def done(self) -> bool:
        # without the lock, which in a child of this process may be held for ever; what it comes to is there before
        return self._state == FINISHED

    def result(self, timeout: float | None = None) -> Result:
        error = self.exception(timeout)
        if error is None:
            return self._result  # type: ignore[return-value]
        try:
            raise error
        finally:
            del error, self  # else the error's traceback has both, and they have the error

    def exception(self, timeout: float | None = None) -> BaseException | None:
        self.wait(timeout)
        if not self.done():
            raise TimeoutError
        return self._exception

    def wait(self, timeout: float | None = None) -> None:
        """Until it is done, or the time is over. Raises ClientStateError, ForkedProcess, where it can't be done before."""
        if self.done():
            return
        self._thread.check_caller()
        caller, deadline = Caller(self._thread.row), None if timeout is None else time.monotonic() + timeout
        self._waiting.append(caller)
        if self.done():  # else it is told when it is
            return
        try:
            caller.next_outcome(deadline)
        except queue.Empty:
            return


class Window:
    """Of the calls that were begun so many are not done at a time: who begins one more waits for the oldest."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._begun: collections.deque[Pending[Any]] = collections.deque()

    def add(self, pending: Pending[Any]) -> None:
        """It has begun."""
        self._begun.append(pending)
        while len(self._begun) > self._size:
            try:
                oldest = self._begun.popleft()
            except IndexError:  # in another thread
                break
            oldest.wait()
