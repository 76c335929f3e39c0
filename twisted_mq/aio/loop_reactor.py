"""A Twisted reactor on top of an asyncio loop that the application runs. The client core gets it as `reactor`.

It is never installed, started or stopped. It has no thread and no file descriptor of its own, and leaves nothing in the
loop that its users do not leave. Sockets are the loop's readers and writers, timers are the loop's timers, threads are those
of the loop's executor.
"""

from __future__ import annotations

import asyncio
import functools
import os
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from twisted.internet import error, interfaces
from twisted.internet.asyncioreactor import AsyncioSelectorReactor
from twisted.python.failure import Failure
from zope.interface import implementer

from twisted_mq.client.core.errors import ClientStateError, ForkedProcess
from twisted_mq.clocks import steady

Result = TypeVar("Result")


@implementer(interfaces.IDelayedCall)
class LoopCall:
    """A timer of the loop, as Twisted's IDelayedCall."""

    __slots__ = ("_call", "_cancelled", "_due", "_handle", "_reactor")

    def __init__(self, reactor: LoopReactor, seconds: float, call: Callable[[], object]) -> None:
        self._reactor = reactor
        self._call: Callable[[], object] | None = call
        self._cancelled = False
        self._begin(seconds)

    def _begin(self, seconds: float) -> None:
        loop = self._reactor.loop
        self._due = loop.time() + seconds
        self._handle: asyncio.Handle = loop.call_at(self._due, self._run) if seconds > 0 else loop.call_soon(self._run)

    def _run(self) -> None:
        call, self._call = self._call, None
        assert call is not None  # it runs once
        call()

    def _check(self) -> None:
        if self._call is None:
            raise error.AlreadyCancelled if self._cancelled else error.AlreadyCalled

    def active(self) -> bool:
        return self._call is not None

    def cancel(self) -> None:
        self._check()
        self._cancelled, self._call = True, None
        self._handle.cancel()

    def getTime(self) -> float:
        return self._reactor.seconds() + self._due - self._reactor.loop.time()

    def reset(self, secondsFromNow: float) -> None:
        self._check()
        self._handle.cancel()
        self._begin(secondsFromNow)

    def delay(self, secondsLater: float) -> None:
        self.reset(self._due - self._reactor.loop.time() + secondsLater)


class LoopThreads:
    """The loop's executor, with the one method of Twisted's ThreadPool that the core uses."""

    def __init__(self, reactor: LoopReactor) -> None:
        self._reactor = reactor

    def callInThreadWithCallback(
        self,
        onResult: Callable[[bool, object], object],
        func: Callable[..., object],
        *args: object,
        **kw: object,
    ) -> None:
        def work() -> None:
            try:
                result = func(*args, **kw)
            except Exception:
                onResult(False, Failure())
            else:
                onResult(True, result)

        self._reactor.loop.run_in_executor(None, work)


class LoopReactor(AsyncioSelectorReactor):
    """The reactor of one client. It uses the loop that runs when the client's first member starts."""

    def __init__(self) -> None:
        self._threads = LoopThreads(self)
        self._members = 0
        self._pid = os.getpid()
        super().__init__(eventloop=_NO_LOOP)
        self.seconds = steady()

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop of the members. Raises ClientStateError before the first member has started."""
        loop: asyncio.AbstractEventLoop = self._asyncioEventloop
        if loop is _NO_LOOP:
            raise ClientStateError("this client is not started; use `async with` or `await start()` first")
        return loop

    def enter(self) -> None:
        """Add a member, in the running loop. Raises ClientStateError if other members run in another loop."""
        loop = asyncio.get_running_loop()
        if self._members and loop is not self._asyncioEventloop:
            self._check_process()
            raise ClientStateError(
                "this client runs in another event loop; if that loop is closed, create a new client in this one"
            )
        if sys.platform == "win32" and isinstance(loop, asyncio.ProactorEventLoop):
            raise ClientStateError(
                "asyncio's ProactorEventLoop cannot watch sockets; run the program in a SelectorEventLoop: "
                "with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner: runner.run(main())"
            )
        self._asyncioEventloop = loop
        self._members += 1
        self.running = True

    def leave(self) -> None:
        """Remove a member that has nothing left in the loop."""
        self._members -= 1
        self.running = self._members > 0

    def check_loop(self) -> asyncio.AbstractEventLoop:
        """Return the running loop. Raises ClientStateError if the members started in another one, ForkedProcess in a fork."""
        loop = asyncio.get_running_loop()
        if loop is not self._asyncioEventloop:
            self._check_process()
            self.loop  # noqa: B018 - raises if nothing was started yet
            raise ClientStateError(
                "this client was started in another event loop (another thread, or an asyncio.run before); "
                "use it there, or create a client in this loop"
            )
        return loop

    def _check_process(self) -> None:
        pid = os.getpid()
        if pid != self._pid:
            raise ForkedProcess(self._pid, pid)

    # methods that Twisted calls

    def installWaker(self) -> None:
        """Do nothing: the loop has its own waker."""

    def callLater(  # type: ignore[override]  # IReactorTime promises only this
        self, delay: float, callable: Callable[..., Any], *args: object, **kw: object
    ) -> interfaces.IDelayedCall:
        return LoopCall(self, delay, functools.partial(callable, *args, **kw))

    def callFromThread(self, f: Callable[..., Any], *args: object, **kwargs: object) -> None:  # type: ignore[override]
        loop = self.loop
        if not loop.is_closed():  # else nothing waits for the thread's result
            loop.call_soon_threadsafe(functools.partial(f, *args, **kwargs))

    def getThreadPool(self) -> LoopThreads:  # type: ignore[override]  # deferToThreadPool needs only this
        return self._threads


_NO_LOOP = asyncio.AbstractEventLoop()  # type: ignore[abstract]  # only for mypy: it has no abstract method
"""The placeholder for the loop until the first member starts."""
