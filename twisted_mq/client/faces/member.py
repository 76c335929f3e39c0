"""Connections that producers and consumers share, and the base class of both, for each face that runs the core in a loop."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar

from twisted.internet import defer, interfaces

from twisted_mq.client.core import mq_client
from twisted_mq.client.core.argument_checks import check_class
from twisted_mq.client.core.client_options import ClientOptions
from twisted_mq.client.core.requirements import Require
from twisted_mq.logs import log_to_standard

Result = TypeVar("Result")
ReactorT = TypeVar("ReactorT", bound=interfaces.IReactorTime)
MQClientT = TypeVar("MQClientT", bound="MQClient[Any]")
"""The MQClient of a face."""


class MQClient(Generic[ReactorT]):
    """Connections to one cluster, on the reactor of a face."""

    make_reactor: Callable[[], ReactorT]

    def __init__(
        self,
        namesrv: str | Sequence[str] | None = None,
        *,
        options: ClientOptions | None = None,
        instance_name: str | None = None,
        ip: str | None = None,
    ) -> None:
        self.reactor = type(self).make_reactor()
        self.core = mq_client.MQClient(self.reactor, namesrv or (), options=options, instance_name=instance_name, ip=ip)

    @property
    def client_id(self) -> str:
        """The ID by which brokers know this client."""
        return self.core.client_id


class Core(Protocol):
    """A producer or consumer of Deferreds, which does the work."""

    def start(self, *, require: Require | None = None) -> defer.Deferred[None]: ...

    @property
    def stop(self) -> Callable[..., defer.Deferred[None]]: ...


class ClientMember(abc.ABC, Generic[MQClientT]):
    """A producer or consumer."""

    _client_class: type[MQClientT]
    _core: Core
    _finish_seconds = 3.0
    listens = False
    """True if messages go to a listener."""

    def __init__(self, client: MQClientT | None) -> None:
        check_class(client, self._client_class, "client")
        self._reactor = client.reactor if client is not None else self._client_class.make_reactor()
        self._shared = client.core if client is not None else None
        log_to_standard()

    @abc.abstractmethod
    def _do(self, function: Callable[[], Result]) -> Result:
        """Call a function of the core where the core runs; return its result."""

    def _start(self, require: Require | None) -> defer.Deferred[None]:
        """Start the core, in the loop."""
        return self._core.start(require=require)

    def _stop(self, finish_seconds: float) -> defer.Deferred[None]:
        """Stop the core, in the loop."""
        return self._core.stop(finish_seconds)
