"""Bounds the HTTP pages of servers: how long a request may take to arrive, how many connections there may be.

A connection past the bound replaces another one: of the address with the most, the oldest that has not sent a whole
request, see `remoting.connection_shares`. So a peer that opens many and sends little does not block the others.
"""

from __future__ import annotations

from typing import Any, BinaryIO, cast

from twisted.internet import interfaces
from twisted.internet.protocol import connectionDone
from twisted.python.failure import Failure
from twisted.web.http import HTTPChannel, Request
from twisted.web.server import Request as PageRequest
from twisted.web.server import Site

from twisted_mq.logs import Logger
from twisted_mq.remoting.connection_shares import ConnectionShares
from twisted_mq.remoting.shares import address_of
from twisted_mq.remoting.transport import peer_of

MOST_CONNECTIONS = 64
MOST_FIELDS = 500
"""The limit of a form's fields; Twisted reads all of them in one turn, 300,000 in 0.1 s."""
MOST_PIPELINED = 32
"""The limit of requests in one read: they are answered in one turn, a page takes up to 1 ms."""
RESERVE = 4
"""Connections of an address that was served before which do not give way to others."""
REQUEST_SECONDS = 10.0
"""The time in which a whole request must arrive, from the start of its connection or from its first byte on."""


class BoundedChannel(HTTPChannel):
    """A connection with bounds. `waits` is True while no request of it is being answered."""

    log = Logger()
    site: BoundedSite
    transport: Any
    """Any, because Twisted declares the methods used here in three interfaces."""
    request_seconds = REQUEST_SECONDS

    def __init__(self) -> None:
        super().__init__()
        self._deadline: interfaces.IDelayedCall | None = None
        self._of_read = 0
        self.waits = True
        self.share_address = ""

    def connectionMade(self) -> None:
        self.share_address = address_of(peer_of(self.transport)[0])
        super().connectionMade()
        self._expect_request()
        self.site.connections.add(self)

    def _expect_request(self) -> None:
        self._deadline = self.callLater(self.request_seconds, self._too_slow)

    def dataReceived(self, data: bytes) -> None:
        if self.waits and self._deadline is None:
            self._expect_request()
        self._of_read = 0
        super().dataReceived(data)

    def allContentReceived(self) -> None:
        self._stop_deadline()
        self._of_read += 1
        if self._of_read > MOST_PIPELINED:
            self.cut(f"{self._of_read} requests in one read")
            return
        self.waits = False
        self.site.connections.set_busy(self, busy=True)
        super().allContentReceived()

    def requestDone(self, request: Request) -> None:
        self.waits = True
        self.site.connections.set_busy(self, busy=False)
        super().requestDone(request)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self._stop_deadline()
        self.site.connections.discard(self)
        super().connectionLost(reason)

    def cut(self, reason: str) -> None:
        """End the connection at once."""
        self.log.debug("HTTP connection cut: peer={peer} {reason}", peer=self.share_address, reason=reason)
        self.transport.abortConnection()

    def _too_slow(self) -> None:
        self._deadline = None
        self.cut("its request is not there in time")

    def _stop_deadline(self) -> None:
        deadline, self._deadline = self._deadline, None
        if deadline is not None:
            deadline.cancel()


class BoundedRequest(PageRequest):
    """A request with a short body, and a form of few fields; any other is cut off with its connection."""

    most_bytes = 0

    def gotLength(self, length: int | None) -> None:
        if length is None or length > self.most_bytes:
            self.channel.loseConnection()
            length = 0
        super().gotLength(length)

    def requestReceived(self, command: bytes, path: bytes, version: bytes) -> None:
        kind = self.requestHeaders.getRawHeaders(b"content-type", [b""])[0]
        fields = 0 if self.content is None else _count(self.content)
        if fields > MOST_FIELDS or kind.lstrip().lower().startswith(b"multipart/"):
            cast("BoundedChannel", self.channel).cut(f"a form of {fields} fields, or of several parts")
            return
        super().requestReceived(command, path, version)


def _count(content: BinaryIO) -> int:
    """Return the number of separators of a form's fields."""
    content.seek(0)
    return content.read().count(b"&")


class BoundedSite(Site):
    """Pages whose connections are bounded. `connections` has them, the oldest first."""

    protocol = BoundedChannel  # type: ignore[assignment]  # HTTP/1 alone: nothing to choose between
    requestFactory = BoundedRequest
    request_seconds = REQUEST_SECONDS

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        reactor = named["reactor"]
        self.connections: ConnectionShares[BoundedChannel] = ConnectionShares(reactor, MOST_CONNECTIONS, RESERVE)

    def buildProtocol(self, addr: interfaces.IAddress) -> interfaces.IProtocol | None:  # type: ignore[override]
        if not self.connections.has_room(getattr(addr, "host", None), its_oldest=True):
            return None
        channel = super().buildProtocol(addr)
        channel.request_seconds = self.request_seconds
        return channel  # type: ignore[no-any-return]
