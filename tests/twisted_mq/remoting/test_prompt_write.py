"""Writing at once: nothing overtakes what waits, and nothing is lost where the socket takes only a part."""

from __future__ import annotations

import socket
from typing import Any

from twisted.internet.protocol import Factory, Protocol
from twisted.internet.tcp import Connection
from twisted.internet.testing import StringTransport
from twisted.protocols import policies
from twisted.trial.unittest import SynchronousTestCase

from twisted_mq.remoting.socket_channel import write_promptly

LARGE = bytes(range(256)) * 40_000
PIECE = 100_001


class Writers:
    """A reactor that only notes who wants to write."""

    def __init__(self) -> None:
        self.writers: set[Any] = set()
        self.addWriter = self.writers.add
        self.removeWriter = self.writers.discard
        self.removeReader = lambda reader: None


class PromptWriteCase(SynchronousTestCase):
    """A Twisted connection over a pair of sockets, and the peer's end."""

    def setUp(self) -> None:
        ours, self.peer = socket.socketpair()
        self.peer.setblocking(False)
        self.reactor = Writers()
        self.transport = Connection(ours, None, self.reactor)
        self.transport.connected = 1
        self.addCleanup(self.peer.close)
        self.addCleanup(ours.close)

    def received(self) -> bytes:
        """Return the bytes that the peer received."""
        found = bytearray()
        while True:
            try:
                data = self.peer.recv(1 << 20)
            except BlockingIOError:
                return bytes(found)
            if not data:
                return bytes(found)
            found += data

    def test_data_is_there_before_the_reactors_next_turn(self) -> None:
        write_promptly(self.transport, b"one")
        write_promptly(self.transport, b"two")
        self.assertEqual((self.received(), self.reactor.writers), (b"onetwo", set()))

    def test_what_the_socket_does_not_take_follows_in_order(self) -> None:
        for start in range(0, len(LARGE), PIECE):
            write_promptly(self.transport, LARGE[start : start + PIECE])
        write_promptly(self.transport, b"behind it")
        self.assertEqual(self.reactor.writers, {self.transport})
        found = self.received()
        self.assertNotEqual(found, b"")
        while self.reactor.writers:
            self.transport.doWrite()
            found += self.received()
        self.assertEqual(found, LARGE + b"behind it")
        write_promptly(self.transport, b"at once again")
        self.assertEqual(self.received(), b"at once again")

    def test_what_is_too_much_for_one_piece_waits_for_the_reactor(self) -> None:
        write_promptly(self.transport, LARGE)
        self.assertEqual((self.received(), self.reactor.writers), (b"", {self.transport}))

    def test_what_waits_is_not_overtaken(self) -> None:
        self.transport.write(b"first")
        write_promptly(self.transport, b"second")
        self.assertEqual(self.received(), b"")
        self.transport.doWrite()
        self.assertEqual(self.received(), b"firstsecond")

    def test_a_broken_connection_is_left_to_the_reactor(self) -> None:
        self.peer.close()
        write_promptly(self.transport, b"lost")
        self.assertEqual(self.reactor.writers, {self.transport})
        self.assertIsInstance(self.transport.doWrite(), Exception)

    def test_other_transports_are_written_to_as_ever(self) -> None:
        transport = StringTransport()
        write_promptly(transport, b"data")
        self.assertEqual(transport.value(), b"data")

    def test_transports_around_another_are_not_bypassed(self) -> None:
        """TLS would else be: such a transport shows all attributes of the one inside."""
        wrapper = policies.ProtocolWrapper(policies.WrappingFactory(Factory()), Protocol())
        wrapper.transport = self.transport
        written: list[bytes] = []
        wrapper.write = written.append
        write_promptly(wrapper, b"data")
        self.assertEqual((written, self.received()), ([b"data"], b""))

    def test_connections_that_switched_to_tls_are_not_bypassed(self) -> None:
        written: list[bytes] = []
        self.transport.TLS = True
        self.transport.write = written.append
        write_promptly(self.transport, b"data")
        self.assertEqual((written, self.received()), ([b"data"], b""))
