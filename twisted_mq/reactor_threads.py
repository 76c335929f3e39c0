"""Work that blocks, in the threads of a reactor."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, Protocol, TypeVar

from twisted.internet import defer, interfaces, threads

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class InThread(Protocol):
    """deferToThread, or a stand-in."""

    def __call__(
        self, function: Callable[Arguments, Result], *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> defer.Deferred[Result]:
        """Fires with what the function returns once it has run."""


class CallFromThread(Protocol):
    """A reactor's callFromThread, or a stand-in."""

    def __call__(
        self, function: Callable[Arguments, object], *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> None:
        """Have the reactor's thread call the function; from any thread."""


def at_once(
    function: Callable[Arguments, Result], *arguments: Arguments.args, **named: Arguments.kwargs
) -> defer.Deferred[Result]:
    """Where there are no threads."""
    return defer.execute(function, *arguments, **named)


def threads_of(reactor: interfaces.IReactorTime) -> InThread:
    """Runs functions in the reactor's threads; a Clock has none, there they run at once."""
    threaded = interfaces.IReactorThreads(reactor, None)

    def in_thread(
        function: Callable[Arguments, Result], *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> defer.Deferred[Result]:
        if threaded is None:
            return at_once(function, *arguments, **named)
        return threads.deferToThreadPool(threaded, threaded.getThreadPool(), function, *arguments, **named)

    return in_thread
