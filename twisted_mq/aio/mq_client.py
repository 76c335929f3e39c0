"""What producers and consumers of one event loop may share, and what each of them is made of."""

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

    Without `namesrv` the environment's NAMESRV_ADDR says where the name servers are.
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
        """Under which the brokers know it."""
        return self.core.client_id


class Member(abc.ABC):
    """The life of a producer or consumer: `async with`, or `start` and `stop`."""

    _finish_seconds = 3.0

    def __init__(self, client: MQClient | None) -> None:
        check_class(client, MQClient, "client")
        self._reactor = client.reactor if client is not None else LoopReactor()
        self._shared = client.core if client is not None else None
        self._begun = False
        log_to_standard()

    @abc.abstractmethod
    def _start(self, require: Require | None) -> defer.Deferred[None]:
        """Of the core."""

    @abc.abstractmethod
    def _stop(self, finish_seconds: float) -> defer.Deferred[None]:
        """Of the core."""

    async def start(self, *, require: Require | None = None) -> None:
        """Begin, in the running event loop. A start that fails or is cancelled leaves nothing behind.

        Without `require` a start asks for nothing: servers that are away are looked for until they are back. With "cluster"
        it raises NameServerUnreachable or BrokersUnreachable where none answers; with "topics" also TopicNotFound for a
        topic subscribed to. A consumer's start raises SubscriptionConflict with both.
        """
        self._reactor.enter()
        try:
            await to_its_end(self._start(require), cancel=True)
        except BaseException:
            self._reactor.leave()
            raise
        self._begun = True

    async def stop(self, finish_seconds: float | None = None) -> None:
        """End: what is under way may finish for that long (3 s of a producer, 5 s of a consumer). Harmless twice.

        Cancelled meanwhile it goes on to its end all the same, and raises CancelledError then.
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
