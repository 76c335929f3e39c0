"""How a server stops: step by step, and whatever a step does, the next one runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from twisted.internet import defer, interfaces

from twisted_mq.logs import Logger

STEP_SECONDS = 10.0
"""How long one step may take: then it is cancelled, and what it waited for is given up."""

Step: TypeAlias = tuple[str, Callable[[], object]]
"""What is done, for the log, and the call, which may answer with a Deferred or a coroutine."""

log = Logger()


async def stop_all(clock: interfaces.IReactorTime, steps: Iterable[Step]) -> None:
    """Take the steps in turn. A step that fails or waits too long is logged; never raises."""
    for name, step in steps:
        await take(clock, name, step, STEP_SECONDS)


async def take(clock: interfaces.IReactorTime, name: str, step: Callable[[], object], seconds: float) -> bool:
    """Take one step; whether it ended well within that time."""
    working: defer.Deferred[object] = defer.maybeDeferred(step)
    # a DeferredList that has fired cannot be cancelled while it waits for one of its callbacks
    done: defer.Deferred[object] = defer.Deferred(lambda _: working.cancel())
    working.chainDeferred(done)
    done.addTimeout(seconds, clock)
    try:
        await done
    except defer.TimeoutError:
        log.error("stop: {name} took more than {seconds} s, the stop goes on without", name=name, seconds=seconds)
    except OSError as error:
        log.error("stop: {name} failed, the stop goes on without: {error}", name=name, error=error)
    except Exception:
        log.failure("stop: {name} failed, the stop goes on without", name=name)
    else:
        return True
    return False
