"""TLS below a protocol: what a read holds comes in one piece, what is written leaves in one, and the end comes last."""

from __future__ import annotations

import time
from typing import Any

from OpenSSL import SSL
from twisted.internet.interfaces import IOpenSSLServerConnectionCreator
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from twisted_mq.config.tls_options import TlsMode, TlsOptions
from twisted_mq.encryption.connection import FLIGHT_BYTES, RECORD_BYTES, EncryptedFactory
from twisted_mq.encryption.servers import server_encryption


class Writes(StringTransport):
    """Keeps each write."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.pieces.append(data)


class Reads(Protocol):
    """Keeps each read, and why the connection was lost."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    def dataReceived(self, data: bytes) -> None:
        self.events.append(data)

    def connectionLost(self, reason: Failure = Failure(Exception())) -> None:  # noqa: B008
        self.events.append(reason.type.__name__)


class ConnectionTest(SynchronousTestCase):
    def setUp(self) -> None:
        encryption = server_encryption(
            TlsOptions(tls_server_mode=TlsMode.ENFORCING, tls_test_mode_enable=True), time.time
        )
        assert IOpenSSLServerConnectionCreator.providedBy(encryption)
        self.reads, self.transport = Reads(), Writes()
        factory = EncryptedFactory(encryption, False, Factory.forProtocol(lambda: self.reads), clock=Clock())
        tls = factory.buildProtocol(None)
        assert tls is not None
        self.tls = tls
        self.peer = SSL.Connection(SSL.Context(SSL.TLS_CLIENT_METHOD), None)
        self.peer.set_connect_state()
        self.tls.makeConnection(self.transport)

    def shake_hands(self) -> None:
        done = False
        while not done:
            try:
                self.peer.do_handshake()
                done = True
            except SSL.WantReadError:
                pass
            self.tls.dataReceived(self.peer.bio_read(FLIGHT_BYTES))
            self.taken()

    def taken(self) -> list[int]:
        """Hand the peer what was written; how long the pieces were."""
        pieces, self.transport.pieces = self.transport.pieces, []
        for piece in pieces:
            self.peer.bio_write(piece)
        return [len(piece) for piece in pieces]

    def read_by_peer(self, size: int) -> bytes:
        found = b""
        while len(found) < size:
            found += self.peer.recv(size)
        return found

    def records(self, *texts: bytes) -> bytes:
        for text in texts:
            self.peer.send(text)
        return self.peer.bio_read(FLIGHT_BYTES)

    def test_the_records_of_a_read_come_in_one_piece(self) -> None:
        self.shake_hands()
        data = self.records(b"one", b"two", b"three")
        self.tls.dataReceived(data[:-5])
        self.tls.dataReceived(data[-5:])
        self.assertEqual(self.reads.events, [b"onetwo", b"three"])

    def test_a_write_of_many_records_leaves_at_once_in_one_piece(self) -> None:
        self.shake_hands()
        text = bytes(range(256)) * 400
        self.reads.transport.write(text)
        (size,) = self.taken()
        self.assertGreater(size, len(text) + len(text) // RECORD_BYTES)
        self.assertEqual(self.read_by_peer(len(text)), text)

    def test_what_is_written_before_the_handshake_leaves_after_it(self) -> None:
        self.reads.transport.write(b"early")
        self.reads.transport.write(b" bird")
        self.shake_hands()
        self.assertEqual(self.read_by_peer(10), b"early bird")

    def test_what_came_before_the_peers_farewell_is_handed_on(self) -> None:
        self.shake_hands()
        self.peer.send(b"last words")
        self.peer.shutdown()
        self.tls.dataReceived(self.peer.bio_read(FLIGHT_BYTES))
        self.assertEqual((self.reads.events, self.transport.disconnecting), ([b"last words"], True))

    def test_a_damaged_record_ends_the_connection_after_those_before_it(self) -> None:
        self.shake_hands()
        good, bad = self.records(b"good"), bytearray(self.records(b"bad"))
        bad[-1] ^= 1
        self.tls.dataReceived(good + bytes(bad))
        self.assertEqual((self.reads.events, self.transport.disconnecting), ([b"good"], True))
        self.tls.connectionLost(Failure(ConnectionError()))
        self.assertEqual(self.reads.events, [b"good", "Error"])

    def test_nothing_comes_after_the_protocol_has_cut_the_connection(self) -> None:
        self.shake_hands()
        self.tls.abortConnection()
        self.tls.dataReceived(self.records(b"too late"))
        self.reads.transport.write(b"lost")
        self.assertEqual((self.reads.events, self.transport.disconnected), ([], True))
