"""Accepts the connections of slaves (Apache: DefaultHAService.AcceptSocketService)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from twisted.internet import interfaces, protocol
from twisted.python import failure

from twisted_mq.broker.ha.connection import HAConnection
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.logs import Logger
from twisted_mq.remoting.rotation import Rotation
from twisted_mq.remoting.shares import Shares, address_of
from twisted_mq.storage.interfaces import IMessageStore

STRANGERS_BYTES = 2 * 1024 * 1024
"""The limit in bytes a second of what the links of all hosts without a registered slave are sent together, in equal parts."""

LOOKS_BEFORE_A_WARNING = 3
"""The looks at the registered slaves, 5 s apart, of which the last one tells that a link is limited."""

MAX_SLAVES = 64
"""The limit of connections. A further one is closed, unless another gives way to it. A group of brokers has a handful."""


class AcceptSocketService(protocol.ServerFactory):
    """The connections of all slaves. `changed` is called when a slave has acknowledged something or has disconnected.

    `ahead` is set when the last slave that connected has more than this master; it is None once a slave is served.
    """

    log = Logger()
    noisy = False

    def __init__(
        self,
        options: BrokerOptions,
        store: IMessageStore,
        clock: interfaces.IReactorTime,
        changed: Callable[[], None],
        rotation: Rotation,
    ) -> None:
        self.options = options
        self.store = store
        self.clock = clock
        self.rotation = rotation
        self.connections: list[HAConnection] = []
        self.ahead: str | None = None
        self._links = -1
        self._recovered_end: int | None = None
        self._sent_ends: dict[str, int] = {}
        """The offset up to which the disconnected slaves of each host were sent the log; strangers are left out."""
        self._changed = changed
        self._counts: Callable[[str], bool] = _nobody_yet if options.counts_registered_slaves else _everybody
        self.is_registered: Callable[[str], bool] = _nobody_yet
        """Returns whether the name servers know a slave at an address."""
        self._shares: Shares[HAConnection] = Shares(self._is_proven)
        self.proven_hosts: dict[str, None] = {}
        """The hosts from which a slave has proven haSharedSecret, the last MAX_SLAVES of them."""

    def buildProtocol(self, addr: interfaces.IAddress | None) -> HAConnection | None:
        """Return a connection for a slave. Return None, which closes it, if the slave is not allowed or there are too many."""
        host = getattr(addr, "host", "")
        if self.options.closes_ha_port:
            self.log.warn(
                "slave refused under access control: set haSharedSecret here and at the slave, or add its host to "
                "haAllowedSlaves: host={h}",
                h=host,
            )
            return None
        allowed = self.options.allowed_slaves
        if allowed and host not in allowed:
            self.log.warn("slave refused, not in haAllowedSlaves: host={h}", h=host)
            return None
        if len(self.connections) >= MAX_SLAVES and not self._make_room(address_of(host)):
            self.log.warn("slave refused, {n} are connected: host={h}", n=len(self.connections), h=host)
            return None
        return HAConnection(self)

    def next_phase(self) -> float:
        """Return the phase of a new link's seconds: MAX_SLAVES links one after the other have different ones."""
        self._links += 1
        return self._links % MAX_SLAVES / MAX_SLAVES

    def _make_room(self, address: str) -> bool:
        """Close a connection to make room for one more of an address. Return False if none gives way.

        The oldest connection of the largest share gives way. If no share is large enough, it is the oldest that has not
        proven to be a slave yet, or whose copy does not count. A slave proves itself by haSharedSecret, if it is set, and
        by its first report, which every slave sends at once.
        """
        one = self._shares.gives_way(address, None) or self._a_stranger()
        if one is not None:
            self.log.warn("slave closed to accept another: slave={s}", s=one.client_address)
            self._shares.discard(address_of(one.host), None, one)
            one.close()
        return one is not None

    def _a_stranger(self) -> HAConnection | None:
        strangers = [one for one in self.connections if not (one.is_known and one.counts)]
        return min(strangers, key=lambda one: one.is_known, default=None)

    def _is_proven(self, address: str) -> bool:
        """Return whether slaves of an address are registered, or have proven haSharedSecret."""
        if self.is_registered(address):
            return True
        return bool(self.options.ha_shared_secret) and any(
            one.is_known and address_of(one.host) == address for one in self.connections
        )

    def connection_made(self, connection: HAConnection) -> None:
        """Add the connection of a slave."""
        connection.counts = self._counts(connection.host) or None
        self.connections.append(connection)
        self._limit_strangers()
        self._shares.add(address_of(connection.host), None, connection)
        self.log.info("slave connected: slave={s}", s=connection.client_address)

    def secret_proven(self, host: str) -> None:
        """Note that a slave at that host has proven haSharedSecret."""
        self.proven_hosts.pop(host, None)
        self.proven_hosts[host] = None
        if len(self.proven_hosts) > MAX_SLAVES:
            del self.proven_hosts[next(iter(self.proven_hosts))]

    def connection_lost(self, connection: HAConnection, reason: failure.Failure) -> None:
        """Remove the connection of a slave."""
        self.connections.remove(connection)
        self._limit_strangers()
        self._shares.discard(address_of(connection.host), None, connection)
        if connection.counts is not False:
            self._note_sent(connection)
        self.log.info("slave disconnected: slave={s} {r}", s=connection.client_address, r=reason.getErrorMessage())
        self._changed()

    def recovered(self) -> None:
        """Record that this master did not stop properly before: it may have lost the end of its log, which its slave has."""
        self._recovered_end = self.store.max_physical_offset()

    def _note_sent(self, connection: HAConnection) -> None:
        """Remember the offset up to which a slave was sent the log, for as many hosts as there may be connections."""
        host = connection.host
        ends = self._sent_ends
        ends[host] = max(ends.pop(host, 0), connection.writer.sent_end)
        if len(ends) > MAX_SLAVES:
            del ends[next(iter(ends))]

    def last_common_offset(self, host: str) -> int:
        """Return the physical offset up to which the log of a slave at that host may be a copy of this log.

        A master that lost the end of its log and then wrote more has other bytes at the offsets where its slave's log ends.
        Then the logs share only what the master had after its recovery, or has since sent to slaves of that host that are not
        known strangers. Bytes that were sent to another slave say nothing about this one's log.
        """
        if self._recovered_end is None or self.options.is_slave:
            return self.store.max_physical_offset()
        sent = (one.writer.sent_end for one in self.connections if one.host == host and one.counts is not False)
        return max(self._recovered_end, self._sent_ends.get(host, 0), *sent)

    def acknowledged(self) -> None:
        """Handle a slave's acknowledgement of more bytes."""
        self._changed()

    def acknowledged_offsets(self) -> Sequence[int]:
        """Return the acknowledged physical offset of each slave whose copy counts."""
        return [connection.slave_ack_offset for connection in self.connections if connection.counts]

    def confirmed_offsets(self, session: int) -> Sequence[int]:
        """Return the acknowledged physical offset of each slave whose copy counts and that confirms this master session."""
        counted = (connection for connection in self.connections if connection.counts)
        return [one.slave_ack_offset for one in counted if one.reader.session == session] if session else []

    def count(self, is_slave: Callable[[str], bool]) -> None:
        """Set which hosts have registered slaves. If only registered slaves count, their copies count from now on.

        A served link that does not count is logged once. Before the first call, no link is limited.
        """
        self.is_registered = is_slave
        self._limit_strangers()
        self._tell_of_limits()
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

    def _limit_strangers(self) -> None:
        """Let the links of hosts without a registered slave share STRANGERS_BYTES, once name servers told who is a slave."""
        if not self.options.limits_strangers or self.is_registered is _nobody_yet:
            return
        slaves = {connection.host for connection in self.connections if self.is_registered(connection.host)}
        strangers = sum(connection.host not in slaves for connection in self.connections)
        for connection in self.connections:
            connection.monitor.shared_limit = None if connection.host in slaves else STRANGERS_BYTES // strangers

    def _tell_of_limits(self) -> None:
        """Log once which links are limited longer than a slave takes to register."""
        for connection in self.connections:
            if not connection.is_limited or not connection.is_known:
                continue
            connection.looks_limited += 1
            if connection.looks_limited == LOOKS_BEFORE_A_WARNING:
                self.log.warn(
                    "slave's link is slow, hosts without a registered slave of {name} share {n} bytes a second: slave={s}. If "
                    "it is a slave, set haSharedSecret at both sides or add its host to haAllowedSlaves; "
                    "haCountRegisteredSlavesOnly=false limits no host",
                    n=STRANGERS_BYTES, name=self.options.broker_name, s=connection.client_address,
                )  # fmt: skip

    def _tell_of_stranger(self, connection: HAConnection) -> None:
        self.log.warn(
            "slave's copy does not count, the name servers know no slave of {name} at its address: slave={s}. If it is a "
            "slave, set haSharedSecret at both sides or add its host to haAllowedSlaves; haCountRegisteredSlavesOnly=false "
            "counts every host",
            name=self.options.broker_name, s=connection.client_address,
        )  # fmt: skip

    def pump(self) -> None:
        """Send what was appended to all slaves."""
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
