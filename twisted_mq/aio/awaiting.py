"""Conversions between the core's Deferreds and asyncio's awaitables."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import NoReturn, TypeVar

from twisted.internet import defer
from twisted.python.failure import Failure

Result = TypeVar("Result")


async def result_of(work: defer.Deferred[Result], loop: asyncio.AbstractEventLoop) -> Result:
    """Return the result of the work. A cancelled wait cancels the work at once; Deferred.asFuture would one loop turn later."""
    settled: asyncio.Future[Result] = loop.create_future()
    work.addBoth(_settle, settled)
    try:
        return await settled
    except asyncio.CancelledError:
        work.cancel()
        raise


def _settle(result: Result | Failure, settled: asyncio.Future[Result]) -> None:
    if settled.done():  # cancelled: no task waits
        return
    if isinstance(result, Failure):
        assert result.value is not None
        settled.set_exception(result.value)
    else:
        settled.set_result(result)


async def to_its_end(work: defer.Deferred[Result], *, cancel: bool = False) -> Result:
    """Wait for work that must not be left half done. A cancellation is raised after the work has ended.

    With `cancel`, the cancellation also cancels the work, which then undoes what it began.
    """
    ended = work.asFuture(asyncio.get_running_loop())
    cancelled: asyncio.CancelledError | None = None
    while not ended.done():
        try:
            await asyncio.wait([ended])
        except asyncio.CancelledError as error:
            cancelled = error
            if cancel:
                work.cancel()
    if cancelled is None:
        return ended.result()
    ended.exception()  # mark it as retrieved: the cancellation takes precedence
    raise cancelled


def deferred_of(awaitable: Awaitable[Result]) -> defer.Deferred[Result]:
    """Run a user's coroutine as a task of the running loop and return its result. Cancelling the Deferred cancels the task."""
    task = asyncio.ensure_future(awaitable)
    return defer.Deferred.fromFuture(task).addErrback(_cancelled)


def _cancelled(reason: Failure) -> NoReturn:
    """Raise Twisted's CancelledError for asyncio's, which is not an Exception and would bypass error handlers."""
    if reason.check(asyncio.CancelledError):
        raise defer.CancelledError from None
    reason.raiseException()
