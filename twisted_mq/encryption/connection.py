"""Runs TLS below a protocol that reads and writes many frames at a time: Twisted's TLS, with fewer and larger steps.

A peer with many senders encrypts each request by itself, so one read has a record for each. Twisted passes them on one by
one, and writes at the reactor's next turn. Here the content of a read is passed on in one piece, as without TLS, and
writes leave at once, because callers have collected them already.
"""

from __future__ import annotations

from typing import cast

from OpenSSL.SSL import Error, WantReadError, ZeroReturnError
from twisted.internet.interfaces import IAddress
from twisted.protocols.policies import ProtocolWrapper
from twisted.protocols.tls import TLSMemoryBIOFactory, TLSMemoryBIOProtocol
from twisted.python.failure import Failure

from twisted_mq.remoting.socket_channel import write_promptly
from twisted_mq.remoting.transport import Transport

RECORD_BYTES = 16 * 1024
"""The most that one record carries (RFC 8446)."""
OVERHEAD_BYTES = 96
"""More than any cipher adds to the content of a record."""
FLIGHT_BYTES = 32 * 1024
"""The bytes to ask for when the amount is unknown: parts of a handshake."""


class EncryptedConnection(TLSMemoryBIOProtocol):
    """An encrypted connection."""

    writes_at_once = True

    def _flushReceiveBIO(self) -> None:
        """Pass on what a read decrypted. Called with each read once the handshake is done, and at the connection's end."""
        pieces: list[bytes] = []
        receive, ended = self._tlsConnection.recv, None
        try:
            while True:
                pieces.append(receive(RECORD_BYTES))
        except WantReadError:
            pass
        except Error:
            ended = Failure()
        if pieces and not self._aborted:
            ProtocolWrapper.dataReceived(self, pieces[0] if len(pieces) == 1 else b"".join(pieces))
        if ended is not None and not self._lostTLSConnection:
            self._ended(ended)
        if self._tlsConnection is not None:
            self._flushSendBIO()

    def _ended(self, reason: Failure) -> None:
        """Close, because the peer closes, or its data cannot be trusted."""
        if reason.check(ZeroReturnError):
            self._shutdownTLS()
            self._tlsShutdownFinished(None)
        else:
            self._tlsShutdownFinished(reason)

    def _write(self, bytes: bytes) -> None:
        """Encrypt everything, then pass it on in one piece; before the handshake is done, it waits."""
        if self._lostTLSConnection:
            return
        send, sent, size = self._tlsConnection.send, 0, len(bytes)
        try:
            while sent < size:
                sent += send(bytes[sent : sent + RECORD_BYTES])
        except WantReadError:
            self._bufferedWrite(bytes[sent:])
        except Error:
            self._tlsShutdownFinished(Failure())
            return
        self._flush(size + (size // RECORD_BYTES + 1) * OVERHEAD_BYTES)

    def _flushSendBIO(self) -> None:
        self._flush(FLIGHT_BYTES)

    def _flush(self, most: int) -> None:
        """Pass on what OpenSSL has for the peer, `most` bytes at a time."""
        read, more = self._tlsConnection.bio_read, True
        while more:
            try:
                data = read(most)
            except WantReadError:
                return
            more = len(data) == most
            write_promptly(cast(Transport, self.transport), data)


class EncryptedFactory(TLSMemoryBIOFactory):
    """Wraps the connections of a factory, which may refuse some."""

    protocol = EncryptedConnection

    def buildProtocol(self, addr: IAddress | None) -> TLSMemoryBIOProtocol | None:  # type: ignore[override]
        taken = self.wrappedFactory.buildProtocol(addr)
        return None if taken is None else self.protocol(self, taken)
