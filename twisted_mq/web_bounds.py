"""Bounds for the HTTP pages of servers: how long a request may take to come, how many connections there may be.

A connection past the bound takes the place of another one: of the peer with the most, the one that has waited longest for a
whole request. So a peer that opens many and says little keeps nobody out.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from twisted.internet import interfaces
from twisted.internet.protocol import connectionDone
from twisted.python.failure import Failure
from twisted.web.http import HTTPChannel, Request
from twisted.web.server import Site

from twisted_mq.remoting.transport import peer_of

MOST_CONNECTIONS = 64
REQUEST_SECONDS = 10.0
"""In which a request must be there as a whole, from the start of its connection or from its first byte on."""


class BoundedChannel(HTTPChannel):
    """A connection with bounds. `waits` is True while no request of it is being answered."""

    site: BoundedSite
    transport: Any
    """Twisted declares what is used of it in three interfaces."""
    request_seconds = REQUEST_SECONDS

    def __init__(self) -> None:
        super().__init__()
        self._deadline: interfaces.IDelayedCall | None = None
        self.waits = True
        self.host = ""

    def connectionMade(self) -> None:
        self.host = peer_of(self.transport)[0]
        super().connectionMade()
        self._expect_request()
        self.site.connected(self)

    def _expect_request(self) -> None:
        self._deadline = self.callLater(self.request_seconds, self._too_slow)

    def dataReceived(self, data: bytes) -> None:
        if self.waits and self._deadline is None:
            self._expect_request()
        super().dataReceived(data)

    def allContentReceived(self) -> None:
        self._stop_deadline()
        self.waits = False
        super().allContentReceived()

    def requestDone(self, request: Request) -> None:
        self.waits = True
        super().requestDone(request)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self._stop_deadline()
        self.site.disconnected(self)
        super().connectionLost(reason)

    def cut(self) -> None:
        """End the connection at once."""
        self.transport.abortConnection()

    def _too_slow(self) -> None:
        self._deadline = None
        self.cut()

    def _stop_deadline(self) -> None:
        deadline, self._deadline = self._deadline, None
        if deadline is not None:
            deadline.cancel()


class BoundedSite(Site):
    """Pages whose connections are bounded. `connections` has them, the oldest first."""

    protocol = BoundedChannel  # type: ignore[assignment]  # HTTP/1 alone: nothing to choose between
    request_seconds = REQUEST_SECONDS

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.connections: dict[BoundedChannel, None] = {}

    def buildProtocol(self, addr: interfaces.IAddress) -> interfaces.IProtocol | None:  # type: ignore[override]
        channel = super().buildProtocol(addr)
        channel.request_seconds = self.request_seconds
        return channel  # type: ignore[no-any-return]

    def connected(self, channel: BoundedChannel) -> None:
        """Count a connection; past the bound another one is cut for it."""
        if len(self.connections) >= MOST_CONNECTIONS:
            least_missed = self._least_missed()
            self.disconnected(least_missed)
            least_missed.cut()
        self.connections[channel] = None

    def disconnected(self, channel: BoundedChannel) -> None:
        """Forget a connection."""
        self.connections.pop(channel, None)

    def _least_missed(self) -> BoundedChannel:
        waiting = [one for one in self.connections if one.waits] or list(self.connections)
        shares = Counter(one.host for one in waiting)
        return max(waiting, key=lambda one: shares[one.host])
