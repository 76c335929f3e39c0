"""Clients that are gone without a goodbye, on a virtual clock."""

from __future__ import annotations

from typing import Any

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from twisted_mq.proxy.client import GrpcClient
from twisted_mq.proxy.grpc.calls import Call
from twisted_mq.proxy.grpc.metadata import CallHead, Metadata
from twisted_mq.proxy.options import ProxyOptions
from twisted_mq.proxy.parts import Parts
from twisted_mq.proxy.presence import AWAY_SECONDS, SCAN_SECONDS, Presence


class Streams:
    """The wire of calls: it ends them."""

    def write(self, call: Call, data: bytes) -> Any: ...

    def end(self, call: Call, status: object, message: str) -> None:
        call.over()


class PresenceTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        parts = Parts(ProxyOptions(channel_expired_timeout=30_000), None, self.clock, 1)  # type: ignore[arg-type]
        self.client = GrpcClient("id", "PYTHON", ("10.0.0.1", 1), b"", self.clock)
        self.clients = [self.client]
        self.presence = Presence(parts, self.clients, self.dropped)
        self.presence.seen(self.client)

    def dropped(self, client: GrpcClient) -> None:
        self.clients.remove(client)
        self.presence.forget(client)

    def stream(self) -> Call:
        """Open a Telemetry stream of the client."""
        head = CallHead("/Telemetry", None, "identity", Metadata())
        call = Call(1, head, self.client.remote_address, self.clock, None, Streams())  # type: ignore[arg-type]
        self.presence.opened(self.client, call)
        return call

    def broken(self, call: Call) -> None:
        call.is_broken = True
        call.over()

    def test_client_whose_stream_broke_is_gone_shortly_after(self) -> None:
        self.broken(self.stream())
        self.clock.advance(AWAY_SECONDS - 0.1)
        self.assertEqual(self.clients, [self.client])
        self.clock.advance(0.1)
        self.assertEqual(self.clients, [])

    def test_client_that_opens_another_stream_in_time_stays(self) -> None:
        self.broken(self.stream())
        self.clock.advance(AWAY_SECONDS - 0.1)
        second = self.stream()
        self.clock.advance(AWAY_SECONDS)
        self.assertEqual((self.clients, self.client.telemetry), ([self.client], second))

    def test_stream_that_another_one_replaced_says_nothing_when_it_breaks(self) -> None:
        first, second = self.stream(), self.stream()
        self.assertTrue(first.is_over)
        self.broken(first)
        self.clock.advance(AWAY_SECONDS)
        self.assertEqual((self.clients, self.client.telemetry), ([self.client], second))

    def test_client_that_closed_its_stream_is_known_until_its_heartbeats_stop(self) -> None:
        self.presence.start()
        self.addCleanup(self.presence.stop)
        self.stream().finish()
        self.clock.pump([SCAN_SECONDS] * 2)
        self.presence.seen(self.client)
        self.clock.pump([SCAN_SECONDS] * 2)
        self.assertEqual(self.clients, [self.client])
        self.clock.pump([SCAN_SECONDS])
        self.assertEqual(self.clients, [])

    def test_stop_leaves_no_timer(self) -> None:
        self.presence.start()
        self.broken(self.stream())
        self.presence.stop()
        self.presence.stop()
        self.assertEqual(self.clock.getDelayedCalls(), [])
