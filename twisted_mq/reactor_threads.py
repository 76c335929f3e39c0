"""Runs blocking work in the threads of a reactor."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, Protocol, TypeVar

from twisted.internet import defer, interfaces, threads

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class InThread(Protocol):
    """The type of deferToThread, and of its replacements."""

    def __call__(
        self, function: Callable[Arguments, Result], *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> defer.Deferred[Result]:
        """Fire with the function's result once it has run."""


class CallFromThread(Protocol):
    """The type of a reactor's callFromThread, and of its replacements."""

    def __call__(
        self, function: Callable[Arguments, object], *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> None:
        """Make the reactor's thread call the function; callable from any thread."""


def at_once(
    function: Callable[Arguments, Result], *arguments: Arguments.args, **named: Arguments.kwargs
) -> defer.Deferred[Result]:
    """Run the function at once, for callers without threads."""
    return defer.execute(function, *arguments, **named)


def threads_of(reactor: interfaces.IReactorTime) -> InThread:
    """Return a function that runs functions in the reactor's threads; a Clock has none, so they run at once."""
    threaded = interfaces.IReactorThreads(reactor, None)

    def in_thread(
        function: Callable[Arguments, Result], *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> defer.Deferred[Result]:
        if threaded is None:
            return at_once(function, *arguments, **named)
        return threads.deferToThreadPool(threaded, threaded.getThreadPool(), function, *arguments, **named)

    return in_thread
