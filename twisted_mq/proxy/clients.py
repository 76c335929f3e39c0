"""The gRPC clients of one proxy, by id. A client is known from its settings on until it is gone, see `presence`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from twisted.internet import defer, interfaces

from twisted_mq.logs import Logger
from twisted_mq.protocol.errors import RocketMQError
from twisted_mq.protocol.wire.command import LANGUAGE_CODES, RemotingCommand
from twisted_mq.proxy.client import GrpcClient
from twisted_mq.proxy.grpc.calls import Call
from twisted_mq.proxy.statuses import ProxyError
from twisted_mq.remoting.budget import Budget
from twisted_mq.remoting.channel import Request
from twisted_mq.remoting.transport import packed

LANGUAGES = {"GOLANG": "GO", "DOT_NET": "DOTNET", "NODE_JS": "HTTP"}
"""The language as clients name it -> LanguageCode. Languages that LanguageCode does not have are OTHER."""
SETTINGS_SECONDS = 3.0
"""The time a call waits for its client's settings, which may be on their way on another stream."""
MOST_CLIENTS = 50_000
CLIENT_BYTES = 4096
"""The memory of a client in bytes, without its settings."""


class NoSettings(ProxyError):
    """Raised for a client that sent no settings within SETTINGS_SECONDS."""


class Clients:
    """All clients by id. `lost` is called with each client that is gone."""

    log = Logger()

    def __init__(self, clock: interfaces.IReactorTime, lost: Callable[[GrpcClient], object]) -> None:
        self._clock = clock
        self._lost = lost
        self._known: dict[str, GrpcClient] = {}
        self._waiting: dict[str, list[defer.Deferred[GrpcClient]]] = {}
        self.commands: Callable[[GrpcClient, RemotingCommand], object] | None = None
        self.requests: Callable[[GrpcClient, Request, float], defer.Deferred[RemotingCommand]] | None = None
        self.budget: Budget[GrpcClient] = Budget()

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Any:
        return iter(list(self._known.values()))

    def stranger(self, call: Call, user: str | None) -> GrpcClient:
        """Return the client of a call that `user` signed. A client without settings is created for this call only.

        Raises ProxyError if the client of this id is another user's: its requests are signed as that user.
        """
        client_id = client_id_of(call)
        known = self._known.get(client_id)
        if known is None:
            return self._make(client_id, call, user)
        if known.access_key != user:
            raise ProxyError("UNAUTHORIZED", f"client {client_id} is connected as another user")
        return known

    def settle(self, call: Call, settings: Any, user: str | None) -> GrpcClient:
        """Store the settings of a client, signed by `user`, and return the client. Raises ProxyError."""
        client = self.stranger(call, user)
        client.remember("settings", settings.ByteSize() + CLIENT_BYTES)
        if client.client_id not in self._known and len(self._known) >= MOST_CLIENTS:
            raise ProxyError("TOO_MANY_REQUESTS", f"{len(self._known)} clients are connected, which is the limit")
        if client.settings is None:
            client.since = self._clock.seconds()
        client.settings = settings
        client.remote_address = call.peer
        client.connected_now = True
        self._known[client.client_id] = client
        for waiting in self._waiting.pop(client.client_id, []):
            waiting.callback(client)
        return client

    def settled(self, call: Call, user: str | None) -> defer.Deferred[GrpcClient]:
        """Return the client of a call that `user` signed, once its settings are known. Fails with ProxyError."""
        client_id = client_id_of(call)
        if client_id in self._known:
            return defer.execute(self.stranger, call, user)
        waiting: defer.Deferred[GrpcClient] = defer.Deferred(lambda given_up: self._waited(client_id, given_up))
        self._waiting.setdefault(client_id, []).append(waiting)

        def never(result: object, _: float) -> NoReturn:
            raise NoSettings("UNRECOGNIZED_CLIENT_TYPE", f"client {client_id} has not sent its settings with Telemetry")

        waiting.addTimeout(SETTINGS_SECONDS, self._clock, onTimeoutCancel=never)
        return waiting.addCallback(lambda _: self.stranger(call, user))

    def _waited(self, client_id: str, waiting: defer.Deferred[GrpcClient]) -> None:
        """Remove a call that no longer waits."""
        queue = self._waiting[client_id]
        queue.remove(waiting)
        if not queue:
            del self._waiting[client_id]

    def drop(self, client: GrpcClient) -> None:
        """Remove a client that is gone. A second call does nothing."""
        if self._known.get(client.client_id) is not client:
            return
        del self._known[client.client_id]
        client.connected_now = False
        self._lost(client)
        self.budget.forget(client)

    def on_stream(self, call: Call) -> GrpcClient | None:
        """Return the client whose present Telemetry stream this is; None for one without settings or a valid client id, and
        for one that another stream replaced.
        """
        client = self._known.get(call.metadata.get("x-mq-client-id"))
        return client if client is not None and client.telemetry is call else None

    def producers_of(self, topic: str) -> list[GrpcClient]:
        """Return the clients that publish to a topic and have a Telemetry stream."""
        return [one for one in self._known.values() if one.telemetry is not None and topic in one.groups[0]]

    def _make(self, client_id: str, call: Call, user: str | None) -> GrpcClient:
        name = call.metadata.get("x-mq-language")
        name = LANGUAGES.get(name, name)
        return GrpcClient(
            client_id,
            name if name in LANGUAGE_CODES else "OTHER",
            call.peer,
            packed(call.peer),
            self._clock,
            access_key=user,
            commands=self._tell,
            requests=self.requests,
            lost=self.drop,
            budget=self.budget,
        )

    def _tell(self, client: GrpcClient, command: RemotingCommand) -> None:
        if self.commands is not None:
            try:
                self.commands(client, command)
            except RocketMQError as error:
                self.log.warn("client not notified: client={c} {e}", c=client.client_id, e=error)


def client_id_of(call: Call) -> str:
    """Return the client id of a call. Raises ProxyError if the call has none."""
    client_id = call.metadata.get("x-mq-client-id")
    if not client_id.strip():
        raise ProxyError("CLIENT_ID_REQUIRED", "metadata x-mq-client-id is required")
    if not client_id.isprintable():
        raise ProxyError("BAD_REQUEST", f"metadata x-mq-client-id {client_id!r} has characters that are not allowed")
    return client_id
