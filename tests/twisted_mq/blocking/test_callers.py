"""Callers that were told something wake one after the other, and none waits for another who does not come back."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator

import pytest
from twisted.internet import defer

from twisted_mq.blocking import callers
from twisted_mq.blocking.callers import PATIENCE_SECONDS, Caller, Row
from twisted_mq.blocking.calls import Call
from twisted_mq.blocking.loop_thread import LoopThread

WAIT_SECONDS = 60.0


class Rows:
    """A row, and how often it came to its end."""

    def __init__(self) -> None:
        self.row = Row(self._count)
        self.ended = 0

    def _count(self) -> None:
        self.ended += 1

    def passed_on(self) -> bool:
        """Return True at the end of the row."""
        before = self.ended
        self.row.pass_on()
        return self.ended > before


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Sets the clock."""
    seconds = [0.0]
    monkeypatch.setattr(callers.time, "monotonic", lambda: seconds[0])
    return lambda time: seconds.__setitem__(0, time)


def told(rows: Rows, count: int) -> list[Caller]:
    found = [Caller(rows.row) for _ in range(count)]
    for number, caller in enumerate(found):
        caller.tell(number)
    return found


def awake(callers: list[Caller]) -> list[bool]:
    return [not caller.wake.empty() for caller in callers]


def test_each_wakes_one_more_before_he_waits_again(now: Callable[[float], None]) -> None:
    rows = Rows()
    waiting = told(rows, 4)
    assert awake(waiting) == [False] * 4
    assert rows.row.look() == PATIENCE_SECONDS
    assert awake(waiting) == [True, True, False, False]
    assert rows.row.moves and rows.row.look() == PATIENCE_SECONDS
    assert not rows.passed_on()
    assert awake(waiting) == [True, True, True, False]
    assert not rows.passed_on()
    assert awake(waiting) == [True] * 4
    assert rows.row.moves and rows.passed_on() and not rows.row.moves
    assert rows.row.look() is None and not rows.passed_on()


@pytest.mark.parametrize("count", [1, 2])
def test_so_few_make_no_row(now: Callable[[float], None], count: int) -> None:
    rows = Rows()
    waiting = told(rows, count)
    assert rows.row.look() is None
    assert awake(waiting) == [True] * count and not rows.row.moves


def test_a_row_that_stands_still_is_woken_as_a_whole(now: Callable[[float], None]) -> None:
    rows = Rows()
    waiting = told(rows, 5)
    rows.row.look()
    now(PATIENCE_SECONDS * 0.9)
    rows.row.pass_on()
    now(PATIENCE_SECONDS * 1.8)
    assert rows.row.look() == PATIENCE_SECONDS
    assert awake(waiting) == [True, True, True, False, False]
    now(PATIENCE_SECONDS * 2)
    assert rows.row.look() is None
    assert awake(waiting) == [True] * 5 and not rows.row.moves


def test_who_comes_while_a_row_moves_stands_at_its_end(now: Callable[[float], None]) -> None:
    rows = Rows()
    first = told(rows, 3)
    rows.row.look()
    more = told(rows, 1)
    rows.row.look()
    rows.row.pass_on()
    assert awake(first + more) == [True, True, True, False]
    rows.row.pass_on()
    assert awake(more) == [True]


def test_what_is_there_already_is_not_waited_for() -> None:
    rows = Rows()
    caller, other = told(rows, 1)[0], Caller(rows.row)
    other.tell("outcome")
    assert other.next_outcome(None) == "outcome"
    assert awake([caller, other]) == [False, False]  # nobody was about to wait


# in threads


def in_threads(count: int, work: Callable[[int], None]) -> list[threading.Thread]:
    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(count)]
    for one in threads:
        one.start()
    return threads


def joined(threads: list[threading.Thread]) -> None:
    for one in threads:
        one.join(WAIT_SECONDS)
    assert not any(one.is_alive() for one in threads)


def test_nobody_waits_for_a_caller_who_has_other_things_to_do(thread: LoopThread) -> None:
    """The first callers of a row return only when the last one has its result."""
    waiting: list[defer.Deferred[int]] = []
    got = [threading.Event() for _ in range(5)]
    all_wait, others = threading.Event(), threading.Event()
    results: list[int] = []

    def begin() -> defer.Deferred[int]:
        waiting.append(defer.Deferred())
        if len(waiting) == len(got):
            all_wait.set()
        return waiting[-1]

    def tell() -> None:
        for number, one in enumerate(waiting):
            one.callback(number)

    def work(_: int) -> None:
        call: Call[int] = Call(thread)
        thread.soon(call.begin, begin)
        number = call.wait(None)
        got[number].set()
        if number >= 3 or (all(event.wait(WAIT_SECONDS) for event in got) and others.wait(WAIT_SECONDS)):
            results.append(number)

    threads = in_threads(len(got), work)
    assert all_wait.wait(WAIT_SECONDS)
    thread.soon(tell)
    assert got[0].wait(WAIT_SECONDS)
    thread.soon(others.set)
    joined(threads)
    assert sorted(results) == [0, 1, 2, 3, 4]


@pytest.fixture
def switching() -> Iterator[None]:
    """The interpreter changes threads all the time."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("count", [1, 2, 3, 32])
def test_every_call_ends_however_threads_change(thread: LoopThread, switching: None, count: int) -> None:
    """Some answers come at once, some together in a later turn, some callers dawdle."""
    later: list[defer.Deferred[int]] = []
    results: list[int] = []

    def answer_all() -> None:
        waiting, later[:] = later[:], []
        for one in waiting:
            one.callback(7)

    def begin(number: int) -> defer.Deferred[int]:
        if number % 5 == 0:
            return defer.succeed(7)
        one: defer.Deferred[int] = defer.Deferred()
        later.append(one)
        thread._loop.call_later(0.0002 * (number % 3), answer_all)
        return one

    def work(first: int) -> None:
        for number in range(first, first + 300):
            call: Call[int] = Call(thread)
            thread.soon(call.begin, lambda number=number: begin(number))
            results.append(call.wait(WAIT_SECONDS))
            if number % 7 == 0:
                thread.soon(lambda: None)
            if number % 50 == 0:
                threading.Event().wait(0.002)

    joined(in_threads(count, work))
    assert results == [7] * 300 * count
