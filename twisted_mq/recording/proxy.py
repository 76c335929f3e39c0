"""Listens on loopback and forwards to one server, recording each frame; only `rewrite` changes anything.

Bytes are forwarded as they come. A stream without frames, such as an encrypted one, is forwarded all the same and not
recorded. If a side takes its bytes slowly, the other waits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from typing import Protocol as Typed

from twisted.internet import interfaces
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import HostnameEndpoint, connectProtocol
from twisted.internet.protocol import Protocol, ServerFactory, connectionDone
from twisted.python.failure import Failure

from twisted_mq.logs import Logger
from twisted_mq.protocol.wire.cutting import FrameCutter

log = Logger()

MOST_CONNECTIONS = 1000
"""The limit of client connections at one proxy. Each may hold a frame of 16 MiB in either direction."""


class Rewrite(Typed):
    """Changes frames of one connection on their way; returns the same frame if nothing has to change."""

    def __call__(self, from_client: bool, frame: bytes) -> bytes: ...


class Record(Typed):
    """Takes each frame as it leaves the proxy."""

    def __call__(self, from_client: bool, connection: bytes, frame: bytes) -> None: ...


class Side(Protocol):
    """A side of a pair of connections; it reads what the other writes."""

    transport: Any
    """Any, because Twisted declares the methods used here in three interfaces."""
    other: Side | None = None

    def __init__(self, from_client: bool, record: Record, rewrite: Rewrite) -> None:
        self._from_client = from_client
        self._record = record
        self._rewrite = rewrite
        self._cutter: FrameCutter | None = FrameCutter()
        self._early: list[bytes] = []
        self._lost = False
        self.connection = b""
        self.ended: Deferred[None] = Deferred()

    def connectionMade(self) -> None:
        """Read nothing before the other side is connected."""
        self.transport.pauseProducing()

    def joined(self, other: Side, connection: bytes) -> None:
        """Pass on what came so far to the other side; from now on each waits for the other's slow peer."""
        self.other, self.connection = other, connection
        if self._lost:
            other.transport.loseConnection()
            return
        other.transport.registerProducer(self.transport, streaming=True)
        early, self._early = self._early, []
        for data in early:
            self.dataReceived(data)
        self.transport.resumeProducing()

    def dataReceived(self, data: bytes) -> None:
        if self.other is None:
            self._early.append(data)
            return
        self.other.transport.write(b"".join(map(self._seen, self._cut(data))))

    def _cut(self, data: bytes) -> list[tuple[bool, bytes]]:
        """Return the whole frames, each with True; after something that is not a frame, all the rest as it comes, with False."""
        if self._cutter is None:
            return [(False, data)]
        frames = [(True, frame) for frame in self._cutter.receive_data(data)]
        if self._cutter.failed:
            log.warn(
                "{connection}: not remoting frames, forwarded without recording",
                connection=self.connection.decode("ascii", "replace"),
            )
            frames.append((False, self._cutter.held))
            self._cutter = None
        return frames

    def _seen(self, piece: tuple[bool, bytes]) -> bytes:
        is_frame, data = piece
        if is_frame:
            data = self._rewrite(self._from_client, data)
            self._record(self._from_client, self.connection, data)
        return data

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self._lost = True
        self.ended.callback(None)
        if self.other is not None:
            self.other.transport.unregisterProducer()
            self.other.transport.loseConnection()


class ProxyFactory(ServerFactory):
    """Connects each client with the server; `rewrite` makes one rewrite for each connection."""

    noisy = False

    def __init__(
        self,
        reactor: interfaces.IReactorTime,
        server: tuple[str, int],
        record: Record,
        rewrite: Callable[[], Rewrite],
    ) -> None:
        self._reactor = reactor
        self._server = server
        self._record = record
        self._rewrite = rewrite
        self._open = 0

    def buildProtocol(self, addr: interfaces.IAddress | None) -> Side | None:
        if self._open >= MOST_CONNECTIONS:
            log.warn("connection refused, {n} are open: peer={peer}", n=self._open, peer=addr)
            return None
        self._open += 1
        rewrite = self._rewrite()
        client = Side(True, self._record, rewrite)
        client.ended.addCallback(self._ended)
        name = f"{getattr(addr, 'host', '')}:{getattr(addr, 'port', 0)}>{self._server[0]}:{self._server[1]}".encode()
        server = Side(False, self._record, rewrite)

        def join(_: object) -> None:
            server.joined(client, name)
            client.joined(server, name)

        def refused(failure: Failure) -> None:
            log.warn("{name}: {error}", name=name.decode(), error=failure.getErrorMessage())
            client.transport.loseConnection()

        connecting = connectProtocol(HostnameEndpoint(self._reactor, *self._server), server)
        connecting.addCallbacks(join, refused)
        return client

    def _ended(self, _: None) -> None:
        self._open -= 1
