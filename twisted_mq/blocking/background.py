"""One thread for all plain calls of a process: an event loop in which the client core runs while anything is started.

A call begins on that thread, and its caller waits. In a child of a fork there is no such thread: what was started before is
refused there (ForkedProcess), what is made there has a thread of its own.
"""

from __future__ import annotations

import asyncio
import atexit
import collections
import contextvars
import os
import queue
import selectors
import threading
import time
from collections.abc import Callable, Sized
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import attrs
from twisted.internet import defer
from twisted.python.failure import Failure

from twisted_mq.client.core.errors import ClientError, ClientStateError, ForkedProcess

Result = TypeVar("Result")
Answer = TypeVar("Answer")

Due: TypeAlias = tuple[contextvars.Context, Callable[..., object], tuple[object, ...]]
"""To be called: in these contextvars, this function, with these arguments."""

CANCEL_SECONDS = 10.0
"""How long a call that was cancelled may take to end: a consumer's start tells brokers that it is gone."""

EXIT_SECONDS = 1.0
"""What is still started when the interpreter ends may finish for that long."""


class CallTimedOut(ClientError, TimeoutError):
    """A call took longer than its `timeout`; it was given up, and may have had its effect."""


class Stops(Protocol):
    """What is started, and stopped at the interpreter's end where its user does not."""

    def stop(self, finish_seconds: float | None = None) -> None:
        """Harmless twice."""


@attrs.frozen
class InCaller:
    """A function that a call wants run in its caller's thread, which waits for the call anyway."""

    function: Callable[[], object]
    done: defer.Deferred[Any]


class Call(Generic[Result]):
    """One call: `begin` and `wait` in the caller's thread, the work on the loop's."""

    def __init__(self, soon: Callable[..., None]) -> None:
        """`soon` has the loop's thread call a function with arguments."""
        self._soon = soon
        self._running: defer.Deferred[None] | None = None
        self._outcomes: queue.SimpleQueue[Result | Failure | InCaller] = queue.SimpleQueue()

    def begin(self, work: Callable[[], defer.Deferred[Result]]) -> None:
        """Have the loop's thread begin."""
        self._soon(self._begin, work)

    def _begin(self, work: Callable[[], defer.Deferred[Result]]) -> None:
        try:
            self._running = work().addBoth(self._outcomes.put)
        except Exception:
            self._outcomes.put(Failure())

    def in_caller(self, function: Callable[[], Answer]) -> defer.Deferred[Answer]:
        """Have the caller's thread call a function."""
        done: defer.Deferred[Any] = defer.Deferred()
        self._outcomes.put(InCaller(function, done))
        return done

    def wait(self, timeout: float | None) -> Result:
        """The result; raises what the work failed with, or CallTimedOut."""
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
        """As `wait`, for work that must not be left half done: Ctrl-C is raised when it has ended, a second one at once."""
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
            outcome = self._outcomes.get(timeout=None if deadline is None else max(0.0, deadline - time.monotonic()))
            if not isinstance(outcome, InCaller):
                return outcome
            self._run(outcome)

    def _run(self, asked: InCaller) -> None:
        try:
            result = asked.function()
        except Exception:
            self._soon(asked.done.errback, Failure())
        else:
            self._soon(asked.done.callback, result)

    def _cancelled(self) -> Result | Failure:
        """Cancel the work; how it ended all the same."""
        self._soon(self._cancel)
        try:
            return self._outcome(CANCEL_SECONDS)
        except queue.Empty:
            return Failure(defer.CancelledError())

    def _cancel(self) -> None:
        if self._running is not None:
            self._running.cancel()


class DueSelector(selectors.DefaultSelector):
    """The selector of a loop's thread: before the loop sleeps, it looks whether any thread has a function to be called.

    So threads wake the loop while it sleeps, and only then.
    """

    def __init__(self, due: Sized, awake: Callable[[], object]) -> None:
        """`awake` is called where something is due after a sleep, unless whoever ended it sees to that."""
        super().__init__()
        self._due = due
        self._awake = awake
        self.asleep = False

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.asleep = True  # before the look: who adds something after it finds this set
        events = super().select(0 if self._due else timeout)
        if self.asleep:  # nobody has woken it, who sees to what is due
            self.asleep = False
            if self._due:
                self._awake()
        return events


