"""Connects to a host by its name: tries its addresses one after the other, IPv4 first.

Twisted's HostnameEndpoint would install the default reactor, even in an asyncio program.
"""

from __future__ import annotations

import functools
import socket

from twisted.internet import defer, interfaces
from twisted.internet.endpoints import TCP4ClientEndpoint, TCP6ClientEndpoint
from twisted.internet.error import ConnectError, DNSLookupError
from zope.interface import implementer

from twisted_mq.reactor_threads import threads_of

KINDS = {socket.AF_INET: TCP4ClientEndpoint, socket.AF_INET6: TCP6ClientEndpoint}


@implementer(interfaces.IStreamClientEndpoint)
class NameEndpoint:
    """An endpoint for a host name. Each attempt at an address may take `timeout` seconds."""

    def __init__(self, reactor: interfaces.IReactorTime, host: str, port: int, timeout: float) -> None:
        self._reactor = reactor
        self._host = host
        self._port = port
        self._timeout = timeout

    def connect(self, protocolFactory: interfaces.IProtocolFactory) -> defer.Deferred[interfaces.IProtocol]:
        return defer.Deferred.fromCoroutine(self._connect(protocolFactory))

    async def _connect(self, factory: interfaces.IProtocolFactory) -> interfaces.IProtocol:
        """Connect. Raises DNSLookupError, or the ConnectError of the last address."""
        error: ConnectError | None = None
        for family, address in await self._addresses():
            try:
                return await KINDS[family](self._reactor, address, self._port, timeout=self._timeout).connect(factory)
            except ConnectError as failed:
                error = failed
        raise error or DNSLookupError(f"{self._host} has no address")

    async def _addresses(self) -> list[tuple[socket.AddressFamily, str]]:
        look_up = functools.partial(socket.getaddrinfo, self._host, self._port, type=socket.SOCK_STREAM)
        try:
            found = await threads_of(self._reactor)(look_up)
        except OSError as error:
            raise DNSLookupError(f"{self._host}: {error}") from error
        return sorted((family, str(place[0])) for family, _, _, _, place in found if family in KINDS)
