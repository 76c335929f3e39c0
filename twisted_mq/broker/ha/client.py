"""Follows the master: a slave's end of the link asks the master for its log and writes it (Apache: DefaultHAClient).

READY: no connection, tried again with growing pauses. HANDSHAKE: connected, a shared secret is not shown yet. TRANSFER:
served. SHUTDOWN: stopped, or the logs differ. Logs differ if the master's bytes do not continue this log several times
at the same place; then a person has to act.

The first report says where this log's last record begins: the master's bytes from there to this log's end are compared,
see log_proof.py. Later reports say where this log ends: one first, one after each append, and one each
haSendHeartbeatInterval. A store with synchronous flush reports what is on disk, others what is written.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import attrs
from twisted.internet import defer, error, interfaces, protocol
from twisted.python import failure

from twisted_mq.broker.ha.dispatch_behind import DispatchBehind
from twisted_mq.broker.ha.flow_monitor import FlowMonitor
from twisted_mq.broker.ha.idle_timer import IdleTimer
from twisted_mq.broker.ha.log_proof import LogProof, begin_proof
from twisted_mq.broker.options import BrokerOptions
from twisted_mq.logs import Logger
from twisted_mq.protocol.errors import FrameError
from twisted_mq.protocol.layouts.ha import (
    ConnectionState,
    Transfer,
    TransferDecoder,
    encode_confirms,
    encode_report,
)
from twisted_mq.protocol.layouts.ha_handshake import NONCE_BYTES, SlaveHandshake
from twisted_mq.reactor_threads import CallFromThread
from twisted_mq.remoting.client import Connect, split_address
from twisted_mq.remoting.errors import RemotingConnectError
from twisted_mq.remoting.transport import Transport, switch_on
from twisted_mq.storage.errors import LogMismatch, ReplicaDamaged, StoreError
from twisted_mq.storage.interfaces import IMessageStore

RETRY_SECONDS = (1.0, 2.0, 5.0)
"""Pauses before the next try; the last one repeats (Apache: always 5 s)."""

MISMATCHES_UNTIL_STOP = 3
"""The number of mismatches in a row at the same place that stop the link: a single one may be a damaged transmission."""

READ_BYTES = 256 * 1024
"""The bytes read from the socket at once (Twisted: 64 KiB): each turn of the reactor costs as much as 20 KiB."""


@attrs.frozen(eq=False)
class Following:
    """A connection, and the number of transfers on it so far, each of which continued this log."""

    link: object
    taken: int


class HAClient:
    """Keeps one connection to the master. `dispatch` makes what was written visible, see DispatchBehind."""

    log = Logger()

    def __init__(
        self,
        options: BrokerOptions,
        store: IMessageStore,
        clock: interfaces.IReactorTime,
        connect: Connect,
        call_from_thread: CallFromThread,
        dispatch: Callable[[], bool],
    ) -> None:
        self.state = ConnectionState.READY
        self.master_ha_address: str | None = None
        self.store = store
        self.monitor = FlowMonitor(clock)
        self.last_read_ms = self.last_write_ms = int(clock.seconds() * 1000)
        self.differs = False
        """True from a mismatch on until the logs are proven to be the same: readers would get what the master does not have."""
        self._options = options
        self._clock = clock
        self._connect = connect
        self._call_from_thread = call_from_thread
        self._behind = DispatchBehind(clock, dispatch)
        self._sync_flush = options.is_sync_flush
        self._running = False
        self._failures = 0
        self._mismatches: tuple[int, int] = (-1, 0)
        self._link: HALink | None = None
        self._confirms = 0
        self._attempt: defer.Deferred[interfaces.IProtocol] | None = None
        self._retry: interfaces.IDelayedCall | None = None

    # life

    def start(self) -> None:
        """Connect as soon as the master's address is known."""
        self._running = True
        self._try_to_connect()

    def stop(self) -> None:
        """Close the connection and open no other. A second call does nothing."""
        self._running = False
        self._behind.stop()
        self._leave(ConnectionState.SHUTDOWN)

    def update_master_ha_address(self, address: str | None) -> None:
        """Set the master's address for slaves, host:port. A change moves the connection there; None ends no connection."""
        if address == self.master_ha_address or address is None:
            return
        self.log.info("master's HA address: old={o} new={n}", o=self.master_ha_address, n=address)
        self.master_ha_address = address
        self._failures = 0
        if self._running and self.state is not ConnectionState.SHUTDOWN:
            self._leave(ConnectionState.READY)
            self._try_to_connect()

    def _leave(self, state: ConnectionState) -> None:
        self.state = state
        if self._retry is not None and self._retry.active():
            self._retry.cancel()
        attempt, self._attempt = self._attempt, None
        if attempt is not None:
            attempt.cancel()
        link, self._link = self._link, None
        if link is not None:
            link.close()

    # connecting

    def _try_to_connect(self) -> None:
        if not self._running or self.state is not ConnectionState.READY or self.master_ha_address is None:
            return
        try:
            host, port = split_address(self.master_ha_address)
        except RemotingConnectError as mistake:
            self.log.error("master's HA address is not valid: {e}", e=mistake)
            return
        factory = protocol.Factory.forProtocol(lambda: HALink(self))
        factory.noisy = False
        self._attempt = self._connect(host, port).connect(factory)
        self._attempt.addErrback(self._not_connected)

    def _not_connected(self, reason: failure.Failure) -> None:
        if self._attempt is None:  # cancelled by _leave
            return
        self._attempt = None
        reason.trap(error.ConnectError, OSError)
        if not self._failures:
            self.log.warn("master not reached, retrying: {a} {e}", a=self.master_ha_address,
                          e=reason.getErrorMessage())  # fmt: skip
        self._try_later()

    def _try_later(self) -> None:
        if not self._running or self.state is ConnectionState.SHUTDOWN:
            return
        pause = RETRY_SECONDS[min(self._failures, len(RETRY_SECONDS) - 1)]
        self._failures += 1
        self._retry = self._clock.callLater(pause, self._try_to_connect)

    # events of the link

    def linked(self, link: HALink) -> None:
        """Note that the link is connected; with a shared secret, its handshake comes next."""
        self._attempt, self._link = None, link
        self.state = ConnectionState.HANDSHAKE

    def begin(self) -> None:
        """Start to report where this log ends."""
        self.state = ConnectionState.TRANSFER
        store, link = self.store, self._link
        assert link is not None
        most = store.flushed_offset() if self._sync_flush else store.max_physical_offset()
        proof = link.proof = begin_proof(store, most, link.send_report)
        self.log.info("connected to master: {a} end={o}", a=self.master_ha_address, o=store.max_physical_offset())
        link.send_report(proof.start)
        link.send_confirms(self._confirms)

    def confirm(self, session: int) -> None:
        """Count what this slave reports from now on in this session of its master's, and in no other; in none if it is 0.

        Reports made before that are still on their way count as they did. Nothing counts before the logs are proven to be
        the same.
        """
        self._confirms = session
        if self._link is not None and self.state is ConnectionState.TRANSFER:
            self._link.send_confirms(session)

    def unlinked(self, link: HALink, reason: failure.Failure) -> None:
        """Forget a lost connection."""
        if link is not self._link:
            return
        self._link = None
        self.state = ConnectionState.READY
        self.log.info("connection to master lost: {a} {e}", a=self.master_ha_address, e=reason.getErrorMessage())
        self._try_later()

    def received(self, transfers: list[Transfer]) -> None:
        """Append the transfers, report them, and make them visible. Raises StoreError if they do not fit."""
        self._failures = 0
        self.last_read_ms = int(self._clock.seconds() * 1000)
        store, link, grown = self.store, self._link, 0
        if link is not None and not link.proof.is_done:
            transfers = self._prove(link, transfers)
        try:
            for transfer in transfers:
                if transfer.data:
                    store.append_log(transfer.physical_offset, transfer.data)
                    grown += len(transfer.data)
                elif store.max_physical_offset() not in (0, transfer.physical_offset):
                    raise LogMismatch("commit log", store.max_physical_offset(), transfer.physical_offset)
        finally:
            if grown:
                self._behind.soon(grown)
        if grown:
            self.report()
        if link is not None:
            link.taken += len(transfers)
            self.differs = self.differs and not link.proof.is_done

    def _prove(self, link: HALink, transfers: list[Transfer]) -> list[Transfer]:
        """Compare until this log's end is reached; return the transfers left to append. Raises LogMismatch."""
        proof, rest = link.proof, list(transfers)
        while rest and not proof.is_done:
            rest[0] = proof.take(rest[0])
            if not proof.is_done:
                del rest[0]
        if proof.is_done:
            self.report()
            link.send_confirms(self._confirms)
        return rest

    @property
    def following(self) -> Following | None:
        """Return the connection over which this log follows the master's; None without one."""
        link = self._link
        return Following(link, link.taken) if link is not None and link.taken else None

    def report(self) -> None:
        """Report this log's end; under synchronous flush once it is on disk."""
        link, offset = self._link, self.store.max_physical_offset()
        if link is not None and not link.proof.is_done:
            return
        if self._sync_flush and self.store.flushed_offset() < offset:
            self.store.when_flushed(offset, lambda done: self._call_from_thread(self._flushed, link, offset, done))
        elif link is not None:
            link.send_report(offset)

    def _flushed(self, link: HALink | None, offset: int, done: bool) -> None:
        self._behind.soon(0)
        if done and link is not None and link is self._link:
            link.send_report(offset)

    def refused(self, problem: StoreError | FrameError) -> None:
        """Handle a refused transfer: reconnect, or stop if that does not help."""
        self.log.error("replication failed: {a} {e}", a=self.master_ha_address, e=problem)
        if isinstance(problem, LogMismatch | ReplicaDamaged):
            self.differs = self.differs or isinstance(problem, LogMismatch)
            end = self.store.max_physical_offset()
            count = self._mismatches[1] + 1 if self._mismatches[0] == end else 1
            self._mismatches = (end, count)
            if count >= MISMATCHES_UNTIL_STOP:
                self.log.error(
                    "replication stopped, the logs differ: end={o}. Empty this store, or stop the broker, cut its log with"
                    " mq store truncate, and start it", o=end,
                )  # fmt: skip
                self._leave(ConnectionState.SHUTDOWN)


