"""The event loop of plain calls, which a caller runs himself while he waits, and a thread when no caller does.

So a call changes no threads: its caller begins it, sleeps until something comes for it, and goes on where the answer was read.
Whoever holds `_running` runs the loop; nobody else touches what is in it. A caller takes it where it is free, else he waits for
who has it. A caller who leaves it while others wait calls the thread back; it steps aside again for calls that come one at a
time. It takes the loop back, too, when no caller has run it for REST_SECONDS, so that whatever else is in it goes on; and it
never steps aside while it `stays`: for listeners, whose messages would come by fits and starts.
"""

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

from twisted_mq.blocking.held_signals import HeldSignals, in_main_thread
from twisted_mq.client.core.errors import ClientStateError, ForkedProcess

Due: TypeAlias = tuple[contextvars.Context, Callable[..., object], tuple[object, ...]]
"""To be called: in these contextvars, this function, with these arguments."""

REST_SECONDS = 0.005
"""After so long without a caller the thread runs the loop: longer than most programs take from one call to the next."""

CALLS_ALONE = 4
"""After so many calls of which each waited alone the thread steps aside."""


class Waits:
    """Of one call: what its caller is told. It is taken out by who has seen it: a signal's handler may raise where it is got."""

    __slots__ = ("outcomes", "wake")

    def __init__(self) -> None:
        self.outcomes: collections.deque[Any] = collections.deque()
        self.wake: queue.SimpleQueue[None] = queue.SimpleQueue()
        """An item where the caller has to look: for an outcome, or for the loop that has become free."""


class DueSelector(selectors.DefaultSelector):
    """The selector of the loop: before the loop sleeps, it looks whether any thread has a function to be called.

    So threads wake the loop while it sleeps, and only then.
    """

    def __init__(self, due: Sized, awake: Callable[[], object], late: Callable[[], object]) -> None:
        """`awake` is called where something is due after a sleep, unless whoever ended it sees to that; `late` past the
        deadline."""
        super().__init__()
        self._due = due
        self._awake = awake
        self._late = late
        self.asleep = False
        self.deadline: float | None = None
        """On the clock time.monotonic()."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if self.deadline is not None:
            left = max(0.0, self.deadline - time.monotonic())
            timeout = left if timeout is None else min(left, timeout)
        self.asleep = True  # before the look: who adds something after it finds this set
        events = super().select(0 if self._due else timeout)
        if self.asleep:  # nobody has woken it, who sees to what is due
            self.asleep = False
            if self._due:
                self._awake()
        if self.deadline is not None and time.monotonic() >= self.deadline:
            self._late()
        return events


class LoopThread:
    """An event loop until `stop`, and its thread."""

    def __init__(self, *, stays: int = 0) -> None:
        self._due: collections.deque[Due] = collections.deque()
        self._selector = DueSelector(self._due, lambda: self._loop.call_soon(self._run_due), lambda: self._loop.stop())
        self._loop = asyncio.SelectorEventLoop(self._selector)
        self._pid = os.getpid()
        self._stopped = False
        self.stays = stays
        """How many need the thread to run the loop at all times."""
        self._running = threading.Lock()
        self._runs_for: Waits | None = None
        """Whose caller runs the loop; None while the thread does, or nobody."""
        self._waiting: dict[Waits, None] = {}
        """Those whose caller does not run it."""
        self._next: Waits | None = None
        """For which the thread steps aside."""
        self._caller_turns = self._alone = 0
        self._recall = threading.Lock()
        self._recall.acquire()
        self._thread = threading.Thread(target=self._live, name="rocketmq", daemon=True)
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

    # a caller that waits

    def tell(self, call: Waits, outcome: object) -> None:
        """Let the caller have it. Called in the loop."""
        call.outcomes.append(outcome)
        call.wake.put(None)
        if self._runs_for is call:
            self._loop.stop()

    def next_outcome(self, call: Waits, deadline: float | None) -> Any:
        """What the call is told next, at the latest at the deadline on the clock time.monotonic(): then raises queue.Empty."""
        outcomes = call.outcomes
        while not outcomes:
            if self.stays or not self._run_in_caller(call, deadline):
                try:
                    call.wake.get(timeout=None if deadline is None else max(0.0, deadline - time.monotonic()))
                finally:
                    self._waiting.pop(call, None)
            elif deadline is not None and time.monotonic() >= deadline and not outcomes:
                raise queue.Empty
        return outcomes[0]

    def _run_in_caller(self, call: Waits, deadline: float | None) -> bool:
        """Whether the loop was free, and ran here until something was told; if not, the call counts as waiting."""
        if not in_main_thread():
            return self._run_if_free(call, deadline)
        with HeldSignals(self._have_stop):
            return self._run_if_free(call, deadline)

    def _run_if_free(self, call: Waits, deadline: float | None) -> bool:
        if not self._running.acquire(blocking=False):
            self._waiting[call] = None
            if not self._running.acquire(blocking=False):  # whoever leaves the loop from now on sees it
                self._ask_thread(call)
                return False
            del self._waiting[call]
        self._caller_turns += 1
        self._run(call, deadline)
        return True

    def _ask_thread(self, call: Waits) -> None:
        """Have it step aside, if it runs the loop for one caller at a time."""
        self._alone = self._alone + 1 if len(self._waiting) == 1 else 0
        if self._alone > CALLS_ALONE and self._runs_for is None:
            self._due.append((contextvars.copy_context(), self._step_aside, (call,)))
            if self._selector.asleep:
                self._wake()

    def _step_aside(self, call: Waits) -> None:
        if self._runs_for is None and call in self._waiting and not self.stays:
            self._next = call
            self._loop.stop()

    def _have_stop(self) -> None:
        """Whoever runs the loop leaves it; it is no harm to him who would go on."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._loop.stop)

    def _run(self, call: Waits | None, deadline: float | None) -> None:
        """Run the loop until something is told to the call, or the deadline; without a call until the thread steps aside."""
        self._runs_for, self._selector.deadline = call, deadline
        try:
            self._loop.run_forever()
        finally:
            self._runs_for = None
            after, self._next = self._next, None
            self._running.release()
            if after is not None:
                after.wake.put(None)
            elif self._waiting:
                self._call_back()

    # the thread

    def _live(self) -> None:
        self._running.acquire()
        while not self._stopped:
            self._run(None, None)
            self._rest()
        self._loop.call_soon(self._end)
        self._loop.run_forever()

    def _rest(self) -> None:
        """Leave the loop to callers until none has run it for a while, or it is needed here; then it is free, and taken."""
        while True:
            turns = self._caller_turns
            self._recall.acquire(timeout=REST_SECONDS)
            if self.stays or self._stopped or self._waiting:
                self._running.acquire()
                return
            if turns == self._caller_turns and self._running.acquire(blocking=False):
                return

    def stay(self) -> None:
        """Have the thread run the loop at all times, until `part` is called as often."""
        self.stays += 1
        self._call_back()

    def part(self) -> None:
        """See `stay`."""
        self.stays -= 1

    def _call_back(self) -> None:
        if self._recall.locked():
            self._recall.release()

    def stop(self) -> None:
        """End the thread, after all that was to be called; what ran in its loop has ended before."""
        self._stopped = True
        self._have_stop()
        self._call_back()
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
