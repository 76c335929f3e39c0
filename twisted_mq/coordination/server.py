"""Serves the tree in memory to clients of ZooKeeper in other processes, for `mq up --ordered`.

It has no access rights: everyone who reaches the port can read and change everything. Nothing is kept when the process ends.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Callable, Sequence

from twisted.application import service
from twisted.internet import defer, interfaces, protocol

from twisted_mq.coordination.memory import MemoryEnsemble
from twisted_mq.coordination.server_connection import CoordinatorConnection, ServerLimits
from twisted_mq.coordination.tree import Change
from twisted_mq.logs import Logger
from twisted_mq.protocol.zookeeper.records import PASSWORD_BYTES
from twisted_mq.remoting.listen import bind, listen

NO_PASSWORD = bytes(PASSWORD_BYTES)


class CoordinationServer(protocol.ServerFactory):
    """Makes the connections, and knows which sessions are its clients'. `random_bytes` makes their passwords."""

    log = Logger()
    noisy = False

    def __init__(
        self,
        ensemble: MemoryEnsemble,
        limits: ServerLimits | None = None,
        random_bytes: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self.ensemble = ensemble
        self.limits = ServerLimits() if limits is None else limits
        self._random_bytes = random_bytes
        self._connections: dict[CoordinatorConnection, None] = {}
        self._passwords: dict[int, bytes] = {}
        self._has_ignored = False
        ensemble.tree.told.append(self._changed)
        ensemble.sessions.ended.append(self._ended)

    def buildProtocol(self, addr: interfaces.IAddress | None) -> CoordinatorConnection:
        """Return the connection of a new client."""
        return CoordinatorConnection(self, self.ensemble.clock)

    def opened(self, connection: CoordinatorConnection) -> bool:
        """See IServer."""
        is_full = len(self._connections) >= self.limits.connections or len(self._passwords) >= self.limits.sessions
        if is_full:
            self.log.warn("coordinator refuses a connection: {count} are open", count=len(self._connections))
        else:
            self._connections[connection] = None
        return not is_full

    def closed(self, connection: CoordinatorConnection) -> None:
        """See IServer."""
        self._connections.pop(connection, None)

    def begin(
        self, connection: CoordinatorConnection, session: int, password: bytes, seconds: float
    ) -> tuple[int, bytes]:
        """See IServer. A session that goes on has one connection: its earlier one is closed."""
        if session == 0:
            session = self.ensemble.sessions.open(seconds)
            self._passwords[session] = self._random_bytes(PASSWORD_BYTES)
        elif not hmac.compare_digest(self._passwords.get(session, b""), password):
            return 0, NO_PASSWORD
        else:
            self.ensemble.sessions.touch(session)
            self._close(session)
        return session, self._passwords[session]

    def ignored(self, scheme: str) -> None:
        """See IServer; logged once."""
        if not self._has_ignored:
            self._has_ignored = True
            self.log.warn("coordinator in memory has no access rights: {scheme} credentials are ignored", scheme=scheme)

    def stop(self) -> None:
        """Break the connections, and report nothing any more."""
        self.ensemble.tree.told.remove(self._changed)
        self.ensemble.sessions.ended.remove(self._ended)
        for connection in tuple(self._connections):
            connection.close()

    def _changed(self, changes: Sequence[Change]) -> None:
        for connection in tuple(self._connections):
            connection.tell(changes)

    def _ended(self, session: int) -> None:
        self._passwords.pop(session, None)
        self._close(session)

    def _close(self, session: int) -> None:
        for connection in tuple(self._connections):
            if connection.session == session:
                connection.close()


class CoordinationService(service.Service):
    """Listens for clients. `port` is the port once started."""

    def __init__(
        self, ensemble: MemoryEnsemble, reactor: interfaces.IReactorSocket, port: int = 0, host: str = "127.0.0.1"
    ) -> None:
        self.setName("coordinator")
        self.port = port
        self._host = host
        self._reactor = reactor
        self._ensemble = ensemble
        self._server: CoordinationServer | None = None
        self._listening: interfaces.IListeningPort | None = None

    def startService(self) -> None:
        """Start to listen. Raises PortError."""
        bound = bind(self._host, self.port, "port of the coordinator")
        self.port = bound.getsockname()[1]
        self._server = CoordinationServer(self._ensemble)
        self._listening = listen(self._reactor, bound, self._server)
        super().startService()

    def stopService(self) -> defer.Deferred[None]:
        """Stop. Fires when no client is connected and nothing listens; a second call is harmless."""
        super().stopService()
        server, self._server = self._server, None
        listening, self._listening = self._listening, None
        if server is not None:
            server.stop()
        closing = defer.maybeDeferred(listening.stopListening) if listening is not None else defer.succeed(None)
        return closing.addCallback(lambda _: None)
