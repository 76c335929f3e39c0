"""Serves one connection of a client that speaks ZooKeeper's protocol with the tree in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import attrs
from twisted.internet import interfaces
from twisted.internet.protocol import connectionDone
from twisted.protocols.basic import Int32StringReceiver
from twisted.python import failure
from zope.interface import implementer

from twisted_mq.coordination.interfaces import CoordinationError
from twisted_mq.coordination.memory import MemoryEnsemble
from twisted_mq.coordination.server_requests import (
    OperationRefused,
    done_parts,
    error_of,
    node_path,
    operation_of,
    refused_parts,
    result_of,
    stat_of,
)
from twisted_mq.coordination.tree import Change, ChangeKind, NotApplied
from twisted_mq.logs import Logger
from twisted_mq.protocol.zookeeper.codes import ErrorCode, RequestCode
from twisted_mq.protocol.zookeeper.records import (
    BadRecord,
    Request,
    decode_connect,
    decode_request,
    encode_answer,
    encode_connected,
    encode_error,
    encode_event,
)
from twisted_mq.remoting.transport import Transport


@attrs.frozen
class ServerLimits:
    """Limits of what clients may make the server keep. Sessions without a connection last for their time."""

    connections: int = 1000
    sessions: int = 2000
    frame_bytes: int = 2**20 - 1
    watches: int = 100_000
    """The most watches of one connection."""
    first_frame_seconds: float = 10.0
    session_seconds: tuple[float, float] = (1.0, 40.0)
    """The shortest and the longest session time that is granted."""


class IServer(Protocol):
    """The part of a server that a connection uses."""

    ensemble: MemoryEnsemble
    limits: ServerLimits

    def opened(self, connection: CoordinatorConnection) -> bool:
        """Return False if there are too many connections."""

    def closed(self, connection: CoordinatorConnection) -> None:
        """Forget a connection that is gone."""

    def begin(
        self, connection: CoordinatorConnection, session: int, password: bytes, seconds: float
    ) -> tuple[int, bytes]:
        """Return the session and its password: a new one for 0; 0 if the requested session is over."""

    def ignored(self, scheme: str) -> None:
        """Note that a client sent credentials."""


@implementer(interfaces.IPushProducer)
class CoordinatorConnection(Int32StringReceiver):
    """A connection: frames in, answers and events out, in the order of the requests. It reads nothing while its client
    does not read.
    """

    log = Logger()
    transport: Transport  # type: ignore[assignment]  # None only before connectionMade

    def __init__(self, server: IServer, clock: interfaces.IReactorTime) -> None:
        self.MAX_LENGTH = server.limits.frame_bytes
        self.session = 0
        self._server = server
        self._ensemble = server.ensemble
        self._clock = clock
        self._data_watches: set[str] = set()
        self._child_watches: set[str] = set()
        self._timer: interfaces.IDelayedCall | None = None
        self._is_over = False

    def connectionMade(self) -> None:
        """Wait for the first frame, but not forever."""
        if not self._server.opened(self):
            self.close()
            return
        self.transport.registerProducer(self, True)
        self._timer = self._clock.callLater(self._server.limits.first_frame_seconds, self.close)

    def connectionLost(self, reason: failure.Failure = connectionDone) -> None:
        """Leave the session, which goes on without the connection."""
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        self._server.closed(self)

    def lengthLimitExceeded(self, length: int) -> None:
        """Refuse a frame that is too long."""
        self._damaged(f"a frame of {length} bytes")

    def stringReceived(self, string: bytes) -> None:
        """Serve a frame."""
        if self._is_over:
            return
        try:
            if self.session == 0:
                self._connect(decode_connect(string))
            elif self._ensemble.sessions.touch(self.session):
                self._answer(decode_request(string))
        except BadRecord as error:
            self._damaged(str(error))

    def close(self) -> None:
        """Break the connection; nothing that comes after this is read."""
        self._is_over = True
        self.transport.abortConnection()

    def tell(self, changes: Sequence[Change]) -> None:
        """Send the events of watched nodes; a watch fires once."""
        for kind, path in changes:
            is_watched = kind is not ChangeKind.CHILDREN and path in self._data_watches
            is_watched |= kind in (ChangeKind.CHILDREN, ChangeKind.DELETED) and path in self._child_watches
            if is_watched:
                if kind is not ChangeKind.CHILDREN:
                    self._data_watches.discard(path)
                if kind in (ChangeKind.CHILDREN, ChangeKind.DELETED):
                    self._child_watches.discard(path)
                self.sendString(encode_event(kind.value, path))

    def _damaged(self, what: str) -> None:
        self.log.warn("coordinator closes the connection of {peer}: {what}", peer=self.transport.getPeer(), what=what)
        self.close()

    def _connect(self, asked: Any) -> None:
        least, most = self._server.limits.session_seconds
        seconds = min(max(asked.time_out_ms / 1000, least), most)
        session, password = self._server.begin(self, asked.session_id, asked.password, seconds)
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        self.session = session
        self.sendString(encode_connected(round(seconds * 1000) if session else 0, session, password))
        if not session:
            self._finish()

    def _finish(self) -> None:
        """Close after everything has been sent."""
        self._is_over = True
        self.transport.unregisterProducer()
        self.transport.loseConnection()

    def _answer(self, request: Request) -> None:
        number = self._ensemble.tree
        try:
            answered = self._answers.get(request.code, _unknown)(self, request)
        except OperationRefused as refusal:
            self.sendString(encode_error(request, number.last_transaction, refusal.error))
        except CoordinationError as refusal:
            self.sendString(encode_error(request, number.last_transaction, error_of(refusal)))
        else:
            self.sendString(encode_answer(request, number.last_transaction, answered))
            if request.code == RequestCode.CLOSE_SESSION:
                self._finish()

    def _change(self, request: Request) -> dict[str, Any]:
        (path,) = self._ensemble.apply([operation_of(request.code, request.record)], self.session)
        return result_of(self._ensemble.tree, path)

    def _multi(self, request: Request) -> dict[str, Any]:
        parts = request.record.parts[:-1]
        operations = []
        try:
            for part in parts:
                operations.append(operation_of(part.code, part.record))
            paths = self._ensemble.apply(operations, self.session)
        except OperationRefused as refusal:
            return {"parts": refused_parts(len(parts), len(operations), refusal.error)}
        except NotApplied as refusal:
            return {"parts": refused_parts(len(parts), refusal.index, error_of(refusal))}
        return {"parts": done_parts(self._ensemble.tree, [part.code for part in parts], paths)}

    def _exists(self, request: Request) -> dict[str, Any]:
        path = node_path(request.record.path)
        self._watch(self._data_watches, request)
        return self._found(path)

    def _get_data(self, request: Request) -> dict[str, Any]:
        found = self._found(node_path(request.record.path))
        self._watch(self._data_watches, request)
        return found

    def _get_children(self, request: Request) -> dict[str, Any]:
        path = node_path(request.record.path)
        found = self._found(path)
        self._watch(self._child_watches, request)
        return {**found, "names": self._ensemble.tree.children(path)}

    def _found(self, path: str) -> dict[str, Any]:
        node = self._ensemble.tree[path]
        if node is None:
            raise OperationRefused(ErrorCode.NO_NODE)
        return {"data": node.data, "stat": stat_of(self._ensemble.tree, path, node)}

    def _watch(self, watches: set[str], request: Request) -> None:
        if request.record.watch:
            watches.add(request.record.path)
        if len(watches) > self._server.limits.watches:
            self._damaged(f"{len(watches)} watches")

    def _sync(self, request: Request) -> dict[str, Any]:
        return {"path": node_path(request.record.path)}

    def _ping(self, request: Request) -> dict[str, Any]:
        return {}

    def _auth(self, request: Request) -> dict[str, Any]:
        self._server.ignored(request.record.scheme)
        return {}

    def _close_session(self, request: Request) -> dict[str, Any]:
        session, self.session = self.session, 0
        self._ensemble.sessions.end(session)
        return {}

    _answers: dict[int, Callable[[CoordinatorConnection, Request], dict[str, Any]]] = {
        RequestCode.CREATE: _change,
        RequestCode.CREATE_2: _change,
        RequestCode.DELETE: _change,
        RequestCode.SET_DATA: _change,
        RequestCode.MULTI: _multi,
        RequestCode.EXISTS: _exists,
        RequestCode.GET_DATA: _get_data,
        RequestCode.GET_CHILDREN: _get_children,
        RequestCode.GET_CHILDREN_2: _get_children,
        RequestCode.SYNC: _sync,
        RequestCode.PING: _ping,
        RequestCode.AUTH: _auth,
        RequestCode.CLOSE_SESSION: _close_session,
    }


def _unknown(_connection: CoordinatorConnection, _request: Request) -> dict[str, Any]:
    raise OperationRefused(ErrorCode.UNIMPLEMENTED)
