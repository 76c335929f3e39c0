"""Connections that producers and consumers of one event loop share, and the base class of both."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Self, TypeVar

from twisted_mq.aio.awaiting import to_its_end
from twisted_mq.aio.loop_reactor import LoopReactor
from twisted_mq.client.core.requirements import Require
from twisted_mq.client.faces import member

Result = TypeVar("Result")


class MQClient(member.MQClient[LoopReactor]):
    """Connections to one cluster. Give it to several producers and consumers to share them.

    Without `namesrv`, the environment variable NAMESRV_ADDR has the name servers' addresses.
    """

    make_reactor = LoopReactor


class ClientMember(member.ClientMember[MQClient]):
    """A producer or consumer, which runs inside `async with`, or from `start` to `stop`."""

    _client_class = MQClient

    def __init__(self, client: MQClient | None) -> None:
        super().__init__(client)
        self._begun = False

    def _do(self, function: Callable[[], Result]) -> Result:
        return function()

    async def start(self, *, require: Require | None = None) -> None:
        """Start, in the running event loop. A start that fails or is cancelled leaves nothing behind.

        Without `require`, a start succeeds even if servers are unreachable; the client tries until they are back. With
        "cluster" it raises NameServerUnreachable or BrokersUnreachable if no server answers; with "topics" also
        TopicNotFound for a missing topic of a subscription. With either, a consumer's start raises SubscriptionConflict if
        running members of its group have other subscriptions.
        """
        self._reactor.enter()
        try:
            await to_its_end(self._start(require), cancel=True)
        except BaseException:
            self._reactor.leave()
            raise
        self._begun = True

    async def stop(self, finish_seconds: float | None = None) -> None:
        """Stop. Work in progress may finish within `finish_seconds` (default: producer 3 s, consumer 5 s). Harmless twice.

        A stop that is cancelled completes first, and then raises CancelledError.
        """
        if not self._begun:
            return
        self._reactor.check_loop()
        self._begun = False
        try:
            await to_its_end(self._stop(self._finish_seconds if finish_seconds is None else finish_seconds))
        finally:
            self._reactor.leave()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()
