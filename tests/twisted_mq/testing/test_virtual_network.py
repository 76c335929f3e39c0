"""The network that replication and later whole clusters are tested on: what it promises to those tests."""

from __future__ import annotations

from typing import Any

import attrs
from twisted.internet import error, interfaces, protocol
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from twisted_mq.testing.virtual_network import BUFFER_BYTES, VirtualNetwork

PORT = 9


@attrs.define(eq=False)
class Notes(protocol.Protocol):
    """Notes what arrives and when, and why the connection ended."""

    network: VirtualNetwork
    pieces: list[tuple[float, bytes]] = attrs.field(factory=list)
    lost: Any = None

    def dataReceived(self, data: bytes) -> None:
        self.pieces.append((self.network.clock.seconds(), data))

    def connectionLost(self, reason: Any = protocol.connectionDone) -> None:
        self.lost = reason.type

    @property
    def data(self) -> bytes:
        return b"".join(data for _, data in self.pieces)


class NetworkCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.make(seed=1)

    def make(self, **settings: Any) -> None:
        self.network = VirtualNetwork(Clock(), **settings)
        self.served: list[Notes] = []
        self.failures: list[Any] = []
        factory = protocol.ServerFactory.forProtocol(self._serve)
        factory.noisy = False
        self.network.host("server").listenTCP(PORT, factory)

    def _serve(self) -> Notes:
        self.served.append(Notes(self.network))
        return self.served[-1]

    def connect(self, name: str = "client", to: str = "server", port: int = PORT, timeout: float = 3) -> Notes:
        made = Notes(self.network)
        factory = protocol.ClientFactory.forProtocol(lambda: made)
        factory.noisy = False
        factory.clientConnectionFailed = lambda _, reason: self.failures.append(reason.type)
        self.network.host(name).connectTCP(to, port, factory, timeout)
        self.run_for(0.01)
        return made

    def run_for(self, seconds: float) -> None:
        for _ in range(round(seconds * 1000)):
            self.network.clock.advance(0.001)


class DeliveryTests(NetworkCase):
    def test_bytes_arrive_in_order_late_and_in_pieces(self) -> None:
        client = self.connect()
        words = [b"%06d" % number for number in range(200)]
        began = self.network.clock.seconds()
        for word in words:
            client.transport.write(word)
        self.run_for(0.5)
        (server,) = self.served
        self.assertEqual(server.data, b"".join(words))
        self.assertGreater(len(server.pieces), 220)
        self.assertGreater(server.pieces[0][0], began)

    def test_connections_overtake_each_other(self) -> None:
        orders = set()
        for _ in range(20):
            first, second = self.connect("a"), self.connect("b")
            first.transport.write(b"x")
            second.transport.write(b"y")
            self.run_for(0.01)
            orders.add(self.served[-2].pieces[0][0] <= self.served[-1].pieces[0][0])
        self.assertEqual(orders, {True, False})

    def test_one_seed_is_one_history(self) -> None:
        histories = []
        for seed in (5, 5, 6):
            self.make(seed=seed)
            client = self.connect()
            for number in range(50):
                client.transport.write(b"%d" % number * 9)
            self.run_for(0.2)
            histories.append(self.served[0].pieces)
        self.assertEqual(histories[0], histories[1])
        self.assertNotEqual(histories[0], histories[2])

    def test_full_transport_pauses_its_producer_until_the_peer_reads(self) -> None:
        client = self.connect()
        calls: list[str] = []

        class Producer:
            def pauseProducing(self) -> None:
                calls.append("pause")

            def resumeProducing(self) -> None:
                calls.append("resume")

            def stopProducing(self) -> None:
                calls.append("stop")

        self.served[0].transport.pauseProducing()
        client.transport.registerProducer(Producer(), True)
        client.transport.write(bytes(BUFFER_BYTES + 1))
        self.run_for(0.1)
        self.assertEqual(calls, ["pause"])
        self.served[0].transport.resumeProducing()
        self.run_for(0.1)
        client.transport.abortConnection()
        self.assertEqual((calls, len(self.served[0].data)), (["pause", "resume", "stop"], BUFFER_BYTES + 1))

    def test_hosts_and_transports_are_what_twisted_asks_for(self) -> None:
        client = self.connect()
        host = self.network.host("client")
        self.assertTrue(verifyObject(interfaces.IReactorTime, host) and verifyObject(interfaces.IReactorTCP, host))
        self.assertTrue(verifyObject(interfaces.ITCPTransport, client.transport))


class EndTests(NetworkCase):
    def test_close_comes_behind_what_was_written(self) -> None:
        client = self.connect()
        client.transport.write(b"last words")
        client.transport.loseConnection()
        self.run_for(0.1)
        self.assertEqual((self.served[0].data, self.served[0].lost), (b"last words", error.ConnectionDone))
        self.assertIs(client.lost, error.ConnectionDone)

    def test_abort_behind_a_cut_is_noticed_by_who_writes_when_that_is_healed(self) -> None:
        client = self.connect()
        self.network.cut("server", "client")
        self.network.cut("client", "server")
        self.served[0].transport.abortConnection()
        client.transport.write(b"x")
        self.run_for(1)
        self.assertIsNone(client.lost)
        self.network.heal("server", "client")
        self.network.heal("client", "server")
        self.run_for(1)
        self.assertIs(client.lost, error.ConnectionLost)

    def test_abort_and_reset_lose_what_is_on_its_way(self) -> None:
        for end in ("abort", "reset"):
            client = self.connect()
            client.transport.write(b"never seen")
            if end == "abort":
                client.transport.abortConnection()
            else:
                self.network.reset("client", "server")
            self.run_for(0.1)
            self.assertEqual((self.served[-1].data, self.served[-1].lost), (b"", error.ConnectionLost))
            self.assertTrue(client.lost)

    def test_port_that_nobody_has_refuses(self) -> None:
        self.connect(port=PORT + 1)
        self.assertEqual(self.failures, [error.ConnectionRefusedError])
        with self.assertRaises(error.CannotListenError):
            self.network.host("server").listenTCP(PORT, protocol.ServerFactory())


