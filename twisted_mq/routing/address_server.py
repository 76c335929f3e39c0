"""Reads name servers' addresses by HTTP (Apache: DefaultTopAddressing): a page's first line is "host:port;host:port"."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs
from twisted.internet import defer, interfaces, protocol
from twisted.python import failure

from twisted_mq.remoting.client import Connect, tcp_endpoint
from twisted_mq.routing.errors import NameServerUnreachable

if TYPE_CHECKING:
    from twisted.web.client import URI

MAX_BYTES = 64 * 1024
"""Bytes of a page that are read at most."""

HttpGet = Callable[[str], defer.Deferred[bytes]]
"""URL -> body of the answer 200. Fails with any Exception."""


def address_server_url(domain: str, subgroup: str = "nsaddr", unit_name: str = "") -> str:
    """Return the URL of a domain's page (rocketmq.namesrv.domain), on port 8080 if the domain names no port."""
    host = domain if ":" in domain else f"{domain}:8080"
    unit = f"-{unit_name}?nofix=1" if unit_name else ""
    return f"http://{host}/rocketmq/{subgroup}{unit}"


class AddressServer:
    """A page that lists the name servers."""

    def __init__(self, url: str, get: HttpGet) -> None:
        self.url = url
        self._get = get

    async def ask(self) -> str:
        """Return the page's first line. Raises NameServerUnreachable."""
        try:
            page = await self._get(self.url)
        except defer.CancelledError:
            raise
        except Exception as error:  # an HTTP client raises errors that have no common base class
            raise NameServerUnreachable({self.url: str(error) or type(error).__name__}) from error
        lines = page.decode(errors="replace").strip().splitlines()
        if not lines:
            raise NameServerUnreachable({self.url: "the page is empty"})
        return lines[0].strip()


def http_get(reactor: interfaces.IReactorTime, timeout_seconds: float, most_bytes: int = MAX_BYTES) -> HttpGet:
    """Return a function that gets pages with Twisted's agent; a longer page ends after that many bytes."""

    def get(url: str) -> defer.Deferred[bytes]:
        page = defer.Deferred.fromCoroutine(_get(reactor, url, timeout_seconds, most_bytes))
        return page.addTimeout(timeout_seconds, reactor)

    return get


async def _get(reactor: interfaces.IReactorTime, url: str, timeout_seconds: float, most_bytes: int) -> bytes:
    from twisted.web.client import Agent  # the import takes a tenth of a second: only users of an address server pay it
    from twisted.web.iweb import IAgentEndpointFactory
    from zope.interface import directlyProvides

    endpoints = _Endpoints(tcp_endpoint(reactor, timeout_seconds))
    directlyProvides(endpoints, IAgentEndpointFactory)
    response = await Agent.usingEndpointFactory(reactor, endpoints).request(b"GET", url.encode())
    page = _Page(most_bytes)
    response.deliverBody(page)
    body = await page.ended
    if response.code != 200:
        raise OSError(f"HTTP status {response.code}")
    return body


@attrs.define(eq=False, slots=False)
class _Endpoints:
    """Makes the client's own endpoints. Agent's would install the default reactor, even in an asyncio program."""

    _connect: Connect

    def endpointForURI(self, uri: URI) -> interfaces.IStreamClientEndpoint:
        return self._connect(uri.host.decode(), uri.port)


class _Page(protocol.Protocol):
    """Collects the first bytes of a body. After these, or when `ended` is cancelled, it cuts the connection."""

    def __init__(self, most_bytes: int) -> None:
        self._body = bytearray()
        self._most = most_bytes
        self.ended: defer.Deferred[bytes] = defer.Deferred(lambda _: self._cut())

    def dataReceived(self, data: bytes) -> None:
        self._body += data[: self._most - len(self._body)]
        if len(self._body) == self._most:
            self._end()
            self._cut()

    def connectionLost(self, reason: failure.Failure = protocol.connectionDone) -> None:
        self._end()

    def _end(self) -> None:
        if not self.ended.called:
            self.ended.callback(bytes(self._body))

    def _cut(self) -> None:
        interfaces.IPushProducer(self.transport).stopProducing()
