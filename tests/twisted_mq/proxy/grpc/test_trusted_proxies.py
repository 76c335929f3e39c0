"""PROXY headers at the gRPC port: who is believed, and whose address a client then has."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from tests.support.grpc_wire import ECHO, Wire, echo, methods
from twisted_mq.config.errors import ConfigError
from twisted_mq.proxy.grpc.connection import GrpcConnection
from twisted_mq.proxy.grpc.trusted_proxies import TrustedProxies

HEADER = b"PROXY TCP4 203.0.113.7 192.0.2.9 56324 8081\r\n"
NEAR = "192.168.1.1"
"""The address of StringTransport's peer."""


class TrustedProxyTests(SynchronousTestCase):
    def wire(self, trusted: str, then: Any = None) -> Wire:
        """A connection that has sent nothing yet."""
        self.peers: list[tuple[str, int]] = []

        def look(call: Any, request: Any) -> Any:
            self.peers.append(call.peer)
            return echo(call, request)

        wire = Wire(methods(echo=look), connect=False)
        TrustedProxies.parse(trusted, then).expect(wire.server)
        return wire

    def called(self, wire: Wire) -> list[str]:
        wire.client.initiate_connection()
        return wire.texts(wire.call(ECHO, "x"))

    def test_client_has_the_address_that_a_trusted_proxy_tells(self) -> None:
        wire = self.wire(f"10.0.0.0/8, {NEAR}")
        for byte in HEADER:
            wire.send(bytes([byte]))
        self.assertEqual(self.called(wire), ["x"])
        self.assertEqual((self.peers, wire.server.share_address), ([("203.0.113.7", 56324)], "203.0.113.7"))

    def test_connection_moves_to_the_share_of_its_client(self) -> None:
        wire = self.wire(NEAR)
        shares = wire.factory.connections._shares
        before = wire.server.share_address
        wire.send(HEADER)
        counted = {address for address in (before, "203.0.113.7") if shares.oldest(address) is not None}
        self.assertEqual(counted, {"203.0.113.7"})
        wire.lose()
        self.assertIsNone(shares.oldest("203.0.113.7"))

    def test_trusted_proxy_may_come_without_a_header_or_for_itself(self) -> None:
        for first in (b"", b"PROXY UNKNOWN\r\n"):
            wire = self.wire(NEAR)
            if first:
                wire.send(first)
            self.assertEqual((self.called(wire), [host for host, _ in self.peers]), (["x"], [NEAR]))

    def test_header_of_anyone_else_is_no_begin_of_a_connection(self) -> None:
        wire = self.wire("10.0.0.0/8")
        with self.assertLogs("twisted_mq.proxy.grpc.connection", "WARNING"):
            wire.send(HEADER)
        self.assertEqual((wire.is_closed, wire.server.remote_address[0]), (True, NEAR))

    def test_wrong_header_ends_the_connection(self) -> None:
        wire = self.wire(NEAR)
        with self.assertLogs("twisted_mq.proxy.grpc.connection", "WARNING") as logged:
            wire.send(b"PROXY TCP4 nobody 192.0.2.9 1 2\r\n")
        self.assertTrue(wire.is_closed)
        self.assertIn("PROXY header is wrong", logged.output[0])

    def test_header_whose_end_does_not_come_is_given_up(self) -> None:
        wire = self.wire(NEAR)
        wire.send(HEADER[:-1])
        wire.clock.advance(120)
        wire.factory.look()
        self.assertTrue(wire.is_closed)

    def test_what_follows_the_header_is_prepared_for(self) -> None:
        """TLS begins behind the header."""
        seen: list[GrpcConnection] = []
        wire = self.wire(NEAR, seen.append)
        wire.send(HEADER)
        self.assertEqual((seen, self.called(wire)), ([wire.server], ["x"]))

    def test_address_of_ipv4_inside_ipv6_is_that_of_ipv4(self) -> None:
        proxies = TrustedProxies.parse("10.0.0.0/8")
        found = [proxies._trusts(host) for host in ("::ffff:10.1.1.1", "10.1.1.1", "11.1.1.1", "::1", "a name")]
        self.assertEqual(found, [True, True, False, False, False])

    def test_text_that_is_no_address_ends_the_start(self) -> None:
        for text in ("10.0.0.0/33", "a name", "10.0.0.1,,10.0.0.2"):
            self.assertRaises(ConfigError, TrustedProxies.parse, text)
