"""Connections that producers and consumers of one process share, and the base class of both."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TypeVar

from twisted.internet import defer
from twisted.python.failure import Failure

from twisted_mq.aio.loop_reactor import LoopReactor
from twisted_mq.blocking.background import background
from twisted_mq.blocking.calls import Call
from twisted_mq.blocking.loop_thread import LoopThread
from twisted_mq.client.consuming.deliveries import Act
from twisted_mq.client.core.errors import ClientStateError
from twisted_mq.client.core.requirements import Require
from twisted_mq.client.faces import member


class ThreadReactor(LoopReactor):
    """A LoopReactor whose `callFromThread` wakes the loop only while it sleeps."""

    _thread: LoopThread | None = None

    def enter_in(self, thread: LoopThread) -> None:
        """Add a member, in the running loop of this thread."""
        self.enter()
        self._thread = thread

    def callFromThread(self, f: Callable[..., Any], *args: object, **kwargs: object) -> None:  # type: ignore[override]
        assert self._thread is not None  # nothing calls before the first member has started
        with contextlib.suppress(
            ClientStateError
        ):  # stopped meanwhile: nothing waits any longer for the result of the thread
            self._thread.soon(functools.partial(f, *args, **kwargs))


Result = TypeVar("Result")

ANSWER_SECONDS = 0.25
"""The time that a caller waits beyond the timeout of the work itself, whose error says more than CallTimedOut."""


class MQClient(member.MQClient[ThreadReactor]):
    """Connections to one cluster. Give it to several producers and consumers to share them.

    Without `namesrv`, the environment variable NAMESRV_ADDR has the name servers' addresses.
    """

    make_reactor = ThreadReactor


class ClientMember(member.ClientMember[MQClient]):
    """A producer or consumer, which runs inside `with`, or from `start` to `stop`. Calls may come from any thread."""

    _client_class = MQClient

    def __init__(self, client: MQClient | None) -> None:
        super().__init__(client)
        self._thread: LoopThread | None = None
        self._life = threading.Lock()

    def start(self, timeout: float | None = None, *, require: Require | None = None) -> None:
        """Start. A start that fails or takes longer than `timeout` seconds (CallTimedOut) leaves nothing behind.

        Without `require`, a start succeeds even if servers are unreachable; the client tries until they are back. With
        "cluster" it raises NameServerUnreachable or BrokersUnreachable if no server answers; with "topics" also
        TopicNotFound for a missing topic of a subscription. With either, a consumer's start raises SubscriptionConflict if
        running members of its group have other subscriptions.
        """
        with self._life:
            thread = background().enter(self)
            try:
                call: Call[None] = Call(thread)
                thread.soon(call.begin, lambda: self._enter(thread, require))
                call.wait(timeout)
            except BaseException:
                background().leave(self)
                raise
            self._thread = thread

    def _enter(self, thread: LoopThread, require: Require | None) -> defer.Deferred[None]:
        self._reactor.enter_in(thread)
        return self._start(require).addErrback(self._not_started)

    def _not_started(self, reason: Failure) -> Failure:
        self._reactor.leave()
        return reason

    def stop(self, finish_seconds: float | None = None) -> None:
        """Stop. Work in progress may finish within `finish_seconds` (default: producer 3 s, consumer 5 s). Harmless twice.

        Does nothing in a fork of the process that called `start`.
        """
        with self._life:
            thread = self._thread
            if thread is None or not thread.is_ours:
                return
            seconds = self._finish_seconds if finish_seconds is None else finish_seconds
            try:
                thread.check_caller()
                call: Call[None] = Call(thread)
                thread.soon(call.begin, lambda: self._stop(seconds).addBoth(self._left))
                call.wait_to_its_end()
            finally:
                self._thread = None
                background().leave(self)

    def _left(self, result: Result) -> Result:
        self._reactor.leave()
        return result

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _checked(self) -> LoopThread:
        """Return the loop's thread. Raises ClientStateError if this is not running, or if the calling thread runs a loop."""
        thread = self._thread
        if thread is None:
            raise ClientStateError(f"this {type(self).__name__} is not running; use `with` or start() first")
        thread.check_caller()
        return thread

    def _act(self) -> Act:
        return self._checked().soon

    def _call(self, work: Callable[[], defer.Deferred[Result]], timeout: float | None = None) -> Result:
        """Run the core's work and return its result. After `timeout` seconds it is cancelled."""
        thread = self._checked()
        call: Call[Result] = Call(thread)
        thread.soon(call.begin, work)
        return call.wait(timeout)

    def _ask(self, work: Callable[[], defer.Deferred[Result]], timeout: float | None) -> Result:
        """Run work that applies the timeout itself, and return its result."""
        return self._call(work, None if timeout is None else timeout + ANSWER_SECONDS)

    def _do(self, function: Callable[[], Result]) -> Result:
        """Call the function in the loop, or here before the start; return its result."""
        if self._thread is None:
            return function()
        return self._call(lambda: defer.execute(function))
