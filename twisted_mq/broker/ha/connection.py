"""Serves one slave of a master: a reading and a writing service over one connection (Apache: DefaultHAConnection).

The slave's first report says where its log ends, or its last record begins. An offset of 0 is served from the newest log
file on, another offset from there. A slave that has more than this log says so by a report past its end.
An offset that this log does not have is answered with a mark that names the nearest one it has, which every slave takes
as a mismatch, and the connection is closed. A report beyond what was sent never counts.
"""

from __future__ import annotations

import os
from typing import Protocol

from twisted.internet import interfaces, protocol
from twisted.python import failure

from twisted_mq.broker.ha.flow_monitor import UNLIMITED, FlowMonitor
from twisted_mq.broker.ha.read_service import ReadSocketService
from twisted_mq.broker.ha.write_service import WriteSocketService
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.logs import Logger
from twisted_mq.protocol.layouts.ha import ConnectionState
from twisted_mq.protocol.layouts.ha_handshake import NONCE_BYTES, HandshakeRefused, MasterHandshake
from twisted_mq.remoting.rotation import Rotation
from twisted_mq.remoting.shares import address_of
from twisted_mq.remoting.transport import Transport, peer_of, switch_on
from twisted_mq.storage.interfaces import IMessageStore

NOTHING_REPORTED = -1


class Slaves(Protocol):
    """The owner of the connections of all slaves, see `accept_service`."""

    options: BrokerOptions
    store: IMessageStore
    clock: interfaces.IReactorTime
    rotation: Rotation
    ahead: str | None

    def next_phase(self) -> float:
        """Return the phase of a new link's seconds, 0 to 1."""

    def last_common_offset(self, host: str) -> int:
        """Return the offset up to which the log of a slave at that host may be a copy of this one."""

    def connection_made(self, connection: HAConnection) -> None:
        """Add a slave's connection."""

    def secret_proven(self, host: str) -> None:
        """Note that a slave at that host has proven haSharedSecret."""

    def connection_lost(self, connection: HAConnection, reason: failure.Failure) -> None:
        """Remove a slave's connection."""

    def acknowledged(self) -> None:
        """Handle an acknowledgement of more bytes."""