class CutTests(NetworkCase):
    def test_cut_link_keeps_bytes_and_connections_until_it_is_healed(self) -> None:
        client, other = self.connect(), self.connect("other")
        self.network.cut("client", "server")
        client.transport.write(b"waits")
        other.transport.write(b"passes")
        self.run_for(5)
        self.assertEqual([one.data for one in self.served], [b"", b"passes"])
        self.assertEqual(self.network.connections("client", "server"), 1)
        self.network.heal("client", "server")
        self.run_for(0.1)
        self.assertEqual(self.served[0].data, b"waits")

    def test_attempt_over_a_cut_link_times_out_or_arrives_late(self) -> None:
        self.network.cut("client", "server")
        self.connect(timeout=1)
        self.run_for(1.1)
        self.assertEqual((self.failures, self.served), ([error.TimeoutError], []))
        self.connect(timeout=3)
        self.network.heal("client", "server")
        self.run_for(0.5)
        self.assertEqual(len(self.served), 1)

    def test_peers_of_a_vanished_host_keep_half_open_connections(self) -> None:
        client = self.connect()
        host = self.network.host("server")
        host.callLater(1, self.fail)
        host.vanish()
        client.transport.write(b"to nobody")
        self.run_for(2)
        self.assertEqual((self.served[0].data, client.lost), (b"", None))
        self.connect(timeout=1)
        self.run_for(1.1)
        self.assertEqual(self.failures, [error.TimeoutError])
        client.transport.write(b"to nobody")
        self.network.boot("server")
        self.connect()
        self.assertEqual(self.failures, [error.TimeoutError, error.ConnectionRefusedError])
        self.run_for(1)
        self.assertEqual(client.lost, error.ConnectionLost)

    def test_process_that_is_killed_sends_what_it_wrote_and_closes(self) -> None:
        client = self.connect()
        self.served[0].transport.write(b"last words")
        host = self.network.host("server")
        host.callLater(0, self.fail)
        host.kill()
        self.run_for(1)
        self.assertEqual((client.data, client.lost), (b"last words", error.ConnectionDone))
        self.connect()
        self.assertEqual(self.failures, [error.ConnectionRefusedError])

    def test_link_cut_in_one_direction(self) -> None:
        client = self.connect()
        self.network.cut_one_way("server", "client")
        client.transport.write(b"heard")
        self.served[0].transport.write(b"not heard")
        self.run_for(5)
        self.assertEqual((self.served[0].data, client.data), (b"heard", b""))
        self.network.heal("client", "server")
        self.run_for(0.1)
        self.assertEqual(client.data, b"not heard")

    def test_paused_process_does_nothing_and_goes_on_with_all_that_came(self) -> None:
        client, host, calls = self.connect(), self.network.host("server"), []
        host.callLater(1, calls.append, "timer")
        host.pause()
        client.transport.write(b"while paused")
        self.run_for(5)
        self.assertEqual((self.served[0].data, calls), (b"", []))
        host.resume()
        self.run_for(0.1)
        self.assertEqual((self.served[0].data, calls), (b"while paused", ["timer"]))

    def test_no_clock_of_a_suspended_host_counts_the_time(self) -> None:
        client, host, calls = self.connect(), self.network.host("server"), []
        began = [host.seconds(), host.time_of_day(), host.boot_seconds()]

        def passed() -> list[float]:
            now = [host.seconds(), host.time_of_day(), host.boot_seconds()]
            return [round(one - other, 3) for one, other in zip(now, began, strict=True)]

        host.callLater(3, calls.append, "timer")
        self.run_for(1)
        host.suspend()
        client.transport.write(b"while suspended")
        self.run_for(50)
        self.assertEqual((passed(), host.is_suspended, self.served[0].data), ([1, 1, 1], True, b""))
        host.wake()
        self.run_for(1)
        self.assertEqual((passed(), host.is_suspended, self.served[0].data), ([2, 2, 2], False, b"while suspended"))
        self.assertEqual(calls, [])
        self.run_for(1.5)
        self.assertEqual(calls, ["timer"])

    def test_timers_follow_the_rate_of_their_hosts_clock(self) -> None:
        host, calls = self.network.host("server"), []
        began = host.seconds()
        for seconds in (1, 100, 200):
            host.callLater(seconds, calls.append, seconds)
        host.set_clock(rate=2.0)
        self.run_for(51)
        self.assertEqual((calls, round(host.seconds() - began)), ([1, 100], 102))
        self.run_for(50)
        self.assertEqual(calls, [1, 100, 200])

    def test_a_clock_that_is_set_moves_no_timer(self) -> None:
        host, calls = self.network.host("server"), []
        began, shown = host.seconds(), host.time_of_day()
        host.callLater(100, calls.append, 100)
        host.set_clock(jump=-3600)
        self.run_for(99)
        self.assertEqual((calls, round(host.time_of_day() - shown)), ([], 99 - 3600))
        self.run_for(2)
        self.assertEqual((calls, round(host.seconds() - began)), ([100], 101))
