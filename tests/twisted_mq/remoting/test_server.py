"""The listening side: which channels are open, and which are closed for their silence."""

from __future__ import annotations

from unittest.mock import patch

from twisted.internet.address import IPv4Address
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from tests.support.remoting import ClosingTransport, connect, frames, sent
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.remoting.server import RemotingServerFactory
from twisted_mq.remoting.socket_channel import SocketChannel, Traffic


class ServerCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.events: list[str] = []
        traffic = Traffic(
            {1: lambda channel, command: command.answer()},
            self.clock,
            channel_made=lambda channel: self.events.append("made"),
            channel_lost=lambda channel: self.events.append("lost"),
        )
        self.factory = RemotingServerFactory(traffic, max_idle_seconds=120)
        self.factory.doStart()

    def channel(self) -> tuple[SocketChannel, ClosingTransport]:
        channel = self.factory.buildProtocol(None)  # type: ignore[arg-type]
        return channel, connect(channel)

    def test_channels_are_known_while_connected_and_the_owner_hears_of_both_ends(self) -> None:
        channel, transport = self.channel()
        self.assertEqual(list(self.factory.channels), [channel])
        transport.loseConnection()
        self.assertEqual(list(self.factory.channels), [])
        self.assertEqual(self.events, ["made", "lost"])

    def test_processors_are_shared_by_all_channels(self) -> None:
        for _ in range(2):
            channel, transport = self.channel()
            channel.dataReceived(frames(RemotingCommand(1, opaque=5)))
            self.assertEqual([one.opaque for one in sent(transport)], [5])

    def test_silent_channel_is_closed_and_a_talking_one_stays(self) -> None:
        silent, _ = self.channel()
        talking, _ = self.channel()
        for _ in range(6):
            self.clock.advance(30)
            talking.dataReceived(frames(RemotingCommand(1)))
        self.assertEqual(list(self.factory.channels), [talking])
        self.assertFalse(silent.connected_now)

    def test_a_byte_now_and_then_is_no_sign_of_life(self) -> None:
        dripping, _ = self.channel()
        data = frames(RemotingCommand(1, body=bytes(100)))
        for at in range(6):
            self.clock.advance(30)
            dripping.dataReceived(data[at : at + 1])
        self.assertFalse(dripping.connected_now)

    def test_connections_past_the_limit_are_refused_with_one_line_until_one_is_free(self) -> None:
        factory = RemotingServerFactory(self.factory.traffic, max_connections=2)
        channels = [factory.buildProtocol(None) for _ in range(2)]
        transports = [connect(channel) for channel in channels if channel is not None]
        with self.assertLogs("twisted_mq.remoting.connection_shares", "WARNING") as logged:
            self.assertEqual([factory.buildProtocol(None) for _ in range(3)], [None] * 3)
        self.assertEqual(len(logged.output), 1)
        transports[0].loseConnection()
        self.assertIsNot(factory.buildProtocol(None), None)

    def test_past_the_limit_the_address_with_the_most_gives_way(self) -> None:
        factory = RemotingServerFactory(self.factory.traffic, max_connections=4)
        transports = []
        for number in range(4):
            channel = factory.buildProtocol(None)
            assert channel is not None
            transports.append(connect(channel, ClosingTransport(("10.0.0.9", 50_000 + number))))
        self.assertIsNone(factory.buildProtocol(IPv4Address("TCP", "10.0.0.9", 50_004)))
        honest = factory.buildProtocol(IPv4Address("TCP", "10.0.0.1", 50_000))
        self.assertIsNot(honest, None)
        self.assertEqual([one.aborted for one in transports], [True, False, False, False])
        connect(honest, ClosingTransport(("10.0.0.1", 50_000)))
        self.assertEqual(len(factory.channels), 4)

    def test_a_scan_that_fails_is_not_the_last(self) -> None:
        self.channel()
        with (
            patch.object(SocketChannel, "close", side_effect=OSError("bad file descriptor")),
            self.assertLogs("twisted_mq.periodic", "CRITICAL") as logged,
        ):
            self.clock.pump([30] * 6)
        self.clock.advance(30)
        self.assertEqual((len(logged.output), list(self.factory.channels)), (1, []))

    def test_channel_is_not_closed_before_its_time(self) -> None:
        channel, _ = self.channel()
        self.clock.pump([30] * 4)
        self.assertEqual(list(self.factory.channels), [channel])

    def test_stop_leaves_no_timer(self) -> None:
        self.factory.doStop()
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_two_ports_share_one_scan_that_ends_with_the_last(self) -> None:
        self.factory.doStart()
        self.factory.doStop()
        self.assertEqual(len(self.clock.getDelayedCalls()), 1)
        self.factory.doStop()
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_close_all_closes_every_channel(self) -> None:
        self.channel()
        self.channel()
        self.factory.close_all()
        self.assertEqual(list(self.factory.channels), [])
