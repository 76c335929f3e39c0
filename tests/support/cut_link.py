"""A proxy on loopback, in the reactor, whose link can be cut: with a word, or so that only silence tells."""

from __future__ import annotations

from typing import Any

from twisted.internet import defer, endpoints, protocol


class CutLink(protocol.Factory):
    """Hands on what comes to `port` to a loopback port."""

    noisy = False

    def __init__(self, reactor: Any, to: int) -> None:
        self.is_cut = False
        self.open: dict[_Side, None] = {}
        self._target = endpoints.TCP4ClientEndpoint(reactor, "127.0.0.1", to)
        self._listening = reactor.listenTCP(0, self, interface="127.0.0.1")
        self.port = self._listening.getHost().port

    def buildProtocol(self, address: object) -> protocol.Protocol:
        return _Side(self)

    def connect(self, side: _Side) -> None:
        """Open the other side of a new connection; there is no answer while the link is cut."""
        side.transport.pauseProducing()
        if not self.is_cut:
            factory = protocol.Factory.forProtocol(lambda: _Side(self, side))
            self._target.connect(factory).addErrback(lambda _: side.transport.abortConnection())

    def cut(self, *, silently: bool = False) -> None:
        """Nothing gets through until `heal`. Connections break, or `silently` stay open."""
        self.is_cut = True
        for side in tuple(self.open):
            if silently:
                side.transport.pauseProducing()
            else:
                side.transport.abortConnection()

    def heal(self) -> None:
        """Deliver data that was sent during the cut on open connections; others must be opened again."""
        self.is_cut = False
        for side in tuple(self.open):
            if side.other is None:
                side.transport.abortConnection()
            else:
                side.transport.resumeProducing()

    def stop(self) -> defer.Deferred[Any]:
        """Close everything."""
        for side in tuple(self.open):
            side.transport.abortConnection()
        return defer.maybeDeferred(self._listening.stopListening)


class _Side(protocol.Protocol):
    def __init__(self, link: CutLink, other: _Side | None = None) -> None:
        self._link = link
        self.other = other

    def connectionMade(self) -> None:
        self._link.open[self] = None
        if self.other is None:
            self._link.connect(self)
        else:
            self.other.other = self
            if not self._link.is_cut:
                self.other.transport.resumeProducing()

    def dataReceived(self, data: bytes) -> None:
        assert self.other is not None
        self.other.transport.write(data)

    def connectionLost(self, reason: object = None) -> None:
        self._link.open.pop(self, None)
        if self.other is not None:
            self.other.transport.loseConnection()
