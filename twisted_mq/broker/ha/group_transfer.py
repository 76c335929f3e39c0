"""Holds sends until enough slaves have them (Apache: GroupTransferService).

All sends that wait for an offset up to the acknowledged one are answered together.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import attrs
from twisted.internet import defer, interfaces

from twisted_mq.logs import Logger


@attrs.define(eq=False)
class _Request:
    offset: int
    deadline: float
    waiting: defer.Deferred[bool]


class GroupTransferService:
    """Answers True when enough copies hold an offset, the master's own included, False after `timeout_seconds`."""

    log = Logger()

    def __init__(self, clock: interfaces.IReactorTime, timeout_seconds: float) -> None:
        self._clock = clock
        self._timeout_seconds = timeout_seconds
        self._requests: dict[int, deque[_Request]] = {}
        self._held: dict[int, int] = {}
        self._timer: interfaces.IDelayedCall | None = None

    def __len__(self) -> int:
        """Return how many sends wait."""
        return sum(map(len, self._requests.values()))

    def wait(self, offset: int, copies: int) -> defer.Deferred[bool]:
        """Fire when `copies` brokers hold the log up to `offset`; offsets come in rising order."""
        if copies <= 1:
            return defer.succeed(True)
        request = _Request(offset, self._clock.seconds() + self._timeout_seconds, defer.Deferred())
        self._requests.setdefault(copies, deque()).append(request)
        self._arm()
        return request.waiting

    def acknowledged(self, slave_offsets: Sequence[int]) -> None:
        """Answer the sends whose offset enough slaves hold; `slave_offsets` has one for each connected slave."""
        offsets = sorted(slave_offsets, reverse=True)
        for copies, requests in tuple(self._requests.items()):
            if len(offsets) < copies - 1:
                continue
            held = offsets[copies - 2]
            self._held[copies] = max(held, self.held(copies))
            while requests and requests[0].offset <= held:
                requests.popleft().waiting.callback(True)

    def held(self, copies: int) -> int:
        """Return the highest offset that so many copies were seen to hold while a send waited; -1 before the first."""
        return self._held.get(copies, -1)

    def stop(self) -> None:
        """Answer all waiting sends with False."""
        for requests in self._requests.values():
            while requests:
                requests.popleft().waiting.callback(False)
        if self._timer is not None and self._timer.active():
            self._timer.cancel()

    def _arm(self) -> None:
        """Schedule one call for the oldest request; the call does nothing if that was answered meanwhile."""
        if self._timer is None or not self._timer.active():
            self._timer = self._clock.callLater(self._timeout_seconds, self._expire)

    def _expire(self) -> None:
        now = self._clock.seconds()
        late = [requests.popleft() for requests in self._requests.values() for _ in _expired(requests, now)]
        if late:
            offset = late[-1].offset
            self.log.warn("slaves too slow: sends={n} offset={o} ms={t:.0f}", n=len(late), o=offset,
                          t=self._timeout_seconds * 1000)  # fmt: skip
        oldest = min((requests[0].deadline for requests in self._requests.values() if requests), default=None)
        if oldest is not None:
            self._timer = self._clock.callLater(max(0.0, oldest - now), self._expire)
        for request in late:
            request.waiting.callback(False)


def _expired(requests: deque[_Request], now: float) -> list[_Request]:
    return [request for request in requests if request.deadline <= now]
