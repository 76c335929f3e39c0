"""Listens for gRPC: makes connections, checks them at intervals, stops them."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet import defer, interfaces, protocol

from twisted_mq.periodic import PeriodicJob
from twisted_mq.proxy.grpc.connection import GrpcConnection
from twisted_mq.proxy.grpc.shared import Shared
from twisted_mq.remoting.connection_shares import ConnectionShares

LOOK_SECONDS = 5.0
"""Between looks for idle connections and stalled streams."""


class GrpcServerFactory(protocol.ServerFactory):
    """Serves a table of methods. Past `max_connections` one of the address with the most makes room."""

    noisy = False

    def __init__(self, shared: Shared, max_connections: int = 10_000) -> None:
        self.shared = shared
        self.connections: ConnectionShares[GrpcConnection] = ConnectionShares(shared.clock, max_connections)
        self._scan: PeriodicJob | None = None
        self._gone: defer.Deferred[None] | None = None
        self.expect: Callable[[GrpcConnection], None] | None = None
        """Prepares a new connection for what its first bytes may be (TLS)."""

    def buildProtocol(self, addr: interfaces.IAddress | None) -> GrpcConnection | None:
        if self.shared.stopping or not self.connections.has_room(getattr(addr, "host", None)):
            return None
        connection = GrpcConnection(self.shared, self)
        connection.factory = self
        if self.expect is not None:
            self.expect(connection)
        return connection

    def doStart(self) -> None:
        super().doStart()
        if self._scan is None:
            self._scan = PeriodicJob("check of gRPC connections", self.shared.clock, LOOK_SECONDS, self.look)

    def doStop(self) -> None:
        super().doStop()
        if self.numPorts == 0 and self._scan is not None:
            self._scan.stop()
            self._scan = None

    def look(self) -> None:
        """End slow transfers on each connection."""
        now = self.shared.clock.seconds()
        for connection in self.connections:
            connection.lifetime.look(now)

    def stop(self, grace_seconds: float = 1.0) -> defer.Deferred[None]:
        """Send GOAWAY, let short calls end, then end all. Fires when every connection is closed."""
        self.shared.stopping = True
        gone: defer.Deferred[None] = defer.Deferred()
        for connection in self.connections:
            connection.lifetime.stop()
        if not self.connections:
            gone.callback(None)
            return gone
        self._gone = gone
        clock = self.shared.clock
        timers = [
            clock.callLater(grace_seconds, self._end_calls),
            clock.callLater(grace_seconds + 1, self._abort_all),
        ]

        def cancel_timers(_: None) -> None:
            for timer in timers:
                if timer.active():
                    timer.cancel()

        return gone.addCallback(cancel_timers)

    def _end_calls(self) -> None:
        for connection in self.connections:
            connection.lifetime.end_calls("the server stops")

    def _abort_all(self) -> None:
        for connection in self.connections:
            connection.abort()

    # Listener: the interface for connections

    def made(self, connection: GrpcConnection) -> None:
        """Keep a new connection."""
        self.connections.add(connection)

    def moved(self, connection: GrpcConnection, before: str) -> None:
        """Count a connection for another share than before."""
        self.connections.moved(connection, before)

    def lost(self, connection: GrpcConnection) -> None:
        """Forget a connection; the last one ends a stop."""
        self.connections.discard(connection)
        if not self.connections and self._gone is not None:
            gone, self._gone = self._gone, None
            gone.callback(None)
