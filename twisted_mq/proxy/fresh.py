"""Answers of brokers that are used for a while."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

import attrs
from twisted.internet import defer, interfaces

FRESH_SECONDS = 20.0
"""The time an answer is used before it is requested again (Apache: topicRouteServiceCacheRefresh...)."""
MOST_KNOWN = 20_000

T = TypeVar("T")


@attrs.define(eq=False)
class Fresh(Generic[T]):
    """Answers by what was asked. Past the limit, the oldest is forgotten. Callers at the same time share a request."""

    _clock: interfaces.IReactorTime
    _known: dict[Hashable, tuple[float, T]] = attrs.field(factory=dict)
    _asked: dict[Hashable, list[defer.Deferred[Any]]] = attrs.field(factory=dict)

    def __len__(self) -> int:
        return len(self._known)

    def get(self, key: Hashable, ask: Callable[[], defer.Deferred[T]]) -> defer.Deferred[T]:
        """Return the answer. `ask` requests it if none is known, or only an old one. Failures are not remembered."""
        known = self._known.get(key)
        if known is not None and self._clock.seconds() - known[0] < FRESH_SECONDS:
            return defer.succeed(known[1])
        waiting: defer.Deferred[T] = defer.Deferred()
        if key in self._asked:
            self._asked[key].append(waiting)
            return waiting
        self._asked[key] = [waiting]
        ask().addCallback(self._remember, key).addBoth(self._tell, key)
        return waiting

    def peek(self, key: Hashable) -> T | None:
        """Return the last answer, however old it is; None if none is known."""
        known = self._known.get(key)
        return None if known is None else known[1]

    def _remember(self, answer: T, key: Hashable) -> T:
        self._known.pop(key, None)
        self._known[key] = self._clock.seconds(), answer
        while len(self._known) > MOST_KNOWN:
            del self._known[next(iter(self._known))]
        return answer

    def _tell(self, result: Any, key: Hashable) -> None:
        for waiting in self._asked.pop(key):
            if not waiting.called:
                waiting.callback(result)
