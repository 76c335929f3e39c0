"""Runs several coroutines at the same time."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable

from twisted.internet import defer
from twisted.python import failure


async def together(works: Iterable[Coroutine[defer.Deferred[object], object, object]]) -> None:
    """Run all and wait for all, then raise the first error. Each handles the errors it can."""
    results = await defer.DeferredList([defer.Deferred.fromCoroutine(work) for work in works], consumeErrors=True)
    for _, result in results:
        if isinstance(result, failure.Failure):
            result.raiseException()
