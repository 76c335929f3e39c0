"""Starts coroutines that mostly end without waiting. A Deferred would cost more than the rest of a listener call."""

from __future__ import annotations

import contextvars
from collections.abc import Coroutine, Generator
from typing import TypeVar

from twisted.internet import defer

Result = TypeVar("Result")
Work = Coroutine[defer.Deferred[object], object, Result]


def start(work: Work[Result]) -> defer.Deferred[Result] | None:
    """Run it in its own contextvars, as Deferred.fromCoroutine does. Return None if it has ended, else a Deferred.

    Raises what it raises before it waits for anything. Its result is lost if it did not wait.
    """
    context = contextvars.copy_context()
    try:
        waits_for = context.run(work.send, None)
    except StopIteration:
        return None
    return defer.Deferred.fromCoroutine(_rest(work, waits_for, context))


def _rest(
    work: Work[Result], waits_for: defer.Deferred[object], context: contextvars.Context
) -> Generator[defer.Deferred[object], object, Result]:
    """Run the rest of a coroutine that waits for something, in the contextvars in which it began."""
    try:
        while True:
            try:
                came = yield waits_for
            except GeneratorExit:
                context.run(work.close)
                raise
            except BaseException as error:
                waits_for = context.run(work.throw, error)
            else:
                waits_for = context.run(work.send, came)
    except StopIteration as end:
        result: Result = end.value
        return result