class LoopThread:
    """A thread that runs an event loop until `stop`."""

    def __init__(self) -> None:
        self._due: collections.deque[Due] = collections.deque()
        self._selector = DueSelector(self._due, lambda: self._loop.call_soon(self._run_due))
        self._loop = asyncio.SelectorEventLoop(self._selector)
        self._pid = os.getpid()
        self._stopped = False
        self._thread = threading.Thread(target=self._loop.run_forever, name="rocketmq", daemon=True)
        self._thread.start()

    @property
    def is_ours(self) -> bool:
        """Whether this is the process that started it, and no child of that."""
        return os.getpid() == self._pid

    def check_caller(self) -> None:
        """Raises ClientStateError in a thread that runs an event loop, ForkedProcess in a child of this process."""
        pid = os.getpid()
        if pid != self._pid:
            raise ForkedProcess(self._pid, pid)
        check_no_loop()

    def begin(self, work: Callable[[], defer.Deferred[Result]]) -> Call[Result]:
        """A call of `work`, to be waited for."""
        self.check_caller()
        call: Call[Result] = Call(self.soon)
        call.begin(work)
        return call

    def soon(self, function: Callable[..., object], *arguments: object) -> None:
        """Have the loop call the function, in the contextvars of now. Raises ClientStateError once the thread is stopped.

        Calls that come before the loop sleeps do not wake it, those that come before it is awake wake it once.
        """
        self._due.append((contextvars.copy_context(), function, arguments))
        if self._stopped:  # else it is called: the end of the loop comes behind it
            raise ClientStateError("this was stopped in another thread meanwhile")
        if self._selector.asleep:
            self._wake()

    def _wake(self) -> None:
        try:
            self._selector.asleep = False
            self._loop.call_soon_threadsafe(self._run_due)
        except BaseException as error:  # Ctrl-C: the next call wakes it
            self._selector.asleep = True
            if not isinstance(error, RuntimeError) or not self._loop.is_closed():  # else all was called before
                raise

    def _run_due(self) -> None:
        due = self._due
        for _ in range(len(due)):
            context, function, arguments = due.popleft()
            try:
                context.run(function, *arguments)
            except Exception as error:
                self._loop.call_exception_handler({"message": f"{function} failed", "exception": error})

    def stop(self) -> None:
        """End the thread, after all that was to be called; what ran in its loop has ended before."""
        self._stopped = True
        self._loop.call_soon_threadsafe(self._end)
        self._thread.join()
        self._loop.close()

    def _end(self) -> None:
        self._run_due()
        self._loop.stop()


class Background:
    """The thread of this process, while anything uses it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._members: list[Stops] = []
        self._thread: LoopThread | None = None

    def enter(self, member: Stops) -> LoopThread:
        """The thread, for a member that begins."""
        check_no_loop()
        with self._lock:
            if self._thread is None:
                self._thread = LoopThread()
            self._members.append(member)
            return self._thread

    def leave(self, member: Stops) -> None:
        """A member has ended; with the last one the thread ends."""
        with self._lock:
            self._members.remove(member)
            if self._members or self._thread is None:
                return
            thread, self._thread = self._thread, None
            thread.stop()

    def stop_all(self) -> None:
        """The interpreter ends: what is started stops."""
        for member in list(self._members):
            member.stop(EXIT_SECONDS)


def check_no_loop() -> None:
    """Raises ClientStateError in a thread that runs an event loop."""
    if asyncio._get_running_loop() is not None:  # other than get_running_loop it makes no exception where none runs
        raise ClientStateError(
            "a blocking call would stop the event loop that runs in this thread: use the same names of twisted_mq.aio and "
            "await them (in Jupyter, too), or call in a thread: await asyncio.to_thread(...)"
        )


_background = Background()


def background() -> Background:
    """Of this process."""
    return _background


def _forget() -> None:
    """In a child: the thread is the parent's, and nothing of it works here."""
    global _background
    _background = Background()


os.register_at_fork(after_in_child=_forget)
atexit.register(lambda: _background.stop_all())
