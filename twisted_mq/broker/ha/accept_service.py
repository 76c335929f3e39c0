"""Takes the slaves' connections (Apache: DefaultHAService.AcceptSocketService)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from twisted.internet import interfaces, protocol
from twisted.python import failure

from twisted_mq.broker.ha.connection import HAConnection
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.logs import Logger
from twisted_mq.remoting.shares import Shares, address_of
from twisted_mq.storage.interfaces import IMessageStore

MAX_SLAVES = 64
"""Connections past this are closed, unless one gives way to them; a group of brokers has a handful."""


class AcceptSocketService(protocol.ServerFactory):
    """The connections of all slaves. `changed` is called when a slave acknowledged something or went away.

    `ahead` says that the last slave that asked has more than this master; None once one is served.
    """

    log = Logger()
    noisy = False

    def __init__(
        self, options: BrokerOptions, store: IMessageStore, clock: interfaces.IReactorTime, changed: Callable[[], None]
    ) -> None:
        self.options = options
        self.store = store
        self.clock = clock
        self.connections: list[HAConnection] = []
        self.ahead: str | None = None
        self._recovered_end: int | None = None
        self._sent_end = 0
        self._changed = changed
        self._counts: Callable[[str], bool] = _nobody_yet if options.counts_registered_slaves else _everybody
        self.is_registered: Callable[[str], bool] = _nobody_yet
        """Whether the name servers know a slave at an address."""
        self._shares: Shares[HAConnection] = Shares(self._is_proven)
        self._allowed = frozenset(one.strip() for one in (options.ha_allowed_slaves or "").split(",") if one.strip())

    def buildProtocol(self, addr: interfaces.IAddress | None) -> HAConnection | None:
        """A connection for a slave; None, which closes it, for one that may not or is too many."""
        host = getattr(addr, "host", "")
        if self.options.closes_ha_port:
            self.log.warn(
                "slave refused under access control: set haSharedSecret here and at the slave, or name its host in"
                " haAllowedSlaves: host={h}",
                h=host,
            )
            return None
        if self._allowed and host not in self._allowed:
            self.log.warn("slave refused, not in haAllowedSlaves: host={h}", h=host)
            return None
        if len(self.connections) >= MAX_SLAVES and not self._make_room(address_of(host)):
            self.log.warn("slave refused, {n} are connected: host={h}", n=len(self.connections), h=host)
            return None
        return HAConnection(self)

    def _make_room(self, address: str) -> bool:
        """Close a connection that gives way to one more of an address; False where none does.

        That is the oldest of the largest share, else the oldest that has shown nothing of a slave yet, or whose copy does
        not count. What it shows is haSharedSecret where there is one, and its first report: every slave makes it at once.
        """
        one = self._shares.gives_way(address, None) or self._a_stranger()
        if one is not None:
            self.log.warn("slave closed, it makes room for another: slave={s}", s=one.client_address)
            self._shares.discard(address_of(one.host), None, one)
            one.close()
        return one is not None

    def _a_stranger(self) -> HAConnection | None:
        strangers = [one for one in self.connections if not (one.is_known and one.counts)]
        return min(strangers, key=lambda one: one.is_known, default=None)

    def _is_proven(self, address: str) -> bool:
        """Whether slaves of an address are registered, or have shown haSharedSecret."""
        if self.is_registered(address):
            return True
        return bool(self.options.ha_shared_secret) and any(
            one.is_known and address_of(one.host) == address for one in self.connections
        )

    def connection_made(self, connection: HAConnection) -> None:
        """A slave is there."""
        connection.counts = self._counts(connection.host) or None
        self.connections.append(connection)
        self._shares.add(address_of(connection.host), None, connection)
        self.log.info("slave connected: slave={s}", s=connection.client_address)

    def connection_lost(self, connection: HAConnection, reason: failure.Failure) -> None:
        """A slave is gone."""
        self.connections.remove(connection)
        self._shares.discard(address_of(connection.host), None, connection)
        if connection.counts is not False:
            self._sent_end = max(self._sent_end, connection.writer.sent_end)
        self.log.info("slave disconnected: slave={s} {r}", s=connection.client_address, r=reason.getErrorMessage())
        self._changed()

    def recovered(self) -> None:
        """This master may have lost the end of its log, which its slave has: it did not stop properly before."""
        self._recovered_end = self.store.max_physical_offset()

    def last_common_offset(self) -> int:
        """Up to where a slave's log may be a copy of this one.

        A master that lost the end of its log and wrote on has other bytes at the offsets where its slave's log ends.
        Then only what was there after its recovery, or was sent since to others than known strangers, is common.
        """
        if self._recovered_end is None or self.options.is_slave:
            return self.store.max_physical_offset()
        sent = (one.writer.sent_end for one in self.connections if one.counts is not False)
        return max(self._recovered_end, self._sent_end, *sent)

    def acknowledged(self) -> None:
        """A slave holds more than before."""
        self._changed()

    def acknowledged_offsets(self) -> Sequence[int]:
        """What each slave holds whose copy counts."""
        return [connection.slave_ack_offset for connection in self.connections if connection.counts]

    def confirmed_offsets(self, session: int) -> Sequence[int]:
        """What each slave holds whose copy counts, and who confirms this session of the master's."""
        counted = (connection for connection in self.connections if connection.counts)
        return [one.slave_ack_offset for one in counted if one.reader.session == session] if session else []

    def count(self, is_slave: Callable[[str], bool]) -> None:
        """Slaves of such hosts are registered. Where only those count, their copies do from now on; a link that was served and
        does not is told of once.
        """
        self.is_registered = is_slave
        if not self.options.counts_registered_slaves:
            return
        self._counts = is_slave
        for connection in self.connections:
            if connection.counts:
                continue
            if is_slave(connection.host):
                connection.counts = True
            elif connection.is_known and connection.counts is None:
                connection.counts = False
                self._tell_of_stranger(connection)
        self._changed()

    def _tell_of_stranger(self, connection: HAConnection) -> None:
        self.log.warn(
            "slave's copy does not count, the name servers know no slave of {name} at its address: slave={s}. Where it"
            " is one, set haSharedSecret at both sides or name its host in haAllowedSlaves;"
            " haCountRegisteredSlavesOnly=false counts everybody",
            name=self.options.broker_name, s=connection.client_address,
        )  # fmt: skip

    def pump(self) -> None:
        """Send all slaves what was appended."""
        for connection in tuple(self.connections):
            connection.writer.pump()

    def close_all(self) -> None:
        """Close every connection once its slave has what was sent."""
        for connection in tuple(self.connections):
            connection.finish()


def _everybody(host: str) -> bool:
    return True


def _nobody_yet(host: str) -> bool:
    return False
