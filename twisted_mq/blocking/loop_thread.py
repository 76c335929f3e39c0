"""The event loop of plain calls, in a thread of its own: what others have it call, and what their callers wait for."""

from __future__ import annotations

import asyncio
import collections
import contextvars
import os
import queue
import selectors
import threading
import time
from collections.abc import Callable, Sized
from typing import Any, TypeAlias

from twisted_mq.client.core.errors import ClientStateError, ForkedProcess

Due: TypeAlias = tuple[contextvars.Context, Callable[..., object], tuple[object, ...]]
"""To be called: in these contextvars, this function, with these arguments."""


class Waits:
    """Of one call: what its caller is told. It is taken out by who has seen it: a signal's handler may raise where it is got."""

    __slots__ = ("outcomes", "wake")

    def __init__(self) -> None:
        self.outcomes: collections.deque[Any] = collections.deque()
        self.wake: queue.SimpleQueue[None] = queue.SimpleQueue()
        """An item for each outcome."""

    def tell(self, outcome: object) -> None:
        """Let the caller have it. Called in the loop."""
        self.outcomes.append(outcome)
        self.wake.put(None)

    def next_outcome(self, deadline: float | None) -> Any:
        """What the call is told next, at the latest at the deadline on the clock time.monotonic(): then raises queue.Empty."""
        while not self.outcomes:
            self.wake.get(timeout=None if deadline is None else max(0.0, deadline - time.monotonic()))
        return self.outcomes[0]


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
        self.lock_of_futures = threading.Condition()
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

    # what is to be called

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


def check_no_loop() -> None:
    """Raises ClientStateError in a thread that runs an event loop."""
    if asyncio._get_running_loop() is not None:  # other than get_running_loop it makes no exception where none runs
        raise ClientStateError(
            "a blocking call would stop the event loop that runs in this thread: use the same names of twisted_mq.aio and "
            "await them (in Jupyter, too), or call in a thread: await asyncio.to_thread(...)"
        )
