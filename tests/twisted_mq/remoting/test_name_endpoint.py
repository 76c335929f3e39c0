"""Connections by a host's name: each of its addresses, and no reactor but the one given."""

from __future__ import annotations

import socket
from typing import Any
from unittest import mock

from twisted.internet import error, reactor
from twisted.internet.protocol import Factory, Protocol
from twisted.trial.unittest import TestCase

from twisted_mq.remoting.name_endpoint import NameEndpoint

STREAM = (socket.SOCK_STREAM, socket.IPPROTO_TCP, "")


class NameEndpointTest(TestCase):
    def setUp(self) -> None:
        self.port = reactor.listenTCP(0, Factory.forProtocol(Protocol), interface="127.0.0.1")
        self.addCleanup(self.port.stopListening)

    def found(self, *found: Any) -> Any:
        return mock.patch("socket.getaddrinfo", side_effect=list(found) if found else socket.gaierror("unknown"))

    async def connect(self) -> Any:
        return await NameEndpoint(reactor, "broker-1", self.port.getHost().port, 5.0).connect(
            Factory.forProtocol(Protocol)
        )

    async def test_the_next_address_is_tried_where_one_refuses(self) -> None:
        port = self.port.getHost().port
        with self.found(
            [
                (socket.AF_INET6, *STREAM, ("::1", port, 0, 0)),
                (socket.AF_INET, *STREAM, ("127.0.0.99", port)),
                (socket.AF_INET, *STREAM, ("127.0.0.1", port)),
            ]
        ):
            connected = await self.connect()
        self.assertEqual(connected.transport.getPeer().host, "127.0.0.1")
        connected.transport.abortConnection()

    async def test_where_all_refuse_the_last_one_says_why(self) -> None:
        found = [(socket.AF_INET, *STREAM, ("127.0.0.99", self.port.getHost().port))]
        with self.found(found), self.assertRaises(error.ConnectionRefusedError):
            await self.connect()

    async def test_a_name_without_an_address_is_an_error_that_names_it(self) -> None:
        for found in (self.found([]), self.found()):
            with found, self.assertRaisesRegex(error.DNSLookupError, "broker-1"):
                await self.connect()