class HALink(protocol.Protocol):
    """A connection to the master."""

    transport: Transport  # type: ignore[assignment]  # None only before connectionMade

    def __init__(self, client: HAClient) -> None:
        options = client._options
        self._client = client
        self._decoder = TransferDecoder()
        self._reported = -1
        self._confirms = 0
        self._open = False
        self.taken = 0
        self.proof = LogProof(client.store, client.store.max_physical_offset(), self.send_report)
        secret = options.ha_shared_secret
        self._handshake = SlaveHandshake(secret, os.urandom(NONCE_BYTES)) if secret else None
        self._silence = IdleTimer(client._clock, options.ha_housekeeping_interval / 1000, self._silent)
        self._quiet = IdleTimer(client._clock, options.ha_send_heartbeat_interval / 1000, self._still_here)

    def connectionMade(self) -> None:
        self._open = True
        self.transport.bufferSize = READ_BYTES
        switch_on(self.transport, "setTcpNoDelay")
        self._silence.start()
        self._quiet.start()
        self._client.linked(self)
        if self._handshake is None:
            self._client.begin()

    def dataReceived(self, data: bytes) -> None:
        if not self._open:
            return
        self._silence.touch()
        self._client.monitor.add(len(data))
        try:
            if self._handshake is not None:
                data = self._shake_hands(self._handshake, data)
            if data:
                self._client.received(self._decoder.receive_data(data))
        except (StoreError, FrameError) as problem:
            self._client.refused(problem)
            self.close()

    def _shake_hands(self, handshake: SlaveHandshake, data: bytes) -> bytes:
        """Return the bytes after the handshake; empty until it is over. Raises HandshakeRefused."""
        proof, rest = handshake.receive_data(data)
        self.transport.write(proof)
        if rest is None:
            return b""
        self._handshake = None
        self._client.begin()
        return rest

    def connectionLost(self, reason: failure.Failure = protocol.connectionDone) -> None:
        if self._open and self._handshake is not None:
            self._client.log.error("replication refused: {a} {r}", a=self._client.master_ha_address,
                                   r=self._handshake.awaits)  # fmt: skip
        self._stop()
        self._client.unlinked(self, reason)

    def send_report(self, offset: int) -> None:
        """Report that this log is complete up to `offset`, if that is new."""
        if offset > self._reported and self._open:
            self._reported = offset
            self._repeat_report()

    def send_confirms(self, session: int) -> None:
        """Report in which session of the master's reports count, if that is new and this log is proven to be the master's."""
        if session != self._confirms and self._open and self.proof.is_done:
            self._confirms = session
            self.transport.write(encode_confirms(session))

    def _still_here(self) -> None:
        """Report again: bytes that were not on disk when the wait for them ended may be there now."""
        if self._client.state is ConnectionState.TRANSFER:
            reported = self._reported
            self._client.report()
            if self._reported == reported:
                self._repeat_report()

    def _repeat_report(self) -> None:
        if self._reported >= 0:
            self._quiet.touch()
            self._client.last_write_ms = int(self._client._clock.seconds() * 1000)
            self.transport.write(encode_report(self._reported))

    def _silent(self) -> None:
        self._client.log.warn("nothing received from master, connection closed: {a} {r}", a=self._client.master_ha_address,
                              r=self._handshake.awaits if self._handshake is not None else "")  # fmt: skip
        self.close()

    def close(self) -> None:
        """Close at once."""
        if self._open:
            self._stop()
            self.transport.abortConnection()

    def _stop(self) -> None:
        self._open = False
        self._silence.stop()
        self._quiet.stop()
