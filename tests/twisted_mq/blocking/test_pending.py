"""Futures of plain calls are the standard library's, made without a lock of their own."""

from __future__ import annotations

import concurrent.futures
import threading
from collections.abc import Iterator

import pytest
from twisted.internet import defer

from twisted_mq.blocking.loop_thread import LoopThread
from twisted_mq.blocking.pending import Pending

PATIENCE_SECONDS = 60.0


@pytest.fixture
def thread() -> Iterator[LoopThread]:
    running = LoopThread()
    yield running
    running.stop()


def test_they_have_what_this_python_gives_its_own(thread: LoopThread) -> None:
    mine = {
        name: value for name, value in vars(Pending(thread)).items() if name not in ("_thread", "_is_done", "_waiting")
    }
    plain = vars(concurrent.futures.Future())
    assert {name: type(value) for name, value in mine.items()} == {name: type(value) for name, value in plain.items()}
    assert mine["_state"] == plain["_state"]


def test_threads_that_wait_for_one_all_get_its_result(thread: LoopThread) -> None:
    pending: Pending[str] = Pending(thread)
    done: defer.Deferred[str] = defer.Deferred()
    thread.soon(pending.begin, lambda: done)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        results = [pool.submit(pending.result, PATIENCE_SECONDS) for _ in range(4)]
        thread.soon(done.callback, "result")
        assert [one.result(PATIENCE_SECONDS) for one in results] == ["result"] * 4
    assert pending.result(0) == "result"


def test_the_standard_librarys_wait_knows_them(thread: LoopThread) -> None:
    pendings = [Pending[int](thread) for _ in range(3)]
    callbacks = [defer.Deferred[int]() for _ in pendings]
    for pending, deferred in zip(pendings, callbacks, strict=True):
        thread.soon(pending.begin, lambda deferred=deferred: deferred)
    threading.Timer(0.01, lambda: [thread.soon(one.callback, number) for number, one in enumerate(callbacks)]).start()
    done, not_done = concurrent.futures.wait(pendings, PATIENCE_SECONDS)
    assert (done, not_done) == (set(pendings), set())
    assert sorted(one.result() for one in pendings) == [0, 1, 2]


def test_what_fails_is_raised_and_told(thread: LoopThread) -> None:
    pending: Pending[str] = Pending(thread)
    thread.soon(pending.begin, lambda: defer.fail(ValueError("refused")))
    with pytest.raises(ValueError, match="refused"):
        pending.result(PATIENCE_SECONDS)
    assert isinstance(pending.exception(0), ValueError)
