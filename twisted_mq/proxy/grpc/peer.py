"""The client's end of a connection: its address, the transport to it, and how that is closed."""

from __future__ import annotations

import attrs
from twisted.internet import interfaces

from twisted_mq.logs import Logger
from twisted_mq.remoting.shares import address_of
from twisted_mq.remoting.socket_channel import GRACE_SECONDS
from twisted_mq.remoting.transport import Transport


@attrs.define(eq=False)
class GrpcPeer:
    """The peer of one connection. Budgets count by it; `last_active` is when its last bytes came, in seconds of the clock."""

    log: Logger
    _clock: interfaces.IReactorTime
    last_active: float = attrs.field(default=attrs.Factory(lambda self: self._clock.seconds(), takes_self=True))
    transport: Transport = attrs.field(init=False)
    """The transport that is written to; TLS replaces it after the connection was made."""
    pinged_at: float | None = None
    """When a ping was sent after a silence; None once something has come."""
    remote_address: tuple[str, int] = ("", 0)
    connected_now: bool = False
    closing: bool = False
    """True once nothing more is read from it."""
    _cut_off: interfaces.IDelayedCall | None = None

    @property
    def address(self) -> str:
        """Return the peer's address as host:port."""
        return f"{self.remote_address[0]}:{self.remote_address[1]}"

    @property
    def share_address(self) -> str:
        """Return the address whose share of the budgets the connection uses, see `remoting.shares`."""
        return address_of(self.remote_address[0])

    @property
    def losing(self) -> bool:
        """Return True if the connection is being closed."""
        return self._cut_off is not None

    def lose(self) -> None:
        """Close once the transport has sent what waits in it, or after GRACE_SECONDS."""
        self.transport.unregisterProducer()
        self._cut_off = self._clock.callLater(GRACE_SECONDS, self._past_grace)
        self.transport.loseConnection()

    def _past_grace(self) -> None:
        self._cut_off = None
        self.abort()

    def lost(self) -> None:
        """Note that the connection is gone."""
        self.connected_now = False
        if self._cut_off is not None:
            self._cut_off.cancel()
            self._cut_off = None

    def cut(self, reason: str) -> None:
        """Close at once, with one log line that says why."""
        self.log.warn("connection cut: peer={peer} {reason}", peer=self.address, reason=reason)
        self.abort()

    def abort(self) -> None:
        """Close at once. Data that the client has not received is lost."""
        if self.connected_now:
            self.transport.abortConnection()
