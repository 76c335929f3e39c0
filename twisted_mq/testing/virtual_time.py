"""Provides time that passes only on request: a clock of the whole world, and one of each host that may be wrong."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

from twisted.internet import error, interfaces
from zope.interface import implementer

NEVER = float("inf")
ROUNDING_SECONDS = 1e-6
"""The rounding of seconds since 1970 in a float."""


@implementer(interfaces.IDelayedCall)
class VirtualCall:
    """A call that waits in the `Timers` that created it."""

    __slots__ = ("_timers", "arguments", "call", "named", "state", "time")

    def __init__(
        self, timers: Timers, time: float, call: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]
    ) -> None:
        self.time = time
        self.call = call
        self.arguments = arguments
        self.named = named
        self.state = "active"
        self._timers = timers

    def getTime(self) -> float:
        return self.time

    def active(self) -> bool:
        return self.state == "active"

    def _check(self) -> None:
        if self.state == "cancelled":
            raise error.AlreadyCancelled
        if self.state == "called":
            raise error.AlreadyCalled

    def cancel(self) -> None:
        self._check()
        self.state = "cancelled"

    def reset(self, seconds: float) -> None:
        self._check()
        self._timers.move(self, self._timers.seconds() + seconds)

    def delay(self, seconds: float) -> None:
        self._check()
        self._timers.move(self, self.time + seconds)


class Timers:
    """Calls in the order of their times, those of one time in the order of their creation. `seconds` returns the time."""

    def __init__(self, seconds: Callable[[], float]) -> None:
        self.seconds = seconds
        self._heap: list[tuple[float, int, VirtualCall]] = []
        self._made = 0

    def add(self, delay: float, callable: Callable[..., Any], *args: object, **kwargs: object) -> VirtualCall:
        made = VirtualCall(self, self.seconds() + delay, callable, args, kwargs)
        self._push(made)
        return made

    def _push(self, made: VirtualCall) -> None:
        self._made += 1
        heapq.heappush(self._heap, (made.time, self._made, made))

    def move(self, call: VirtualCall, time: float) -> None:
        """Enter the call at its new time; the entry at its old time does not count any more."""
        call.time = time
        self._push(call)

    def active(self) -> list[VirtualCall]:
        return [call for time, _, call in sorted(self._heap, key=lambda one: one[:2]) if self._counts(time, call)]

    @staticmethod
    def _counts(time: float, call: VirtualCall) -> bool:
        return call.state == "active" and call.time == time

    def next_time(self) -> float:
        """Return the time of the next call; `NEVER` without one."""
        heap = self._heap
        while heap and not self._counts(heap[0][0], heap[0][2]):
            heapq.heappop(heap)
        return heap[0][0] if heap else NEVER

    def run_next(self) -> None:
        """Make the next call, due or not."""
        call = heapq.heappop(self._heap)[2]
        call.state = "called"
        call.call(*call.arguments, **call.named)

    def run_due(self) -> None:
        """Make the calls whose time has come and that existed before; calls that they add at once come the next time."""
        newest, now = self._made, self.seconds() + ROUNDING_SECONDS
        while self.next_time() <= now and self._heap[0][1] <= newest:
            self.run_next()

    def clear(self) -> None:
        """Forget all calls."""
        for _, _, call in self._heap:
            if call.state == "active":
                call.state = "cancelled"
        self._heap.clear()


@implementer(interfaces.IReactorTime)
class VirtualClock:
    """A clock like task.Clock, for any number of calls."""

    def __init__(self, start_seconds: float = 0.0) -> None:
        self.now = start_seconds
        self.timers = Timers(self.seconds)
        self.callLater = self.timers.add

    def seconds(self) -> float:
        return self.now

    def getDelayedCalls(self) -> list[VirtualCall]:
        return self.timers.active()

    def advance(self, seconds: float) -> None:
        """Let time pass, from call to call."""
        end = self.now + seconds
        while (due := self.timers.next_time()) <= end:
            self.now = max(self.now, due)
            self.timers.run_next()
        self.now = end
