"""Runs a shape against a broker in memory, turn by turn, and says what the worst turn took.

A turn is a read, or one round of what is due on the clock. Work that a broker hands to a thread is not part of a turn.
"""

from __future__ import annotations

import functools
import gc
import sys
import time
from collections.abc import Callable
from typing import Any

import attrs
from twisted.internet import defer
from twisted.internet.task import Clock

import twisted_mq.turns as long_work
from tests.cost.shapes import Shape, loaded_broker
from twisted_mq.protocol.wire.framing import encode_frame

MOST_TURNS = 20_000


class Meter:
    """Measures turns: `read` says how much was used so far, off-turn work is left out."""

    def __init__(self) -> None:
        self._off = 0.0
        self.worst = 0.0

    def read(self) -> float:
        """Processor time in seconds."""
        return time.thread_time()

    def turn(self, work: Callable[[], object]) -> None:
        """Measure one turn."""
        self._off, before = 0.0, self.read()
        work()
        self.worst = max(self.worst, self.read() - before - self._off)

    def in_thread(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> defer.Deferred[Any]:
        """Replacement of a broker's thread."""
        before = self.read()
        try:
            return defer.maybeDeferred(function, *arguments, **named)
        finally:
            self._off += self.read() - before


class CallMeter(Meter):
    """Counts calls of functions, Python's and C's: the same on every machine."""

    def __init__(self) -> None:
        super().__init__()
        self._calls = 0

    def read(self) -> float:
        return self._calls

    def _count(self, frame: object, event: str, argument: object) -> None:
        if event in {"call", "c_call"}:
            self._calls += 1

    def turn(self, work: Callable[[], object]) -> None:
        before = sys.getprofile()
        sys.setprofile(self._count)
        try:
            super().turn(work)
        finally:
            sys.setprofile(before)


@attrs.frozen
class Cost:
    """The worst turn, how many turns there were, and what the connection left in the budgets while it was there."""

    worst: float
    turns: int
    kept_bytes: int
    left_bytes: int


def _run_one(clock: Clock) -> None:
    """Run the one call that is due first, and not what it puts off to a later turn."""
    call = clock.calls.pop(0)
    call.called = 1
    call.func(*call.args, **call.kw)


def cost_of(shape: Shape, meter: Meter, folder: str) -> Cost:
    """Send a shape to a broker whose store is in the folder, wait until nothing is due, and disconnect."""
    broker = loaded_broker(meter.in_thread, folder)
    peer = broker.connect()
    frames = b"".join(encode_frame(one) for one in shape.requests())
    gc.collect()
    gc.disable()
    turns = 0
    slice_seconds, long_work.SLICE_SECONDS = long_work.SLICE_SECONDS, 0.0  # no time goes by here: a turn has one slice

    def settle() -> None:
        nonlocal turns
        for _ in range(MOST_TURNS):
            due = [call for call in broker.clock.getDelayedCalls() if call.getTime() <= broker.clock.seconds()]
            if not due:
                return
            turns += 1
            meter.turn(functools.partial(_run_one, broker.clock))
        raise AssertionError(f"{shape.name}: not done after {MOST_TURNS} turns")

    try:
        meter.turn(lambda: peer.channel.dataReceived(frames))
        settle()
        budget = broker.traffic.budget
        kept = budget.held_bytes + budget.remembered_bytes + budget.unsent_bytes + budget.incomplete_bytes
        meter.turn(peer.channel.connectionLost)
        settle()
        left = budget.remembered_bytes + budget.unsent_bytes + budget.incomplete_bytes
    finally:
        long_work.SLICE_SECONDS = slice_seconds
        gc.enable()
        broker.store.close()
    return Cost(meter.worst, turns, kept, left)
