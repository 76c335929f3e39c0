"""Encrypts the connections of a client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
from twisted.internet import defer, interfaces
from zope.interface import implementer

from twisted_mq.encryption.settings import ClientSettings
from twisted_mq.extras import require

Connect = Callable[[str, int], interfaces.IStreamClientEndpoint]


@implementer(interfaces.IStreamClientEndpoint)
@attrs.frozen
class EncryptedEndpoint:
    """Adds TLS to an endpoint. Without a clock, Twisted uses the default reactor, which a program with another reactor
    never runs.
    """

    creator: interfaces.IOpenSSLClientConnectionCreator
    endpoint: interfaces.IStreamClientEndpoint
    clock: interfaces.IReactorTime | None

    def connect(self, protocolFactory: interfaces.IProtocolFactory) -> defer.Deferred[interfaces.IProtocol]:
        from twisted_mq.encryption.connection import EncryptedFactory

        factory = EncryptedFactory(self.creator, True, protocolFactory, clock=self.clock)
        return self.endpoint.connect(factory).addCallback(_wrapped)


def _wrapped(made: Any) -> interfaces.IProtocol:
    """Return the protocol that TLS carries; Any, because no interface has it."""
    carried: interfaces.IProtocol = made.wrappedProtocol
    return carried


def encrypted(
    connect: Connect, settings: ClientSettings, now: float, clock: interfaces.IReactorTime | None = None
) -> Connect:
    """Return the same endpoints with TLS. `now` is in seconds since 1970. Raises ConfigError, MissingExtra."""
    require("TLS", "tls")
    from twisted_mq.encryption.contexts import client_creators

    creator = client_creators(settings, now)
    return lambda host, port: EncryptedEndpoint(creator(host), connect(host, port), clock)
