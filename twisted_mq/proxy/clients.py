"""The gRPC clients of one proxy: their settings, their Telemetry streams, and the channels that brokers see.

A client is known from its settings on until it disconnects, or until the broker finds that its heartbeats stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, NoReturn

import attrs
from twisted.internet import defer, interfaces

from twisted_mq.logs import Logger
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError, RocketMQError
from twisted_mq.protocol.wire.command import LANGUAGE_CODES, RemotingCommand
from twisted_mq.proxy.grpc.calls import Call
from twisted_mq.proxy.messages import ClientType
from twisted_mq.proxy.statuses import ProxyError
from twisted_mq.remoting.budget import Budget
from twisted_mq.remoting.errors import RemotingSendError
from twisted_mq.remoting.shares import address_of
from twisted_mq.remoting.transport import packed

LANGUAGES = {"GOLANG": "GO", "DOT_NET": "DOTNET", "NODE_JS": "HTTP"}
"""The language as clients name it -> LanguageCode. Languages that LanguageCode does not have are OTHER."""
SETTINGS_SECONDS = 3.0
"""The time a call waits for its client's settings, which may be on their way on another stream."""
MOST_CLIENTS = 50_000
CLIENT_BYTES = 4096
"""The memory of a client in bytes, without its settings."""

PRODUCER = ClientType.Value("PRODUCER")
SIMPLE_CONSUMER = ClientType.Value("SIMPLE_CONSUMER")
CONSUMERS = frozenset({ClientType.Value("PUSH_CONSUMER"), SIMPLE_CONSUMER})


@attrs.define(eq=False)
class GrpcClient:
    """A gRPC client. To a broker's tables it is a channel: what they send to it goes out on its Telemetry stream."""

    client_id: str
    language: str
    remote_address: tuple[str, int]
    packed_address: bytes
    clock: interfaces.IReactorTime
    settings: Any = None
    """The settings as the client sent them; None before that."""
    telemetry: Call | None = None
    connected_now: bool = True
    access_key: str | None = None
    commands: Callable[[GrpcClient, RemotingCommand], object] | None = None
    """Called with the commands that brokers send one-way."""
    lost: Callable[[GrpcClient], object] | None = None
    groups: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())
    """The producer groups and the consumer groups that the client is registered with."""
    budget: Budget[GrpcClient] = attrs.field(factory=Budget)
    """The memory budget of all clients."""
    _remembered: dict[Hashable, int] = attrs.field(factory=dict)

    @property
    def address(self) -> str:
        """Return the client's address as host:port."""
        return f"{self.remote_address[0]}:{self.remote_address[1]}"

    @property
    def share_address(self) -> str:
        """Return the address whose share of the budgets the client uses, see `remoting.shares`."""
        return address_of(self.remote_address[0])

    @property
    def last_active(self) -> float:
        """Return the present time: idle gRPC connections are closed elsewhere."""
        return self.clock.seconds()

    @property
    def is_producer(self) -> bool:
        return self.settings is not None and self.settings.WhichOneof("pub_sub") == "publishing"

    @property
    def group(self) -> str:
        """Return the client's consumer group; empty for a producer."""
        return "" if self.settings is None else str(self.settings.subscription.group.name)

    def tell(self, command: Any) -> bool:
        """Send a TelemetryCommand. Return False if the client has no open Telemetry stream."""
        stream = self.telemetry
        if stream is None or stream.is_over:
            return False
        stream.send(command)
        return True

    # a channel, as brokers' tables use it

    def remember(self, name: Hashable, size: int) -> None:
        """Set the size in bytes of what is remembered under a name until the client goes; 0 forgets it.

        Raises BrokerError if that is too much.
        """
        if not self.budget.remember(self, size - self._remembered.get(name, 0)):
            remark = f"{size} more bytes of client {self.client_id} are too many to remember"
            raise BrokerError(ResponseCode.SYSTEM_BUSY, remark)
        self._remembered[name] = size

    @property
    def takes_requests(self) -> bool:
        """Return whether the client is connected and has an open Telemetry stream."""
        return self.connected_now and self.telemetry is not None and not self.telemetry.is_over

    def send_request(self, request: object, timeout_seconds: float) -> defer.Deferred[RemotingCommand]:
        """Fail with RemotingSendError: gRPC clients take only one-way commands, and answer by calls of their own."""
        return defer.fail(RemotingSendError(f"client {self.client_id} is a gRPC client, which takes no such request"))

    def send_one_way(self, command: RemotingCommand) -> None:
        """Pass on a one-way command of a broker."""
        if self.commands is not None:
            self.commands(self, command)

    def close(self) -> None:
        """Drop the client: the broker has received no heartbeat of it for too long."""
        if self.lost is not None:
            self.lost(self)

    def abort(self) -> None:
        """Drop the client."""
        self.close()


