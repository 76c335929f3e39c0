"""Handler of SIGHUP, and cases in which it is not set."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator

import pytest
from twisted.internet.interfaces import IReactorFromThreads
from twisted.internet.testing import MemoryReactor
from zope.interface import implementer

from twisted_mq.config.hang_up import on_hang_up


@implementer(IReactorFromThreads)
class Reactor(MemoryReactor):
    """Notes its stops."""

    def __init__(self) -> None:
        super().__init__()
        self.stops = 0

    def callFromThread(self, callable: Callable[[], object]) -> None:
        callable()

    def stop(self) -> None:
        self.stops += 1


@pytest.fixture(autouse=True)
def before() -> Iterator[None]:
    handler = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, handler)


def test_nohup_is_respected_where_the_signal_would_stop():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    on_hang_up(Reactor())
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_log_is_opened_anew_each_time_under_nohup_too():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    calls: list[str] = []
    on_hang_up(Reactor(), lambda: calls.append("reopen"))
    for _ in range(2):
        signal.raise_signal(signal.SIGHUP)
    assert calls == ["reopen", "reopen"]


def test_second_signal_of_one_hang_up_changes_nothing():
    reactor = Reactor()
    on_hang_up(reactor)
    for _ in range(2):
        signal.raise_signal(signal.SIGHUP)
    assert reactor.stops == 1


def test_system_without_the_signal_is_left_alone(monkeypatch):
    monkeypatch.delattr(signal, "SIGHUP")
    on_hang_up(Reactor())
    monkeypatch.undo()
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL


def test_second_signal_that_comes_within_the_first_ones_handler_stops_nothing_more():
    reactor = Reactor()
    on_hang_up(reactor)
    handler = signal.getsignal(signal.SIGHUP)
    assert callable(handler)
    for _ in range(2):
        handler(signal.SIGHUP, None)
    assert reactor.stops == 1
