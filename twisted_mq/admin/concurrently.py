"""Concurrent requests with a limit."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

from twisted.internet.defer import Deferred, DeferredSemaphore, FirstError, gatherResults

MOST_REQUESTS = 16
"""The limit of requests that wait for their answers at the same time."""

T = TypeVar("T")
R = TypeVar("R")


async def concurrently(ask: Callable[[T], Coroutine[Any, Any, R]], items: Iterable[T]) -> list[R]:
    """Call `ask` for each item concurrently; return the results in the order of the items. Raises the first failure."""
    slots = DeferredSemaphore(MOST_REQUESTS)
    asked = [slots.run(lambda item: Deferred.fromCoroutine(ask(item)), item) for item in items]
    try:
        return await gatherResults(asked, consumeErrors=True)
    except FirstError as error:
        error.subFailure.raiseException()
