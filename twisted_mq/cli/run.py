"""Runs one coroutine under the reactor: the only place, apart from the twistd plugins, that imports it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred
    from twisted.internet.interfaces import IReactorTime
    from twisted.python.failure import Failure

R = TypeVar("R")


class Interrupted(Exception):
    """Raised after Ctrl-C, a closed terminal, or SIGTERM; everything that the coroutine opened is closed."""


def run_under_reactor(main: Callable[[IReactorTime], Coroutine[Deferred[object], object, R]]) -> R:
    """Return the result of `main(reactor)`.

    SIGINT, SIGTERM and SIGHUP cancel it: its `finally` blocks run to their end, then `Interrupted` is raised here. Lines
    of the log go to Twisted's, which prints only critical ones unless `log_to_stderr` was called.
    """
    from twisted.internet import reactor
    from twisted.internet.defer import Deferred

    from twisted_mq.clocks import follow_monotonic_time
    from twisted_mq.config.hang_up import on_hang_up
    from twisted_mq.logs import complain_seldom, log_to_twisted

    log_to_twisted()
    complain_seldom()
    follow_monotonic_time(reactor)
    outcome: list[R | Failure] = []
    finished: Deferred[None] = Deferred()

    def end(result: R | Failure) -> None:
        outcome.append(result)
        finished.callback(None)
        if reactor.running and not stopping:
            reactor.stop()

    stopping: list[bool] = []
    running: list[Deferred[R]] = []

    def begin() -> None:
        running.append(Deferred.fromCoroutine(main(reactor)))
        running[0].addBoth(end)

    def stop() -> Deferred[None]:
        stopping.append(True)
        if not outcome and running:
            running[0].cancel()
        return finished

    reactor.callWhenRunning(begin)
    reactor.addSystemEventTrigger("before", "shutdown", stop)
    on_hang_up(reactor)
    reactor.run()
    return _result(outcome[0])


def _result(outcome: R | Failure) -> R:
    from twisted.internet.defer import CancelledError, FirstError
    from twisted.python.failure import Failure

    if not isinstance(outcome, Failure):
        return outcome
    if outcome.check(CancelledError):
        raise Interrupted
    while isinstance(outcome.value, FirstError):  # gatherResults: the error is inside
        outcome = outcome.value.subFailure
    outcome.raiseException()