class HAConnection(protocol.Protocol):
    """A slave's connection. `slave_ack_offset` is the offset that the slave reports, -1 before its first report.

    `counts` is True if sends may wait for that copy; None while it is not known. `looks_limited` counts the looks at the
    registered slaves that found its link limited.
    """

    log = Logger()
    transport: Transport  # type: ignore[assignment]  # None only before connectionMade

    def __init__(self, owner: Slaves) -> None:
        options, clock = owner.options, owner.clock
        self.state = ConnectionState.READY
        self.host = self.client_address = ""
        self.counts: bool | None = None
        self.looks_limited = 0
        self.slave_request_offset = NOTHING_REPORTED
        self.slave_ack_offset = NOTHING_REPORTED
        limit = options.max_ha_transfer_byte_in_second if options.ha_flow_control_enable else UNLIMITED
        self.monitor = FlowMonitor(clock, limit, owner.next_phase())
        self._owner = owner
        self._store = owner.store
        secret = options.ha_shared_secret
        self._handshake = MasterHandshake(secret, os.urandom(NONCE_BYTES)) if secret else None
        self.reader = ReadSocketService(
            clock, options.ha_housekeeping_interval / 1000, self._reported, owner.acknowledged, self._silent
        )
        self.writer = WriteSocketService(
            owner.store,
            clock,
            self.monitor,
            owner.rotation,
            batch_bytes=options.ha_transfer_batch_size,
            heartbeat_seconds=options.ha_send_heartbeat_interval / 1000,
            on_disk_only=options.sends_flushed_log,
        )

    @property
    def is_known(self) -> bool:
        """True if the slave has reported where its log ends, which a slave does first of all."""
        return self.slave_request_offset != NOTHING_REPORTED

    @property
    def is_limited(self) -> bool:
        """True for a stranger's link, which shares a limit with those of other strangers."""
        return self.monitor.shared_limit is not None

    @property
    def transfer_from_where(self) -> int:
        """Return the offset that is sent next; -1 before the first report."""
        return self.writer.next_offset

    # transport events

    def connectionMade(self) -> None:
        self.host, port = peer_of(self.transport)
        self.client_address = f"{self.host}:{port}"
        switch_on(self.transport, "setTcpNoDelay", "setTcpKeepAlive")
        self.reader.start()
        self.writer.start(self.transport, address_of(self.host))
        self._owner.connection_made(self)
        if self._handshake is None:
            self.state = ConnectionState.TRANSFER
        else:
            self.state = ConnectionState.HANDSHAKE
            self.transport.write(self._handshake.challenge)

    def dataReceived(self, data: bytes) -> None:
        if self.state is ConnectionState.TRANSFER:
            self.reader.data_received(data)
        elif self.state is ConnectionState.HANDSHAKE:
            self._shake_hands(data)

    def _shake_hands(self, data: bytes) -> None:
        assert self._handshake is not None
        try:
            proven = self._handshake.receive_data(data)
        except HandshakeRefused as refused:
            self._refuse_hand(refused.reason)
            self.finish()
            return
        if proven is not None:
            answer, rest = proven
            self._owner.secret_proven(self.host)
            self.state = ConnectionState.TRANSFER
            self.transport.write(answer)
            self.dataReceived(rest)

    def _refuse_hand(self, reason: str) -> None:
        self.log.error("slave refused: slave={s} {r}", s=self.client_address, r=reason)

    def connectionLost(self, reason: failure.Failure = protocol.connectionDone) -> None:
        if self.state is ConnectionState.HANDSHAKE:
            self._refuse_hand("it disconnected without sending haSharedSecret")
        self._shut_down()
        self._owner.connection_lost(self, reason)

    # reports

    def _reported(self, offset: int) -> None:
        if self.slave_request_offset == NOTHING_REPORTED:
            self._requested(offset)
        elif offset > self._store.max_physical_offset():
            self._is_ahead(offset, self._store.max_physical_offset())
            self._refuse(offset, self.writer.next_offset)
        elif not 0 <= offset <= self.writer.next_offset:
            self.log.error(
                "slave acknowledges unsent data, connection closed: slave={s} acknowledged={a} sent={n}",
                s=self.client_address, a=offset, n=self.writer.next_offset,
            )  # fmt: skip
            self.close()
        else:
            self._acknowledged(offset)

    def _requested(self, offset: int) -> None:
        start = self._store.newest_file_offset() if offset == 0 else offset
        first, last = self._store.min_physical_offset(), self._owner.last_common_offset(self.host)
        if offset > last:
            self._is_ahead(offset, last)
        if offset and not first <= offset <= last:
            self._refuse(offset, first if 0 <= offset < first else last)
            return
        self.slave_request_offset = offset
        self._owner.ahead = None
        self.log.info("slave served: slave={s} asked={a} from={f}", s=self.client_address, a=offset, f=start)
        self._acknowledged(offset)
        self.writer.begin(start)

    def _is_ahead(self, offset: int, last: int) -> None:
        if self.counts is not False:
            self._owner.ahead = f"its slave's log ends at {offset} and has more than its own, which ended at {last}"

    def _refuse(self, offset: int, nearest: int) -> None:
        self.log.error(
            "slave's log is not part of this log, nothing is sent: slave={s} its-end={o} log-begins={f} log-ends={e}."
            " Empty the slave's store, or cut its log with mq store truncate",
            s=self.client_address, o=offset, f=self._store.min_physical_offset(), e=self._store.max_physical_offset(),
        )  # fmt: skip
        self.writer.send_mark(nearest)
        self._shut_down()
        self.transport.loseConnection()

    def _acknowledged(self, offset: int) -> None:
        self.slave_ack_offset = offset
        self._owner.acknowledged()

    def _silent(self) -> None:
        self.log.warn("nothing received from slave, connection closed: slave={s}", s=self.client_address)
        self.close()

    # the end

    def close(self) -> None:
        """Close at once; the slave asks again for what it did not get."""
        self._shut_down()
        self.transport.abortConnection()

    def finish(self) -> None:
        """Close once everything written has left."""
        self._shut_down()
        self.transport.loseConnection()

    def _shut_down(self) -> None:
        """Stop counting this slave's acknowledgements: it reports again after it reconnects."""
        self.state = ConnectionState.SHUTDOWN
        self.slave_ack_offset = NOTHING_REPORTED
        self.reader.stop()
        self.writer.stop()
        self.transport.unregisterProducer()
