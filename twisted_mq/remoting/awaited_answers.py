"""Keeps the requests of one connection whose answers have not come yet, by opaque.

One timer serves all of them, set for the earliest that is due, because a timer for each would cost a good part of a
request. It may fire for requests that were answered meanwhile, and is cancelled with the connection.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from itertools import repeat
from operator import itemgetter
from typing import Any, NamedTuple, Protocol, TypeAlias

from twisted.internet import defer, interfaces
from twisted.python.failure import Failure

from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.shapes import OPAQUE_PART, Streak
from twisted_mq.remoting.errors import RemotingSendError, RemotingTimeoutError

_LARGEST_OPAQUE = 0x7FFFFFFF
_DUE_KEPT = 1000
"""The due times of answered requests that are kept before they are removed."""
_LEAST_OPAQUE = b"1"
"""A number with a zero before it is no JSON."""


class Asker(Protocol):
    """Makes many requests at a time, and takes their answers. A request is whatever it gave for one."""

    def settled(self, request: Any, result: RemotingCommand | Failure) -> bool:
        """Take the answer to a request, or the error that it failed with. Return False for a request that had ended before."""

    def read(self, streak: Streak) -> Any | None:
        """Return what answers of one shape say; None if they have to be read one by one."""

    def settled_together(self, requests: list[Any], read: Any) -> None:
        """Take the answers to these requests, as `read` returned them."""


class Terms(NamedTuple):
    """When a request is due, its timeout, and the peer's address."""

    due: float
    timeout_seconds: float
    address: str


Awaited: TypeAlias = tuple[Asker | None, Any, Terms]
"""The asker, the request, its terms. A request without an asker is its Deferred."""
_NOBODY: tuple[None, None] = (None, None)


def _ignore(sent_at: float) -> None:
    """Ignore late answers once no owner wants to know of them."""


class AwaitedAnswers:
    """Requests without an answer. `late` is called with the time when the last request was
    sent that had no answer in time.
    """

    def __init__(self, clock: interfaces.IReactorTime, late: Callable[[float], object]) -> None:
        self._clock = clock
        self._late = late
        self._seconds = clock.seconds
        self.requests: dict[int, Awaited] = {}
        """By opaque."""
        self._due: list[tuple[float, list[int]]] = []
        """A heap of due times and opaques, including some that were answered."""
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
        terms = Terms(self._seconds() + timeout_seconds, timeout_seconds, address)
        self.requests[opaque] = (None, waiting, terms)
        self._note_due(terms, [opaque])
        return waiting

    def expect_together(
        self, asker: Asker, requests: Iterable[tuple[Callable[[int], bytes], float, Any]], address: str
    ) -> list[bytes]:
        """Number requests that leave now. Each has the function that makes its frame, its timeout, and what the asker gave.

        Returns their frames. The asker gets the answers, and what `expect` would fail with.
        """
        now, awaited, opaque = self._seconds(), self.requests, self._last_opaque
        groups: dict[float, tuple[Terms, list[int]]] = {}
        frames: list[bytes] = []
        for frame, timeout_seconds, request in requests:
            opaque = (opaque + 1) & _LARGEST_OPAQUE
            group = groups.get(timeout_seconds)
            if group is None:
                group = groups[timeout_seconds] = Terms(now + timeout_seconds, timeout_seconds, address), []
            group[1].append(opaque)
            awaited[opaque] = (asker, request, group[0])
            frames.append(frame(opaque))
        self._last_opaque = opaque
        for terms, opaques in groups.values():
            self._note_due(terms, opaques)
        return frames

    def answered(self, command: RemotingCommand) -> bool:
        """Pass an answer on; False if no request waits for it."""
        awaited = self.requests.pop(command.opaque, None)
        if awaited is None:
            return False
        _settle(awaited, command)
        return True

    def answered_together(self, streak: Streak) -> bool:
        """Pass answers on to the asker of all of them. Return False, and do nothing, if they must be passed on one by one."""
        place = streak.family.place(OPAQUE_PART)
        column = [row[place] for row in streak.rows]
        if streak.family.is_binary or not b"".join(column).isdigit() or min(column) < _LEAST_OPAQUE:
            return False
        opaques = [*map(int, column)]
        if len({*opaques}) < len(opaques):
            return False
        awaited = [*map(self.requests.get, opaques, repeat(_NOBODY))]
        asker, *others = {*map(itemgetter(0), awaited)}
        if others or asker is None or (read := asker.read(streak)) is None:
            return False
        for opaque in opaques:
            self.requests.pop(opaque, None)
        asker.settled_together([one[1] for one in awaited], read)
        return True

    def postpone(self, seconds: float) -> None:
        """Extend the time of all requests."""
        for opaque, (asker, request, terms) in self.requests.items():
            self.requests[opaque] = (asker, request, terms._replace(due=terms.due + seconds))
        self._sort_out()

    def fail(self, reason: str) -> None:
        """Fail all requests, because the connection is gone."""
        awaited, self.requests = self.requests, {}
        self._late = _ignore  # otherwise it and its connection would hold each other
        self._due.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for one in awaited.values():
            _settle(one, Failure(RemotingSendError(reason)))

    def _forget(self, opaque: int) -> None:
        self.requests.pop(opaque, None)

    def _note_due(self, terms: Terms, opaques: list[int]) -> None:
        if len(self._due) > 2 * len(self.requests) + _DUE_KEPT:
            self._sort_out()
        else:
            heapq.heappush(self._due, (terms.due, opaques))
        if self._timer is None or terms.due < self._timer_due:
            self._set_timer(terms.due, terms.timeout_seconds)

    def _sort_out(self) -> None:
        """Keep only the due times of requests that still wait."""
        self._due = [(terms.due, [opaque]) for opaque, (_, _, terms) in self.requests.items()]
        heapq.heapify(self._due)

    def _set_timer(self, due: float, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_due = due
        self._timer = self._clock.callLater(seconds, self._timed_out)

    def _timed_out(self) -> None:
        now = max(self._seconds(), self._timer_due)
        self._timer = None
        ended: list[Awaited] = []
        while self._due and (self._due[0][0] <= now or self.requests.keys().isdisjoint(self._due[0][1])):
            due, opaques = heapq.heappop(self._due)
            for opaque in opaques:
                awaited = self.requests.get(opaque)
                if awaited is not None and awaited[2].due == due:
                    ended.append(self.requests.pop(opaque))
        if self._due:
            self._set_timer(self._due[0][0], self._due[0][0] - now)
        late = [one[2] for one in ended if _settle(one, Failure(_no_answer(one[2])))]
        if late:
            self._late(max(terms.due - terms.timeout_seconds for terms in late))


def _no_answer(terms: Terms) -> RemotingTimeoutError:
    return RemotingTimeoutError(f"no answer from {terms.address} within {terms.timeout_seconds:g} s")


def _settle(awaited: Awaited, result: RemotingCommand | Failure) -> bool:
    """Give a request its result. Return False if it had ended before."""
    asker, request, _ = awaited
    if asker is not None:
        return asker.settled(request, result)
    request.callback(result)
    return True
