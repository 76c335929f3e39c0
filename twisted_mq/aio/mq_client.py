"""Connections that producers and consumers of one event loop share, and the base class of both."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from types import TracebackType
from typing import Self, TypeVar

from twisted.internet import defer

from twisted_mq.aio.awaiting import to_its_end
from twisted_mq.aio.loop_reactor import LoopReactor
from twisted_mq.client.core import mq_client
from twisted_mq.client.core.argument_checks import check_class
from twisted_mq.client.core.client_options import ClientOptions
from twisted_mq.client.core.requirements import Require
from twisted_mq.logs import log_to_standard

Result = TypeVar("Result")


class MQClient:
    """Connections to one cluster. Give it to several producers and consumers of one event loop to share them.

    Without `namesrv`, the environment variable NAMESRV_ADDR has the name servers' addresses.
    """

    def __init__(
        self,
        namesrv: str | Sequence[str] | None = None,
        *,
        options: ClientOptions | None = None,
        instance_name: str | None = None,
        ip: str | None = None,
    ) -> None:
        self.reactor = LoopReactor()
        self.core = mq_client.MQClient(self.reactor, namesrv or (), options=options, instance_name=instance_name, ip=ip)

    @property
    def client_id(self) -> str:
        """The ID by which brokers know this client."""
        return self.core.client_id


class ClientMember(abc.ABC):
    """A producer or consumer, which runs inside `async with`, or from `start` to `stop`."""

    _finish_seconds = 3.0

    def __init__(self, client: MQClient | None) -> None:
        check_class(client, MQClient, "client")
        self._reactor = client.reactor if client is not None else LoopReactor()
        self._shared = client.core if client is not None else None
        self._begun = False
        log_to_standard()

    @abc.abstractmethod
    def _start(self, require: Require | None) -> defer.Deferred[None]:
        """Start the core."""

    @abc.abstractmethod
    def _stop(self, finish_seconds: float) -> defer.Deferred[None]:
        """Stop the core."""

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
