"""Threads for the listener of one consumer: it may block, the background thread goes on meanwhile."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import TypeVar

from twisted.internet import defer, threads
from twisted.python.threadpool import ThreadPool

from twisted_mq.aio.loop_reactor import LoopReactor

Messages = TypeVar("Messages")
Context = TypeVar("Context")
Status = TypeVar("Status")


class DaemonPool(ThreadPool):
    """Its threads do not keep the process alive: a listener that hangs shall not hang its end."""

    threadFactory = functools.partial(threading.Thread, daemon=True)  # type: ignore[assignment]  # called alone


class ListenerThreads:
    """At most `count` threads, started when they are first needed."""

    def __init__(self, reactor: LoopReactor, count: int, name: str) -> None:
        self._reactor = reactor
        self._count = count
        self._name = name
        self._pool: ThreadPool | None = None

    def calling(
        self, listener: Callable[[Messages, Context], Status]
    ) -> Callable[[Messages, Context], defer.Deferred[Status]]:
        """The listener, called in one of the threads."""
        return lambda messages, context: threads.deferToThreadPool(
            self._reactor, self._started(), listener, messages, context
        )

    def _started(self) -> ThreadPool:
        if self._pool is None:
            self._pool = DaemonPool(0, self._count, self._name)
            self._pool.start()
        return self._pool

    def stop(self) -> None:
        """End the threads that are idle, and the others when their call returns; waits for none."""
        pool, self._pool = self._pool, None
        if pool is not None:
            threading.Thread(target=pool.stop, name=f"end of {self._name}", daemon=True).start()