class Clients:
    """All clients by id. `lost` is called with each client that is gone."""

    log = Logger()

    def __init__(self, clock: interfaces.IReactorTime, lost: Callable[[GrpcClient], object]) -> None:
        self._clock = clock
        self._lost = lost
        self._known: dict[str, GrpcClient] = {}
        self._waiting: dict[str, list[defer.Deferred[GrpcClient]]] = {}
        self.commands: Callable[[GrpcClient, RemotingCommand], object] | None = None
        self.budget: Budget[GrpcClient] = Budget()

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Any:
        return iter(list(self._known.values()))

    def stranger(self, call: Call) -> GrpcClient:
        """Return the client of a call. A client without settings is created for this call only. Raises ProxyError."""
        client_id = client_id_of(call)
        known = self._known.get(client_id)
        return known if known is not None else self._make(client_id, call)

    def settle(self, call: Call, settings: Any) -> GrpcClient:
        """Store a client's settings, and return the client. Raises ProxyError."""
        client = self.stranger(call)
        client.remember("settings", settings.ByteSize() + CLIENT_BYTES)
        if client.client_id not in self._known and len(self._known) >= MOST_CLIENTS:
            raise ProxyError("TOO_MANY_REQUESTS", f"{len(self._known)} clients are connected")
        client.settings = settings
        client.remote_address = call.peer
        client.connected_now = True
        self._known[client.client_id] = client
        for waiting in self._waiting.pop(client.client_id, []):
            waiting.callback(client)
        return client

    def settled(self, call: Call) -> defer.Deferred[GrpcClient]:
        """Return the client of a call once its settings are known. Fails with ProxyError."""
        client_id = client_id_of(call)
        known = self._known.get(client_id)
        if known is not None:
            return defer.succeed(known)
        waiting: defer.Deferred[GrpcClient] = defer.Deferred(lambda given_up: self._waited(client_id, given_up))
        self._waiting.setdefault(client_id, []).append(waiting)

        def never(result: object, _: float) -> NoReturn:
            raise ProxyError("UNRECOGNIZED_CLIENT_TYPE", f"no settings of client {client_id} have come by Telemetry")

        waiting.addTimeout(SETTINGS_SECONDS, self._clock, onTimeoutCancel=never)
        return waiting

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

    def producers_of(self, topic: str) -> list[GrpcClient]:
        """Return the clients that publish to a topic and have a Telemetry stream."""
        return [one for one in self._known.values() if one.telemetry is not None and topic in one.groups[0]]

    def _make(self, client_id: str, call: Call) -> GrpcClient:
        name = call.metadata.get("x-mq-language", "")
        name = LANGUAGES.get(name, name)
        return GrpcClient(
            client_id,
            name if name in LANGUAGE_CODES else "OTHER",
            call.peer,
            packed(call.peer),
            self._clock,
            commands=self._tell,
            lost=self.drop,
            budget=self.budget,
        )

    def _tell(self, client: GrpcClient, command: RemotingCommand) -> None:
        if self.commands is not None:
            try:
                self.commands(client, command)
            except RocketMQError as error:
                self.log.warn("not told to a client: client={c} {e}", c=client.client_id, e=error)


def client_id_of(call: Call) -> str:
    """Return the client id of a call. Raises ProxyError if the call has none."""
    client_id = call.metadata.get("x-mq-client-id", "")
    if not client_id.strip():
        raise ProxyError("CLIENT_ID_REQUIRED", "metadata x-mq-client-id is needed")
    return client_id
