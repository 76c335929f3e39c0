"""Timers follow monotonic time, whatever the time of day is set to."""

from __future__ import annotations

import time

import pytest
from twisted.internet.asyncioreactor import AsyncioSelectorReactor
from twisted.internet.selectreactor import SelectReactor
from twisted.internet.task import Clock

from twisted_mq.aio.loop_reactor import LoopReactor
from twisted_mq.clocks import ClockSteps, follow_monotonic_time, steady, time_of_day, wall_ms
from twisted_mq.testing.reactor_thread import make_reactor


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Replace the machine's clocks. Return the time of day and the monotonic time that they show."""
    shown = [float(int(time.time())), 50.0]
    monkeypatch.setattr(time, "time", lambda: shown[0])
    monkeypatch.setattr(time, "monotonic", lambda: shown[1])
    return shown


def test_steady_clock_begins_with_the_time_of_day_and_is_not_set(shown: list[float]) -> None:
    seconds, began = steady(), shown[0]
    shown[:] = [1_000_000_000.0, 53.0]
    assert seconds() == began + 3


def test_timers_of_a_reactor_run_on_when_the_clock_is_set_back(shown: list[float]) -> None:
    reactor, called = make_reactor(), []
    first = reactor.callLater(5, called.append, "first")
    follow_monotonic_time(reactor)
    reactor.callLater(7, called.append, "second")
    shown[:] = [shown[0] - 3600, 50.0 + 6.5]
    reactor.runUntilCurrent()
    assert (called, first.active()) == (["first"], False)
    shown[1] = 50.0 + 7.5
    reactor.runUntilCurrent()
    assert called == ["first", "second"]


def test_clock_of_ones_own_is_left_alone() -> None:
    clock, reactor = Clock(), SelectReactor()
    follow_monotonic_time(clock)
    assert clock.seconds() == 0.0
    follow_monotonic_time(reactor)
    own = reactor.seconds
    follow_monotonic_time(reactor)
    assert reactor.seconds is own
    reactor.removeAll()


@pytest.mark.parametrize("make", [LoopReactor, AsyncioSelectorReactor], ids=["asyncio's client", "Twisted's"])
def test_time_of_day_of_a_reactor_is_the_machines(make: type, shown: list[float]) -> None:
    import asyncio

    loop = asyncio.new_event_loop()
    reactor = make() if make is LoopReactor else make(loop)
    follow_monotonic_time(reactor)
    began = reactor.seconds()
    shown[:] = [1_000_000_000.0, 51.0]
    assert (wall_ms(reactor)(), reactor.seconds() - began) == (1_000_000_000_000, 1.0)
    loop.close()


def test_virtual_clock_shows_its_own_time_of_day() -> None:
    clock = Clock()
    clock.advance(3)
    assert time_of_day(clock)() == 3


def test_steps_are_counted_and_drift_is_not() -> None:
    now, wall = 10_000, 10_000
    steps = ClockSteps(lambda: now, lambda: wall)
    wall += 400
    assert steps.ms() == 0
    wall += 3_600_000
    assert (steps.ms(), steps.latest_ms()) == (3_600_400, now + 3_600_400)
    wall = 10_000
    assert (steps.ms(), steps.latest_ms()) == (0, now + 3_600_400)
