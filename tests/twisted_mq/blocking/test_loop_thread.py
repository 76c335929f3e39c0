"""Calls that threads have the loop make: their order, their contextvars, what wakes it, and in which thread it runs."""

from __future__ import annotations

import contextvars
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from twisted.internet import defer

from twisted_mq.blocking import loop_thread
from twisted_mq.blocking.calls import Call, CallTimedOut
from twisted_mq.blocking.loop_thread import LoopThread
from twisted_mq.client import ClientStateError

PATIENCE_SECONDS = 60.0
caller = contextvars.ContextVar("caller", default=-1)


@pytest.fixture
def thread() -> Iterator[LoopThread]:
    running = LoopThread()
    yield running
    running.stop()


@pytest.fixture
def resting(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopThread]:
    """Its thread has stepped aside, and comes back only when it is called."""
    monkeypatch.setattr(loop_thread, "REST_SECONDS", 3600.0)
    running = LoopThread()
    for _ in range(20):
        if called(running) is threading.current_thread():
            break
    yield running
    running.stop()


def called(thread: LoopThread) -> threading.Thread:
    """Where a call runs in which the loop turns some times."""

    async def work() -> threading.Thread:
        for _ in range(3):
            turn: defer.Deferred[None] = defer.Deferred()
            thread._loop.call_later(0.001, turn.callback, None)
            await turn
        return threading.current_thread()

    call: Call[threading.Thread] = Call(thread)
    call.begin(lambda: defer.Deferred.fromCoroutine(work()))
    return call.wait(PATIENCE_SECONDS)


def never_ends(thread: LoopThread) -> Call[None]:
    call: Call[None] = Call(thread)
    call.begin(lambda: defer.Deferred())
    return call


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
    wakes, seen, wake = [], queue.SimpleQueue[int](), thread._loop.call_soon_threadsafe
    end = held(thread)
    monkeypatch.setattr(thread._loop, "call_soon_threadsafe", lambda *call: wakes.append(call) or wake(*call))
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
        interrupted.setattr(thread._loop, "call_soon_threadsafe", interrupt)
        with pytest.raises(KeyboardInterrupt):
            thread.soon(seen.put, 1)
    thread.soon(seen.put, 2)
    assert [seen.get(timeout=PATIENCE_SECONDS) for _ in range(2)] == [1, 2]


def interrupt(*call: object) -> None:
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


# who runs it


def test_a_caller_that_waits_runs_the_loop_itself(resting: LoopThread) -> None:
    assert [called(resting) for _ in range(3)] == [threading.current_thread()] * 3


def test_the_thread_takes_the_loop_back_when_no_caller_runs_it(thread: LoopThread) -> None:
    where: queue.SimpleQueue[threading.Thread] = queue.SimpleQueue()
    while called(thread) is not threading.current_thread():
        pass
    thread.soon(lambda: where.put(threading.current_thread()))
    assert where.get(timeout=PATIENCE_SECONDS) is thread._thread


def test_who_leaves_the_loop_while_others_wait_calls_the_thread_back(resting: LoopThread) -> None:
    ended: queue.SimpleQueue[threading.Thread] = queue.SimpleQueue()
    other = threading.Thread(target=lambda: ended.put(called(resting)))
    call: Call[None] = Call(resting)

    async def until_the_other_waits() -> None:
        other.start()
        while not resting._waiting:
            turn: defer.Deferred[None] = defer.Deferred()
            resting._loop.call_later(0.001, turn.callback, None)
            await turn

    call.begin(lambda: defer.Deferred.fromCoroutine(until_the_other_waits()))
    call.wait(PATIENCE_SECONDS)
    assert ended.get(timeout=PATIENCE_SECONDS) in (resting._thread, threading.current_thread(), other)
    other.join()


def test_a_thread_that_stays_leaves_the_loop_to_nobody(resting: LoopThread) -> None:
    resting.stay()
    assert {called(resting) for _ in range(20)} == {resting._thread}
    resting.part()
    while called(resting) is not threading.current_thread():
        pass


def test_a_caller_that_runs_the_loop_gives_up_in_time(resting: LoopThread) -> None:
    with pytest.raises(CallTimedOut, match=r"no result within 0\.01 s"):
        never_ends(resting).wait(0.01)
    assert called(resting) is threading.current_thread()


def test_a_stop_ends_a_thread_that_rests(resting: LoopThread) -> None:
    seen: queue.SimpleQueue[int] = queue.SimpleQueue()
    resting.soon(seen.put, 1)
    resting.stop()
    assert (seen.get_nowait(), resting._thread.is_alive()) == (1, False)
    resting.__init__()  # type: ignore[misc]  # for the fixture, which stops it


def test_an_outcome_is_not_lost_to_a_signal_that_comes_with_it(thread: LoopThread) -> None:
    thread.stay()
    call: Call[str] = Call(thread)
    done: defer.Deferred[str] = defer.Deferred()
    call.wake = InterruptedQueue(lambda: thread.soon(done.callback, "result"))  # type: ignore[assignment]
    call.begin(lambda: done)
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


def test_handlers_of_signals_run_when_the_loop_was_left(resting: LoopThread) -> None:
    """What they raise ends the call, and nothing else that is in the loop."""
    seen: list[str] = []
    before = signal.signal(signal.SIGUSR1, too_late)
    try:
        call: Call[None] = Call(resting)

        def work() -> defer.Deferred[None]:
            signal.raise_signal(signal.SIGUSR1)
            seen.append("to its end")
            return defer.Deferred(lambda _: seen.append("cancelled"))

        call.begin(work)
        with pytest.raises(TooLateError):
            call.wait(PATIENCE_SECONDS)
        assert (seen, signal.getsignal(signal.SIGUSR1)) == (["to its end", "cancelled"], too_late)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert called(resting) is threading.current_thread()


def test_each_signal_that_came_is_handled(resting: LoopThread) -> None:
    seen: list[int] = []

    def note(number: int, frame: object) -> None:
        seen.append(number)
        if number == signal.SIGUSR1:
            raise TooLateError

    before = {number: signal.signal(number, note) for number in (signal.SIGUSR1, signal.SIGUSR2)}
    try:
        call: Call[None] = Call(resting)
        call.begin(lambda: defer.execute(lambda: [signal.raise_signal(number) for number in before] and None))
        with pytest.raises(TooLateError):
            call.wait(PATIENCE_SECONDS)
        assert seen == [signal.SIGUSR1, signal.SIGUSR2]
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class TooLateError(Exception):
    """As a soft time limit is raised."""


def too_late(number: int, frame: object) -> None:
    raise TooLateError
