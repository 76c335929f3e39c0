"""Threads for a listener that blocks, so that the reactor keeps running."""

from __future__ import annotations

import collections
import functools
import queue
import threading
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from twisted.internet import defer, interfaces
from twisted.python.failure import Failure

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


class ListenerThreads:
    """At most `count` threads of one consumer, started when they are first needed."""

    def __init__(self, reactor: interfaces.IReactorTime, count: int, name: str) -> None:
        self._threaded = interfaces.IReactorThreads(reactor, None)
        self._count = count
        self._name = name
        self._pool: _Pool | None = None

    def call(
        self, function: Callable[Arguments, Answer], *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> defer.Deferred[Answer]:
        """Return what the function returns or raises in a thread. Without threads in the reactor (a Clock), run it at once."""
        if self._threaded is None:
            return defer.execute(function, *arguments, **named)
        if self._pool is None:
            self._pool = _Pool(self._threaded.callFromThread, self._count, self._name)
        done: defer.Deferred[Answer] = defer.Deferred()
        self._pool.run(done, functools.partial(function, *arguments, **named))
        return done

    def stop(self) -> None:
        """End idle threads now, and the others when their call returns. Calls that have not begun never do."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.stop()


class _Pool:
    """Threads that take calls while any wait.

    While calls wait, a thread is woken or started, and the next one when that has taken a call. So quick calls stay in few
    threads, which saves switches between them, and calls that block have as many threads as they need. Results that come
    together are passed to the reactor together.
    """

    def __init__(self, call_from_thread: Callable[[Callable[[], object]], None], count: int, name: str) -> None:
        self._call_from_thread = call_from_thread
        self._count = count
        self._name = name
        self._lock = threading.Lock()
        self._calls: collections.deque[tuple[defer.Deferred[Any], Callable[[], object]]] = collections.deque()
        self._told: list[tuple[defer.Deferred[Any], object]] = []
        self._go_on: queue.SimpleQueue[None] = queue.SimpleQueue()
        """An item for each idle thread that is woken."""
        self._started = self._idle = 0
        self._one_comes = False
        """A thread was woken or started that has not looked for calls yet."""
        self._stopped = False

    def run(self, done: defer.Deferred[Any], call: Callable[[], object]) -> None:
        self._calls.append((done, call))
        self._have_one_come()

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            self._calls.clear()
            for _ in range(self._idle):
                self._go_on.put(None)

    def _have_one_come(self) -> None:
        with self._lock:
            if self._one_comes or not self._calls:
                return
            if self._idle:
                self._idle -= 1
                self._one_comes = True
                self._go_on.put(None)
            elif self._started < self._count:
                self._started += 1
                self._one_comes = True
                # daemon: a listener that hangs must not keep the process alive
                threading.Thread(target=self._work, name=f"{self._name} {self._started}", daemon=True).start()

    def _work(self) -> None:
        while True:
            with self._lock:
                self._one_comes = False
                if self._calls:
                    taken = self._calls.popleft()
                elif self._stopped:
                    return
                else:
                    taken = None
                    self._idle += 1
            if taken is None:
                self._go_on.get()
                continue
            if self._calls:
                self._have_one_come()
            self._make(*taken)

    def _make(self, done: defer.Deferred[Any], call: Callable[[], object]) -> None:
        if done.called:  # it was cancelled
            return
        try:
            result = call()
        except BaseException:
            result = Failure()
        with self._lock:
            first = not self._told
            self._told.append((done, result))
            self._one_comes = True  # this thread, which looks next
        if first:
            self._call_from_thread(self._settle)

    def _settle(self) -> None:
        """Fire the results. Runs on the reactor's thread."""
        with self._lock:
            told, self._told = self._told, []
        for done, result in told:
            done.callback(result)
