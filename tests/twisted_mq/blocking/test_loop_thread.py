"""Calls that threads have the loop make: their order, their contextvars, what wakes it, and in which thread it runs."""

from __future__ import annotations

import contextvars
import queue
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from twisted.internet import defer

from twisted_mq.blocking.calls import Call
from twisted_mq.blocking.loop_thread import LoopThread
from twisted_mq.client import ClientStateError

PATIENCE_SECONDS = 60.0
caller = contextvars.ContextVar("caller", default=-1)


def held(thread: LoopThread) -> threading.Event:
    """Keep its loop busy until the event is set."""
    begun, end = threading.Event(), threading.Event()
    thread.soon(lambda: (begun.set(), end.wait(PATIENCE_SECONDS)))
    assert begun.wait(PATIENCE_SECONDS)
    return end


def test_calls_run_in_their_order_each_in_the_contextvars_of_its_caller(thread: LoopThread) -> None:
    seen: queue.SimpleQueue[tuple[int, int]] = queue.SimpleQueue()
    for number in range(3):
        caller.set(number)
        thread.soon(lambda number=number: seen.put((number, caller.get())))
    assert [seen.get(timeout=PATIENCE_SECONDS) for _ in range(3)] == [(0, 0), (1, 1), (2, 2)]


def test_a_call_that_raises_is_told_and_stops_none_behind_it(thread: LoopThread) -> None:
    seen: queue.SimpleQueue[Any] = queue.SimpleQueue()
    thread._loop.set_exception_handler(lambda loop, told: seen.put(type(told["exception"])))
    end = held(thread)
    thread.soon(divmod, 1, 0)
    thread.soon(seen.put, "behind it")
    end.set()
    assert [seen.get(timeout=PATIENCE_SECONDS) for _ in range(2)] == [ZeroDivisionError, "behind it"]


def test_calls_that_come_while_the_loop_is_busy_do_not_wake_it(
    thread: LoopThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    wakes, seen, ring = [], queue.SimpleQueue[int](), thread._selector.ring
    end = held(thread)
    monkeypatch.setattr(thread._selector, "ring", lambda: wakes.append(1) or ring())
    for number in range(5):
        thread.soon(seen.put, number)
    assert wakes == []
    end.set()
    assert [seen.get(timeout=PATIENCE_SECONDS) for _ in range(5)] == [0, 1, 2, 3, 4]


def test_a_wake_that_is_interrupted_is_left_to_the_next_call(
    thread: LoopThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: queue.SimpleQueue[int] = queue.SimpleQueue()
    asleep(thread)
    with monkeypatch.context() as interrupted:
        interrupted.setattr(thread._selector, "_bell", InterruptedBell())
        with pytest.raises(KeyboardInterrupt):
            thread.soon(seen.put, 1)
    thread.soon(seen.put, 2)
    assert [seen.get(timeout=PATIENCE_SECONDS) for _ in range(2)] == [1, 2]


class InterruptedBell:
    """Ctrl-C comes before the byte is sent."""

    def send(self, data: bytes) -> None:
        raise KeyboardInterrupt


def asleep(thread: LoopThread) -> None:
    """Wait until its loop has nothing to do."""
    while not thread._selector.asleep:
        time.sleep(0.001)


def test_what_was_asked_before_the_stop_is_called_and_nothing_after_it() -> None:
    thread, seen = LoopThread(), queue.SimpleQueue[int]()
    end = held(thread)
    thread.soon(seen.put, 1)
    threading.Timer(0.01, end.set).start()
    thread.stop()
    assert seen.get_nowait() == 1
    with pytest.raises(ClientStateError, match="stopped in another thread"):
        thread.soon(seen.put, 2)


def test_an_outcome_is_not_lost_to_a_signal_that_comes_with_it(thread: LoopThread) -> None:
    call: Call[str] = Call(thread)
    done: defer.Deferred[str] = defer.Deferred()
    call.wake = InterruptedQueue(lambda: thread.soon(done.callback, "result"))  # type: ignore[assignment]
    thread.soon(call.begin, lambda: done)
    with pytest.raises(KeyboardInterrupt):
        call._outcome(PATIENCE_SECONDS)
    assert call._cancelled() == "result"


class InterruptedQueue:
    """A handler raises when what was waited for has come."""

    def __init__(self, waits: Callable[[], None]) -> None:
        self._waits = waits
        self._came: queue.SimpleQueue[None] = queue.SimpleQueue()
        self.put = self._came.put

    def get(self, timeout: float) -> None:
        self._waits()
        self._came.get(timeout=timeout)
        raise KeyboardInterrupt
