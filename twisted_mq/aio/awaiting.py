"""Deferreds of the core as awaitables of asyncio, and the other way round."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import NoReturn, TypeVar

from twisted.internet import defer
from twisted.python.failure import Failure

Result = TypeVar("Result")


async def result_of(work: defer.Deferred[Result], loop: asyncio.AbstractEventLoop) -> Result:
    """What the work comes to. Who is cancelled while waiting cancels it at once, which Deferred.asFuture does a turn later."""
    settled: asyncio.Future[Result] = loop.create_future()
    work.addBoth(_settle, settled)
    try:
        return await settled
    except asyncio.CancelledError:
        work.cancel()
        raise


def _settle(result: Result | Failure, settled: asyncio.Future[Result]) -> None:
    if settled.done():  # cancelled: nobody waits
        return
    if isinstance(result, Failure):
        assert result.value is not None
        settled.set_exception(result.value)
    else:
        settled.set_result(result)


async def to_its_end(work: defer.Deferred[Result], *, cancel: bool = False) -> Result:
    """Wait for work that must not be left half done. A cancellation is raised when it has ended.

    With `cancel` the work is told of the cancellation, and takes back what it began.
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
    ended.exception()  # seen: the cancellation goes before it
    raise cancelled


def deferred_of(awaitable: Awaitable[Result]) -> defer.Deferred[Result]:
    """The result of a user's coroutine, which becomes a task of the running loop; cancelled with the Deferred."""
    task = asyncio.ensure_future(awaitable)
    return defer.Deferred.fromFuture(task).addErrback(_cancelled)


def _cancelled(reason: Failure) -> NoReturn:
    """Twisted's word for it: asyncio's is no Exception, and would pass by all that handle errors."""
    if reason.check(asyncio.CancelledError):
        raise defer.CancelledError from None
    reason.raiseException()
