"""Futures of plain calls are the standard library's, made without a lock of their own."""

from __future__ import annotations

import concurrent.futures
import os
import signal
import threading

import pytest
from twisted.internet import defer

from twisted_mq.blocking.loop_thread import LoopThread
from twisted_mq.blocking.pending import Pending
from twisted_mq.client import ForkedProcess

PATIENCE_SECONDS = 60.0


def test_they_have_what_this_python_gives_its_own(thread: LoopThread) -> None:
    mine = {name: value for name, value in vars(Pending(thread)).items() if name not in ("_thread", "_waiting")}
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


def test_a_child_of_a_fork_waits_for_no_lock(thread: LoopThread) -> None:
    never, done, failed = (Pending[str](thread) for _ in range(3))
    thread.soon(never.begin, defer.Deferred)
    thread.soon(done.begin, lambda: defer.succeed("result"))
    thread.soon(failed.begin, lambda: defer.fail(ValueError("refused")))
    concurrent.futures.wait((done, failed), PATIENCE_SECONDS)
    settled, held, end = threading.Event(), threading.Event(), threading.Event()
    thread.soon(settled.set)
    assert settled.wait(PATIENCE_SECONDS)

    def hold() -> None:
        with thread.lock_of_futures:
            held.set()
            end.wait(PATIENCE_SECONDS)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(PATIENCE_SECONDS)
    child = os.fork()
    if child == 0:
        signal.alarm(int(PATIENCE_SECONDS))
        code = 9
        try:
            code = of_a_child(never, done, failed)
        finally:
            os._exit(code)
    end.set()
    holder.join()
    assert os.waitpid(child, 0)[1] == 0


def of_a_child(never: Pending[str], done: Pending[str], failed: Pending[str]) -> int:
    """0 where all is as it should be."""
    try:
        failed.result()
        return 1
    except ValueError:
        pass
    try:
        never.result()
        return 2
    except ForkedProcess:
        return 0 if done.result() == "result" and done.done() else 3
