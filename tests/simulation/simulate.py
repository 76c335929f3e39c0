"""Runs one seed, and says what came of it. Each third seed's world has ordered broker groups, unless a kind is given."""

from __future__ import annotations

import contextlib
import functools
import gc
import logging
import sys
import traceback
from collections import Counter
from collections.abc import Iterator

import attrs
from twisted.logger import LogEvent, globalLogPublisher

from tests.simulation.account import Account, Line
from tests.simulation.ordered_scenario import OrderedScenario
from tests.simulation.scenario import Scenario
from tests.simulation.world import Broken, World
from twisted_mq.logs import PACKAGE

ORDERED_EACH = 3


@attrs.frozen
class Outcome:
    """Result of a seed; `broken` is empty if every promise was kept."""

    seed: int
    broken: str
    trace: str
    seconds: float
    acknowledged: int
    consumed: int
    lost: int
    faults: Counter[str]
    history: list[str]
    reached: list[Line] = attrs.field(factory=list)
    """Lines of the services that this process had not reached before, where an account is kept."""


class _Failures(logging.Handler):
    """Notes what services log as errors; a traceback is a broken promise."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world
        self.first = ""

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None and not self.first:
            self.first = f"{text}: {record.exc_info[1]!r}"
        self._world.remark(f"  {record.levelname.lower()}: {text}")

    def unhandled(self, event: LogEvent) -> None:
        """Record Twisted's log event of an unhandled failure in a Deferred."""
        if "log_failure" in event:
            self.first = self.first or f"unhandled: {event['log_failure'].value!r}"
            self._world.remark(event["log_failure"].getTraceback())

    def unraisable(self, found: sys.UnraisableHookArgs) -> None:
        """Note what a coroutine of a killed process raised when it was freed: that process is no more."""
        self._world.remark(f"  not raised: {found.exc_value!r} in {found.object!r}")


@contextlib.contextmanager
def _quiet_end() -> Iterator[None]:
    """Let go of a world's processes at the end. What ends in them then, and fails, is no longer of this world."""
    gc.disable()  # when garbage goes must not depend on anything else
    before, sys.unraisablehook = sys.unraisablehook, lambda _: None
    try:
        yield
    finally:
        gc.enable()
        gc.collect()
        sys.unraisablehook = before


@functools.cache
def _keep_what_is_loaded() -> None:
    """Looking for garbage then costs little."""
    gc.freeze()


def simulate(
    seed: int, log_level: int = logging.ERROR, account: Account | None = None, kind: type[Scenario] | None = None
) -> Outcome:
    """Run one seed; what services log from this level on is in the history, and changes nothing. Nor does the account."""
    if kind is None:
        kind = Scenario if seed % ORDERED_EACH else OrderedScenario
    if account is None:
        return _simulate(seed, log_level, kind)
    account.start()
    try:
        outcome = _simulate(seed, log_level, kind)
    finally:
        reached = account.stop()
    return attrs.evolve(outcome, reached=reached)


def _simulate(seed: int, log_level: int, kind: type[Scenario]) -> Outcome:
    _keep_what_is_loaded()
    with _quiet_end():
        return _run(seed, log_level, kind)


def _run(seed: int, log_level: int, kind: type[Scenario]) -> Outcome:
    """Run a world. Its processes are let go of when this returns, or later."""
    broken = ""
    with World(seed) as world:
        failures, ours, kazoo = _Failures(world), logging.getLogger(PACKAGE), logging.getLogger("kazoo")
        ours.addHandler(failures)
        kazoo.addHandler(failures)
        kazoo.setLevel(logging.ERROR)
        globalLogPublisher.addObserver(failures.unhandled)
        level_before, hook_before = ours.level, sys.unraisablehook
        sys.unraisablehook = failures.unraisable
        ours.setLevel(log_level)
        scenario = kind(world)
        try:
            scenario.run()
        except Broken as error:
            broken = str(error)
        except Exception as error:
            broken = f"{type(error).__name__}: {error}"
            world.remark(traceback.format_exc())
        finally:
            for broker in scenario.brokers:
                if broker.is_running:
                    broker.free_lock()
            globalLogPublisher.removeObserver(failures.unhandled)
            ours.removeHandler(failures)
            kazoo.removeHandler(failures)
            sys.unraisablehook = hook_before
            ours.setLevel(level_before)
        broken = broken or failures.first
    observer = scenario.observer
    return Outcome(
        seed=seed,
        broken=broken,
        trace=world.trace.hexdigest(),
        seconds=world.seconds,
        acknowledged=observer.acknowledged,
        consumed=observer.consumed,
        lost=observer.lost,
        faults=scenario.faults,
        history=world.history,
    )
