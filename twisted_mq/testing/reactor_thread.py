"""Runs a reactor in its own thread, for servers in processes whose own code does not run on Twisted, or on another loop.

It is not the reactor of `twisted.internet.reactor`, which the program can still choose and run. Nor is it the loop of
twisted_mq.blocking, which serves only clients, has no listening sockets, and ends with the last client.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

from twisted.internet import interfaces, threads
from twisted.internet.base import ReactorBase

from twisted_mq.clocks import follow_monotonic_time

Result = TypeVar("Result")


def make_reactor() -> ReactorBase:
    """Return the best reactor of this platform, without installing it."""
    try:
        from twisted.internet.epollreactor import EPollReactor as Reactor
    except ImportError:  # only Linux has epoll
        from twisted.internet.selectreactor import SelectReactor as Reactor
    reactor: ReactorBase = Reactor()
    reactor._registerAsIOThread = False
    return reactor


class ReactorThread:
    """A reactor that runs until the process ends; it does not keep the process from ending."""

    def __init__(self) -> None:
        self._base = make_reactor()
        self.reactor = cast(interfaces.IReactorTime, self._base)
        follow_monotonic_time(self.reactor)
        self.process_id = os.getpid()
        pool = self._base.getThreadPool()
        pool.threadFactory = functools.partial(threading.Thread, daemon=True)  # type: ignore[assignment]
        threading.Thread(target=self._base.run, args=(False,), name="mq reactor", daemon=True).start()

    def call(self, work: Callable[[], Result]) -> Result:
        """Run `work` in the reactor's thread; return its result or raise its error."""
        result: Result = threads.blockingCallFromThread(self._base, work)
        return result

    def wait_for(self, work: Callable[[], Awaitable[Result]]) -> Result:
        """Like `call`, for work that ends later."""
        waited: Any = threads.blockingCallFromThread(self._base, work)
        result: Result = waited
        return result


_made: ReactorThread | None = None
_making = threading.Lock()


def shared_thread() -> ReactorThread:
    """Return the thread of this process, started at the first call; a forked child gets another one."""
    global _made
    with _making:
        if _made is None or _made.process_id != os.getpid():
            _made = ReactorThread()
        return _made
