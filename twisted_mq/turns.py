"""Runs long work in short slices, so that other work has its turn between them.

Work is a generator: it yields after each slice, or yields a Deferred that it waits for, and returns its result. Work of
one lane (a broker's name, a list, the key-value configuration) runs in the order in which it came, lanes side by side.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Generator, Hashable
from typing import Any, Protocol, TypeAlias, TypeVar, cast

from twisted.internet import defer, interfaces, task
from twisted.python import failure

from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.remoting.rotation import Rotation

T = TypeVar("T")
Pause: TypeAlias = defer.Deferred[Any] | None
"""Any, because only the work itself knows what its Deferred fires with."""
Work = Generator[Pause, None, T]

SHARE = "long requests"
SLICE_SECONDS = 0.005
"""The time for all lanes in one turn."""
MAX_WAITING = 1000
"""The most work that may wait in a lane; past it the answer is SYSTEM_BUSY."""


class Turns:
    """Runs the first slice of work at once, the others in turns of a rotation, as one share of it."""

    def __init__(self, rotation: Rotation) -> None:
        seconds = rotation.clock.seconds

        def slice_ends() -> Callable[[], bool]:
            end = seconds() + SLICE_SECONDS
            return lambda: seconds() >= end

        def next_turn(turn: Callable[[], None]) -> interfaces.IDelayedCall:
            return cast(interfaces.IDelayedCall, rotation.call(SHARE, turn))  # a cooperator only cancels it

        self._cooperator = task.Cooperator(slice_ends, next_turn)
        self._lanes: dict[Hashable, deque[Work[None]]] = {}

    def run(self, lane: Hashable, work: Work[T]) -> T | defer.Deferred[T]:
        """Return the result if the first slice is all and nothing waits in the lane, otherwise a Deferred of it.

        Raises BrokerError if too much waits there, and the errors of the work's first slice.
        """
        waiting = self._lanes.get(lane, ())
        if len(waiting) >= MAX_WAITING:
            raise BrokerError(ResponseCode.SYSTEM_BUSY, f"{len(waiting)} requests wait for {lane}")
        return self.must_run(lane, work)

    def must_run(self, lane: Hashable, work: Work[T]) -> T | defer.Deferred[T]:
        """Like `run`, however much waits."""
        waiting = self._lanes.get(lane)
        if waiting is None:
            try:
                first = _step(work)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            waiting = self._lanes[lane] = deque()
            lane_is_empty = self._cooperator.coiterate(self._through(lane, waiting, first))
            lane_is_empty.addErrback(lambda reason: reason.trap(task.SchedulerStopped) and None)
        later: defer.Deferred[T] = defer.Deferred()
        waiting.append(_settled(work, later))
        return later

    def _through(self, lane: Hashable, waiting: deque[Work[None]], first: Pause) -> Work[None]:
        """Run all work of a lane, with a pause after each: a hundred answers that are ready at once are
        long work too.
        """
        yield first
        while waiting:
            yield from waiting[0]
            waiting.popleft()
            if waiting:
                yield None
        del self._lanes[lane]

    def stop(self) -> None:
        """Run nothing any more; waiting work is never answered."""
        self._cooperator.stop()


MAX_LARGE = 2
MAX_HELD_BYTES = 64 * 1024 * 1024


class Room:
    """Limits how many large bodies are parsed at once, and how many bytes may wait for that."""

    def __init__(self) -> None:
        self._free = defer.DeferredSemaphore(MAX_LARGE)
        self._held = 0

    def keep(self, size: int, work: Work[T]) -> Work[T]:
        """Return work that waits for its turn and holds that many bytes until it is done. Raises BrokerError."""
        if self._held + size > MAX_HELD_BYTES:
            raise BrokerError(
                ResponseCode.SYSTEM_BUSY, f"{self._held} bytes of requests wait, {size} more are too many"
            )
        self._held += size
        return self._in_turn(size, work)

    def _in_turn(self, size: int, work: Work[T]) -> Work[T]:
        yield from outcome(self._free.acquire())
        try:
            return (yield from work)
        finally:
            self._held -= size
            self._free.release()


class Asker(Protocol):
    """The connection of a request."""

    connected_now: bool


def if_connected(asker: Asker, work: Work[T]) -> Work[T]:
    """Return the same work, which does not begin if the asker is gone by then. It fails with BrokerError instead."""
    if not asker.connected_now:
        raise BrokerError(ResponseCode.SYSTEM_ERROR, "the connection of this request was closed before its turn came")
    return (yield from work)


def while_connected(asker: Asker, work: Work[T]) -> Work[T]:
    """Return the same work, which ends between two slices once the asker is gone: for what is only read."""
    with contextlib.closing(work):
        while asker.connected_now:
            try:
                pause = next(work)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            yield pause
    raise BrokerError(ResponseCode.SYSTEM_ERROR, "the connection of this request was closed before it was answered")


def _settled(work: Work[T], later: defer.Deferred[T]) -> Work[None]:
    """Return the work, whose end fires the Deferred."""
    try:
        while True:
            yield _step(work)
    except StopIteration as end:
        later.callback(end.value)
    except Exception:
        later.errback(failure.Failure())


def _step(work: Work[T]) -> Pause:
    """Run one slice; returns a Deferred only if it has not fired yet. Raises StopIteration with the result."""
    while True:
        awaited = next(work)
        if awaited is None or not awaited.called:
            return awaited


def outcome(later: defer.Deferred[T]) -> Work[T]:
    """Wait, within work, for a Deferred, and return or raise its result."""
    results: list[T | failure.Failure] = []
    yield later.addBoth(results.append)
    result = results[0]
    if isinstance(result, failure.Failure):
        result.raiseException()
    return result


def then(
    result: T | defer.Deferred[T], make: Callable[[T], RemotingCommand]
) -> RemotingCommand | defer.Deferred[RemotingCommand]:
    """Return the answer made from a result, now or later."""
    return result.addCallback(make) if isinstance(result, defer.Deferred) else make(result)
