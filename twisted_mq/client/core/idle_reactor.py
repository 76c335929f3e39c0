"""Detects clients whose reactor does not run: nothing they are asked to do would happen, so they log it."""

from __future__ import annotations

import atexit
import sys

from twisted.internet import interfaces

from twisted_mq.client.core.errors import ClientStateError
from twisted_mq.logs import Logger

log = Logger()

_idle: set[interfaces.IReactorTime] = set()
"""Reactors with a client that have not run yet."""


def check_reactor(reactor: interfaces.IReactorTime) -> None:
    """Raise ClientStateError in a thread that runs another event loop. A reactor that never runs is logged at exit."""
    if getattr(reactor, "running", True) or reactor in _idle:
        return
    if _in_asyncio():
        raise ClientStateError(
            "this is the client of Twisted's reactor, which does not run; an asyncio event loop runs here: import the same "
            "names from twisted_mq.aio"
        )
    core = interfaces.IReactorCore(reactor, None)
    if core is not None:
        if not _idle:
            atexit.register(_tell)
        _idle.add(reactor)
        core.callWhenRunning(_idle.discard, reactor)


def _in_asyncio() -> bool:
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and asyncio._get_running_loop() is not None


def _tell() -> None:
    if _idle:
        log.warn(
            "Twisted's reactor never ran, so nothing was sent or consumed: run the program with twisted.internet.task.react, "
            "or import the same names from twisted_mq.blocking, whose calls wait"
        )
