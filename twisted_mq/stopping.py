"""Stops a server step by step; whatever a step does, the next one runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from twisted.internet import defer, interfaces

from twisted_mq.logs import Logger

STEP_SECONDS = 10.0
"""The time that one step may take: after that it is cancelled, and its work is given up."""

Step: TypeAlias = tuple[str, Callable[[], object]]
"""The step's name, for the log, and its call, which may return a Deferred or a coroutine."""

log = Logger()


async def stop_all(clock: interfaces.IReactorTime, steps: Iterable[Step]) -> None:
    """Run the steps in turn. A step that fails or takes too long is logged. Never raises."""
    for name, step in steps:
        await take(clock, name, step, STEP_SECONDS)


async def take(clock: interfaces.IReactorTime, name: str, step: Callable[[], object], seconds: float) -> bool:
    """Run one step. Returns True if it succeeded within that time."""
    working: defer.Deferred[object] = defer.maybeDeferred(step)
    # a DeferredList that has fired cannot be cancelled while it waits for one of its callbacks
    done: defer.Deferred[object] = defer.Deferred(lambda _: working.cancel())
    working.chainDeferred(done)
    done.addTimeout(seconds, clock)
    try:
        await done
    except defer.TimeoutError:
        log.error("stop: {name} took more than {seconds} s, the stop continues without", name=name, seconds=seconds)
    except OSError as error:
        log.error("stop: {name} failed, the stop continues without: {error}", name=name, error=error)
    except Exception:
        log.failure("stop: {name} failed, the stop continues without", name=name)
    else:
        return True
    return False
