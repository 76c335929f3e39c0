"""A reactor in its own thread, for servers in processes whose own code does not run on Twisted, or on another loop.

It is not the reactor that `twisted.internet.reactor` names: that one stays the program's to choose and to run. Nor is it the
loop of twisted_mq.blocking, which has clients alone, no listening sockets, and ends with the last of them.
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
    """The best reactor of this platform; it is installed nowhere."""
    try:
        from twisted.internet.epollreactor import EPollReactor as Reactor
    except ImportError:  # Linux alone has epoll
        from twisted.internet.selectreactor import SelectReactor as Reactor
    reactor: ReactorBase = Reactor()
    reactor._registerAsIOThread = False
    return reactor


class ReactorThread:
    """Runs until the process ends, which it does not keep from ending."""

    def __init__(self) -> None:
        self._base = make_reactor()
        self.reactor = cast(interfaces.IReactorTime, self._base)
        follow_monotonic_time(self.reactor)
        self.process_id = os.getpid()
        pool = self._base.getThreadPool()
        pool.threadFactory = functools.partial(threading.Thread, daemon=True)  # type: ignore[assignment]
        threading.Thread(target=self._base.run, args=(False,), name="mq reactor", daemon=True).start()

    def call(self, work: Callable[[], Result]) -> Result:
        """Run `work` in the reactor's thread; return or raise what it ends with."""
        result: Result = threads.blockingCallFromThread(self._base, work)
        return result

    def wait_for(self, work: Callable[[], Awaitable[Result]]) -> Result:
        """As `call`, for what answers later."""
        waited: Any = threads.blockingCallFromThread(self._base, work)
        result: Result = waited
        return result


_made: ReactorThread | None = None
_making = threading.Lock()


def shared_thread() -> ReactorThread:
    """The thread of this process, begun at the first call; in a child that was forked it is another one."""
    global _made
    with _making:
        if _made is None or _made.process_id != os.getpid():
            _made = ReactorThread()
        return _made
