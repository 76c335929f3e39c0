"""A gRPC client: its settings, its Telemetry stream, and the channel that brokers see."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import attrs
from twisted.internet import defer, interfaces

from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.proxy.grpc.calls import Call
from twisted_mq.proxy.messages import ClientType
from twisted_mq.remoting.budget import Budget
from twisted_mq.remoting.channel import Request
from twisted_mq.remoting.errors import RemotingSendError
from twisted_mq.remoting.shares import address_of, share_of_account

PRODUCER = ClientType.Value("PRODUCER")
SIMPLE_CONSUMER = ClientType.Value("SIMPLE_CONSUMER")
PUSH_CONSUMER = ClientType.Value("PUSH_CONSUMER")
CONSUMERS = frozenset({PUSH_CONSUMER, SIMPLE_CONSUMER})


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
    seen_at: float = 0.0
    """The time of the last heartbeat or settings in seconds of the clock."""
    since: float = 0.0
    """The time of the first settings in seconds of the clock."""
    connected_now: bool = True
    access_key: str | None = None
    """The user who signs the client's calls. It stays the same while the client is known."""
    account: str | None = None
    commands: Callable[[GrpcClient, RemotingCommand], object] | None = None
    """Called with the commands that brokers send one-way."""
    requests: Callable[[GrpcClient, Request, float], defer.Deferred[RemotingCommand]] | None = None
    """Called with the requests of brokers, and the seconds to wait for an answer."""
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
        """Return the address, or the account, whose share of the budgets the client uses, see `remoting.shares`."""
        return address_of(self.remote_address[0]) if self.account is None else share_of_account(self.account)

    def proven(self, account: str) -> None:
        """Record an allowed signed request of an account: the first one decides whose share the client uses from now on."""
        if self.account is None:
            self.account = account

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
            remark = f"{size} more bytes of client {self.client_id} exceed the limit"
            raise BrokerError(ResponseCode.SYSTEM_BUSY, remark)
        self._remembered[name] = size

    @property
    def takes_requests(self) -> bool:
        """Return whether the client is connected and has an open Telemetry stream."""
        return self.connected_now and self.telemetry is not None and not self.telemetry.is_over

    def send_request(self, request: Request, timeout_seconds: float) -> defer.Deferred[RemotingCommand]:
        """Return the client's answer to a request of a broker, see `relays`. Fails with RemotingError."""
        if self.requests is None:
            return defer.fail(RemotingSendError(f"client {self.client_id} does not support requests"))
        return self.requests(self, request, timeout_seconds)

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
