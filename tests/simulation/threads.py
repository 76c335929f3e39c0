"""Threads on virtual time: greenlets, so that only one runs at a time, and only when it is resumed.

A thread runs from one wait to the next; at each it returns control to the world, whose clock decides when it continues. So code
for threads runs unchanged, and the same seed gives the same order. Waits use the world's clock, not the host's, like those of a
system's threads.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from greenlet import getcurrent, greenlet
from twisted.python import failure

from twisted_mq.testing.virtual_network import VirtualHost


class Killed(BaseException):
    """The thread's process is no more."""


class VirtualThread:
    """A thread of a process; see `VirtualThreads`."""

    def __init__(self, owner: VirtualThreads, run: Callable[[], None]) -> None:
        self.owner = owner
        self.killed = False
        self.woken = False
        self._run_it = run
        self._alive = True
        self._ended = VirtualEvent(owner)
        self._timer: Any = None
        self._trace = sys.gettrace()
        self._greenlet = greenlet(self._run)

    def _run(self) -> None:
        if self._trace is not None:
            sys.settrace(self._trace)  # a greenlet begins without
        try:
            if not self.killed:
                self._run_it()
        except Killed:
            pass
        except BaseException:
            self.owner.errors.append(failure.Failure())
        self._alive = False
        if not self.killed:
            self._ended.set()

    def is_alive(self) -> bool:
        return self._alive

    def resume(self) -> None:
        """Have it run until it waits or ends; called by the world."""
        owner = self.owner
        if owner.host.is_paused and not self.killed:
            self.resume_in(owner.pause_seconds)
            return
        self._cancel()
        before, owner.world.running = owner.world.running, self
        self._greenlet.parent = getcurrent()
        self._greenlet.switch()
        owner.world.running = before

    def resume_in(self, seconds: float) -> None:
        """Have it go on then, at the latest."""
        self._cancel()
        self._timer = self.owner.host.network.clock.callLater(seconds, self.resume)

    def _cancel(self) -> None:
        if self._timer is not None and self._timer.active():
            self._timer.cancel()

    def park(self, seconds: float | None) -> None:
        """Wait, at most so long; called in the thread itself. Raises Killed."""
        self.woken = False
        if seconds is not None:
            self.resume_in(seconds)
        self._greenlet.parent.switch()
        if self.killed:
            raise Killed

    def wake(self) -> None:
        """Resume the thread after its wait."""
        if not self.woken and not self.killed:
            self.woken = True
            self.resume_in(self.owner.wake_seconds())

    def join(self) -> None:
        """Wait for its end; the reactor, which cannot wait, lets it run on at once."""
        if self.owner.world.running is not None:
            while self._alive:
                self._ended.wait(None)
            return
        while self._alive:
            self.resume()

    def kill(self) -> None:
        self.killed = True
        while self._alive:
            self.resume()


class VirtualEvent:
    """As threading.Event."""

    def __init__(self, owner: VirtualThreads) -> None:
        self._owner = owner
        self._set = False
        self._waiting: list[VirtualThread] = []

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        self._set = True
        waiting, self._waiting = self._waiting, []
        for thread in waiting:
            thread.wake()

    def clear(self) -> None:
        self._set = False

    def wait(self, timeout: float | None = None) -> bool:
        if not self._set and timeout != 0:
            thread = self._owner.current()
            self._waiting.append(thread)
            thread.park(self._owner.coarse(timeout))
            if thread in self._waiting:
                self._waiting.remove(thread)
        return self._set


class VirtualCondition:
    """As threading.Condition; nothing waits while it holds the lock, so none is needed."""

    def __init__(self, owner: VirtualThreads) -> None:
        self._owner = owner
        self._waiting: list[VirtualThread] = []

    def __enter__(self) -> bool:
        return True

    def __exit__(self, *error: object) -> None:
        """Nothing was locked."""

    def wait(self, timeout: float | None = None) -> bool:
        thread = self._owner.current()
        self._waiting.append(thread)
        thread.park(self._owner.coarse(timeout))
        if thread in self._waiting:
            self._waiting.remove(thread)
            return False
        return True

    def notify(self) -> None:
        if self._waiting:
            self._waiting.pop(0).wake()

    def notify_all(self) -> None:
        while self._waiting:
            self.notify()


class RunningThread:
    """The thread of all hosts that runs now; None for the reactors."""

    def __init__(self) -> None:
        self.running: VirtualThread | None = None


class VirtualThreads:
    """The threads of one process (storage.flushing.threads), and the thread pool of its reactor.

    A wait that is not ended takes at least `coarse_seconds`: idle threads cost little.
    """

    pause_seconds = 0.1

    def __init__(self, world: RunningThread, host: VirtualHost, coarse_seconds: float) -> None:
        self.world = world
        self.host = host
        self.errors: list[failure.Failure] = []
        self._coarse_seconds = coarse_seconds
        self._threads: list[VirtualThread] = []

    def precise(self) -> VirtualThreads:
        """Return what makes threads of the same process whose waits end when they should."""
        threads = VirtualThreads(self.world, self.host, 0.0)
        threads._threads, threads.errors = self._threads, self.errors
        return threads

    def current(self) -> VirtualThread:
        assert self.world.running is not None, "the reactor may not wait"
        return self.world.running

    def coarse(self, timeout: float | None) -> float | None:
        return None if timeout is None else max(timeout, self._coarse_seconds)

    def wake_seconds(self) -> float:
        """Return the time until a thread is running."""
        return self.host.network.random.random() * 0.001

    # storage.flushing.threads.Threads

    def start(self, run: Callable[[], None], name: str) -> VirtualThread:
        self._threads[:] = [one for one in self._threads if one.is_alive()]
        thread = VirtualThread(self, run)
        self._threads.append(thread)
        thread.resume_in(self.wake_seconds())
        return thread

    def event(self) -> VirtualEvent:
        return VirtualEvent(self)

    def condition(self) -> VirtualCondition:
        return VirtualCondition(self)

    # twisted.python.threadpool.ThreadPool

    def callInThread(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> None:
        self.callInThreadWithCallback(None, function, *arguments, **named)

    def callInThreadWithCallback(
        self, told: Callable[[bool, Any], None] | None, function: Callable[..., Any], *arguments: Any, **named: Any
    ) -> None:
        def run() -> None:
            try:
                result, well = function(*arguments, **named), True
            except Exception:
                result, well = failure.Failure(), False
            if told is not None:
                told(well, result)

        self.start(run, "pool")

    # the world

    def sleep(self, seconds: float) -> None:
        """Sleep for the time of the disk; the reactor does not wait for it."""
        if self.world.running is not None and self.world.running.owner is self:
            self.world.running.park(seconds)

    def kill(self) -> None:
        """The process is no more."""
        for thread in self._threads:
            thread.kill()
