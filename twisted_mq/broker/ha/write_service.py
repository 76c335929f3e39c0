"""Writes to a slave: the log's bytes and heartbeats, the master's half of a link (Apache:
DefaultHAConnection.WriteSocketService).

The part of the log that the slave was not sent leaves in transfers of haTransferBatchSize at most. Several transfers go
into one write, which is the only copy of the log's bytes. While the transport is full, nothing is read. If slaves take much in
one poll, the rest of them wait for turns of their shares (`remoting.rotation`), as the reads of clients do.

A master with synchronous flush whose sends wait for no slave sends only what is on its disk. A power cut then takes nothing
from it that a slave has, and may have shown to readers. (Apache sends what is written. So does a master here whose sends wait
for copies: disk and slaves work at the same time.)
"""

from __future__ import annotations

from twisted.internet import interfaces
from zope.interface import implementer

from twisted_mq.broker.ha.flow_monitor import FlowMonitor
from twisted_mq.broker.ha.idle_timer import IdleTimer
from twisted_mq.protocol.layouts.ha import HEADER_BYTES, encode_transfer_header
from twisted_mq.remoting.rotation import Rotation
from twisted_mq.remoting.transport import Transport
from twisted_mq.storage.interfaces import IMessageStore

WRITE_BYTES = 128 * 1024
"""Transfers are gathered up to this size; it is what Twisted passes to a socket at once."""

NOT_BEGUN = -1


@implementer(interfaces.IPushProducer)
class WriteSocketService:
    """Sends from `next_offset` on, once `begin` has set it; -1 before."""

    def __init__(
        self,
        store: IMessageStore,
        clock: interfaces.IReactorTime,
        monitor: FlowMonitor,
        rotation: Rotation,
        *,
        batch_bytes: int,
        heartbeat_seconds: float,
        on_disk_only: bool = False,
    ) -> None:
        self.next_offset = NOT_BEGUN
        self._sent_end = 0
        self._store = store
        self._clock = clock
        self._monitor = monitor
        self._rotation = rotation
        self._share = ""
        self._batch_bytes = batch_bytes
        self._on_disk_only = on_disk_only
        self._transport: Transport | None = None
        self._paused = False
        self._later: interfaces.IDelayedCall | None = None
        self._heartbeat = IdleTimer(clock, heartbeat_seconds, self._send_heartbeat)

    @property
    def sent_end(self) -> int:
        """Return the offset up to which the log was sent; 0 before anything was."""
        return max(self._sent_end, self.next_offset)

    def start(self, transport: Transport, share: str) -> None:
        """Take the transport, and the slave's share of the reactor's time. Nothing is sent before `begin`."""
        self._transport = transport
        self._share = share
        transport.registerProducer(self, True)

    def begin(self, offset: int) -> None:
        """Send the log from `offset` on, and heartbeats. The first one leaves at once, and shows a slave that it has more."""
        self.next_offset = offset
        self._heartbeat.start()
        self.pump()
        self._send_heartbeat()

    def pump(self) -> None:
        """Send the new part of the log, as far as the transport and the flow control accept it."""
        if self.next_offset == NOT_BEGUN:
            return
        while not self._paused and self._transport is not None:
            data = self._gather()
            if not data:
                return
            self._write(data)

    def _gather(self) -> bytes:
        """Return transfers of up to WRITE_BYTES; empty if there is nothing to send or no allowance left."""
        pieces: list[bytes | memoryview] = []
        size = 0
        allowance = self._monitor.allowance()
        while size < WRITE_BYTES:
            wanted = min(self._batch_bytes, allowance - size - HEADER_BYTES)
            if wanted <= 0:
                self._wait_for_allowance()
                break
            if self._on_disk_only:
                wanted = min(wanted, self._store.flushed_offset() - self.next_offset)
            data = self._store.read_log(self.next_offset, wanted) if wanted > 0 else None
            if not data:
                break
            pieces += (encode_transfer_header(self.next_offset, len(data)), data)
            self.next_offset += len(data)
            size += HEADER_BYTES + len(data)
        return b"".join(pieces)

    def _wait_for_allowance(self) -> None:
        if self._later is None or not self._later.active():
            self._later = self._clock.callLater(self._monitor.next_second(), self.pump)

    def _send_heartbeat(self) -> None:
        if not self._paused:
            self.send_mark(self.next_offset)

    def send_mark(self, offset: int) -> None:
        """Send a transfer without data: a heartbeat, or a mark for a slave whose log ends elsewhere."""
        self._write(encode_transfer_header(offset, 0))

    def _write(self, data: bytes) -> None:
        assert self._transport is not None
        self._heartbeat.touch()
        self._monitor.add(len(data))
        self._transport.write(data)

    # IPushProducer

    def pauseProducing(self) -> None:
        """Stop writing, because the transport is full."""
        self._paused = True

    def resumeProducing(self) -> None:
        """Continue writing, because the slave took what was written."""
        self._paused = False
        now, rotation = self._clock.seconds(), self._rotation
        if now >= rotation.ask_at and rotation.is_crowded(now):
            rotation.join(self, self._share)
        else:
            self.pump()

    def go_on(self) -> None:
        """Continue writing, because it is the turn of the slave's share."""
        self.pump()

    def abort(self) -> None:
        """Close the link at once."""
        if self._transport is not None:
            self._transport.abortConnection()

    def stopProducing(self) -> None:
        """Stop for good, because the transport is gone."""
        self.stop()

    def stop(self) -> None:
        """Send nothing more. A second call does nothing."""
        self._transport = None
        self._sent_end = self.sent_end
        self.next_offset = NOT_BEGUN
        self._heartbeat.stop()
        self._rotation.leave(self)
        if self._later is not None and self._later.active():
            self._later.cancel()
