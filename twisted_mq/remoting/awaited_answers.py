"""Keeps the requests of one connection whose answers have not come yet, by opaque.

One timer serves all of them, set for the earliest that is due, because a timer for each would cost a good part of a
request. It may fire for requests that were answered meanwhile, and is cancelled with the connection.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

from twisted.internet import defer, interfaces

from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.remoting.errors import RemotingSendError, RemotingTimeoutError

_LARGEST_OPAQUE = 0x7FFFFFFF
_DUE_KEPT = 1000
"""The due times of answered requests that are kept before they are removed."""


def _nobody(sent_at: float) -> None:
    """Ignore late answers once no owner wants to know of them."""


class AwaitedAnswers:
    """Requests without an answer. `late` is called with the time when the last request was
    sent that had no answer in time.
    """

    def __init__(self, clock: interfaces.IReactorTime, late: Callable[[float], object]) -> None:
        self._clock = clock
        self._late = late
        self._seconds = clock.seconds
        self.requests: dict[int, tuple[defer.Deferred[RemotingCommand], float, float, str]] = {}
        """By opaque, each with the time when it is due, its timeout, and the peer's address."""
        self._due: list[tuple[float, int]] = []
        """A heap of due time and opaque, including some that were answered."""
        self._timer: interfaces.IDelayedCall | None = None
        self._timer_due = 0.0
        self._last_opaque = 0

    def take_opaque(self) -> int:
        """Return the next request's number, from 1 on."""
        self._last_opaque = (self._last_opaque + 1) & _LARGEST_OPAQUE
        return self._last_opaque

    def expect(self, opaque: int, timeout_seconds: float, address: str) -> defer.Deferred[RemotingCommand]:
        """Fire with the answer; fail with RemotingTimeoutError, which names the peer's address, or as `fail` says."""
        waiting: defer.Deferred[RemotingCommand] = defer.Deferred(lambda _: self._forget(opaque))
        due = self._seconds() + timeout_seconds
        self.requests[opaque] = (waiting, due, timeout_seconds, address)
        if len(self._due) > 2 * len(self.requests) + _DUE_KEPT:
            self._sort_out()
        else:
            heapq.heappush(self._due, (due, opaque))
        if self._timer is None or due < self._timer_due:
            self._set_timer(due, timeout_seconds)
        return waiting

    def answered(self, command: RemotingCommand) -> bool:
        """Pass an answer on; False if no request waits for it."""
        awaited = self.requests.pop(command.opaque, None)
        if awaited is None:
            return False
        awaited[0].callback(command)
        return True

    def postpone(self, seconds: float) -> None:
        """Extend the time of all requests."""
        for opaque, (waiting, due, timeout_seconds, address) in self.requests.items():
            self.requests[opaque] = (waiting, due + seconds, timeout_seconds, address)
        self._sort_out()

    def fail(self, reason: str) -> None:
        """Fail all requests, because the connection is gone."""
        awaited, self.requests = self.requests, {}
        self._late = _nobody  # otherwise it and its connection would hold each other
        self._due.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for waiting, *_ in awaited.values():
            waiting.errback(RemotingSendError(reason))

    def _forget(self, opaque: int) -> None:
        self.requests.pop(opaque, None)

    def _sort_out(self) -> None:
        """Keep only the due times of requests that still wait."""
        self._due = [(due, opaque) for opaque, (_, due, _, _) in self.requests.items()]
        heapq.heapify(self._due)

    def _set_timer(self, due: float, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_due = due
        self._timer = self._clock.callLater(seconds, self._timed_out)

    def _timed_out(self) -> None:
        now = max(self._seconds(), self._timer_due)
        self._timer = None
        late = []
        while self._due and (self._due[0][0] <= now or self._due[0][1] not in self.requests):
            due, opaque = heapq.heappop(self._due)
            awaited = self.requests.get(opaque)
            if awaited is not None and awaited[1] == due:
                late.append(self.requests.pop(opaque))
        if self._due:
            self._set_timer(self._due[0][0], self._due[0][0] - now)
        for waiting, _, timeout_seconds, address in late:
            waiting.errback(RemotingTimeoutError(f"no answer from {address} within {timeout_seconds:g} s"))
        if late:
            self._late(max(due - timeout_seconds for _, due, timeout_seconds, _ in late))
