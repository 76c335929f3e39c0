"""Threads for a listener that blocks: the reactor goes on meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from twisted.internet import defer, interfaces, threads
from twisted.python.threadpool import ThreadPool

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


class _Daemon(threading.Thread):
    """Does not keep the process alive: a listener that hangs shall not hang its end."""

    def __init__(self, *arguments: Any, **named: Any) -> None:  # those of a Thread
        super().__init__(*arguments, **named, daemon=True)


class _DaemonPool(ThreadPool):
    threadFactory = _Daemon


class ListenerThreads:
    """At most `count` threads of one consumer, started when they are first needed."""

    def __init__(self, reactor: interfaces.IReactorTime, count: int, name: str) -> None:
        self._threaded = interfaces.IReactorThreads(reactor, None)
        self._count = count
        self._name = name
        self._pool: ThreadPool | None = None

    def call(
        self, function: Callable[Arguments, Answer], *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> defer.Deferred[Answer]:
        """What the function returns or raises, in a thread; a reactor without threads (a Clock) runs it at once."""
        if self._threaded is None:
            return defer.execute(function, *arguments, **named)
        if self._pool is None:
            self._pool = _DaemonPool(0, self._count, self._name)
            self._pool.start()
        return threads.deferToThreadPool(self._threaded, self._pool, function, *arguments, **named)

    def stop(self) -> None:
        """End the threads that are idle, and the others when their call returns."""
        pool, self._pool = self._pool, None
        if pool is not None:
            _Daemon(target=pool.stop, name=f"end of {self._name}").start()  # which joins the threads
