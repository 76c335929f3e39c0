"""The proxy between a client and a server: bytes go on as they came, frames are kept, routes lead back to it."""

from __future__ import annotations

from collections.abc import Iterable

from twisted.internet.address import IPv4Address
from twisted.internet.testing import MemoryReactorClock, StringTransport
from twisted.trial.unittest import SynchronousTestCase

from tests.support.captures import frame_index, frames
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.framing import FrameDecoder, encode_frame
from twisted_mq.recording.advertised import Advertised, RouteRewrite
from twisted_mq.recording.proxy import MOST_CONNECTIONS, ProxyFactory, Side

SERVER = ("10.0.0.1", 9876)
NAME = b"10.0.0.7:40000>10.0.0.1:9876"


def unchanged(from_client: bool, frame: bytes) -> bytes:
    return frame


class Transport(StringTransport):
    """A transport of which the end can be seen."""

    def loseConnection(self) -> None:
        self.disconnecting = True


class ProxyTests(SynchronousTestCase):
    """A client's side and a server's, joined as the factory joins them."""

    def setUp(self) -> None:
        self.kept: list[tuple[bool, bytes, bytes]] = []

    def pair(self, rewrite: object = unchanged) -> tuple[Side, Side]:
        sides = [Side(from_client, self.keep, rewrite) for from_client in (True, False)]  # type: ignore[arg-type]
        for side in sides:
            side.makeConnection(Transport())
        return sides[0], sides[1]

    def joined(self, rewrite: object = unchanged) -> tuple[Side, Side]:
        client, server = self.pair(rewrite)
        server.joined(client, NAME)
        client.joined(server, NAME)
        return client, server

    def keep(self, from_client: bool, connection: bytes, frame: bytes) -> None:
        self.kept.append((from_client, connection, frame))

    def test_frames_are_kept_and_bytes_go_on_as_they_came(self) -> None:
        """Whatever the pieces in which they arrive."""
        client, server = self.joined()
        data, index = frames("producer_sync"), frame_index("producer_sync")
        sent = {True: b"", False: b""}
        for one in index:
            from_client = one["direction"].startswith("client")
            whole = data[one["offset"] : one["offset"] + one["length"]]
            sent[from_client] += whole
            for piece in pieces(whole, 50):
                (client if from_client else server).dataReceived(piece)
        self.assertEqual(b"".join(frame for *_, frame in self.kept), data)
        self.assertEqual({name for _, name, _ in self.kept}, {NAME})
        self.assertEqual(server.transport.value(), sent[True])
        self.assertEqual(client.transport.value(), sent[False])

    def test_what_comes_before_the_server_is_there_waits(self) -> None:
        client, server = self.pair()
        frame = encode_frame(RemotingCommand.request(RequestCode.HEART_BEAT, {}))
        client.dataReceived(frame)
        server.joined(client, NAME)
        client.joined(server, NAME)
        self.assertEqual(server.transport.value(), frame)
        self.assertEqual(len(self.kept), 1)

    def test_what_is_no_frames_is_forwarded_without_a_record(self) -> None:
        client, server = self.joined()
        for data in (b"\x16\x03\x01 hello of TLS", b" and more"):
            client.dataReceived(data)
        self.assertEqual(server.transport.value(), b"\x16\x03\x01 hello of TLS and more")
        self.assertEqual(self.kept, [])

    def test_nothing_is_read_before_the_other_side_is_there(self) -> None:
        client, server = self.pair()
        states = [client.transport.producerState]
        server.joined(client, NAME)
        client.joined(server, NAME)
        self.assertEqual([*states, client.transport.producerState], ["paused", "producing"])

    def test_clients_past_the_bound_are_refused_until_one_leaves(self) -> None:
        factory = ProxyFactory(MemoryReactorClock(), ("127.0.0.1", 9876), self.keep, lambda: unchanged)
        address = IPv4Address("TCP", "10.0.0.7", 40000)
        clients = [factory.buildProtocol(address) for _ in range(MOST_CONNECTIONS)]
        self.assertIsNone(factory.buildProtocol(address))
        assert clients[0] is not None
        clients[0].connectionLost()
        self.assertIsNotNone(factory.buildProtocol(address))

    def test_each_end_ends_the_other(self) -> None:
        for which in (0, 1):
            sides = self.joined()
            sides[which].connectionLost()
            self.assertTrue(sides[1 - which].transport.disconnecting)

    def test_a_client_that_is_gone_before_the_server_is_there(self) -> None:
        client, server = self.pair()
        client.connectionLost()
        server.joined(client, NAME)
        client.joined(server, NAME)
        self.assertTrue(server.transport.disconnecting)

    def test_slow_peers_are_waited_for(self) -> None:
        client, server = self.joined()
        self.assertIs(server.transport.producer, client.transport)
        self.assertIs(client.transport.producer, server.transport)

    def test_the_factory_connects_with_the_server(self) -> None:
        reactor = MemoryReactorClock()
        factory = ProxyFactory(reactor, ("127.0.0.1", 9876), self.keep, lambda: unchanged)
        client = factory.buildProtocol(IPv4Address("TCP", "10.0.0.7", 40000))
        assert client is not None
        client.makeConnection(Transport())
        host, port, connecting, *_ = reactor.tcpClients[0]
        server_transport = Transport()
        connecting.buildProtocol(None).makeConnection(server_transport)
        client.dataReceived(encode_frame(RemotingCommand.request(RequestCode.HEART_BEAT, {})))
        self.assertEqual((host, port), ("127.0.0.1", 9876))
        self.assertEqual([name for _, name, _ in self.kept], [b"10.0.0.7:40000>127.0.0.1:9876"])
        self.assertEqual(server_transport.value(), self.kept[0][2])


class Reactor(MemoryReactorClock):
    """Takes sockets that listen, and closes them."""

    def __init__(self) -> None:
        super().__init__()
        self.adopted: list[int] = []

    def adoptStreamPort(self, fileDescriptor: int, addressFamily: object, factory: object) -> None:
        self.adopted.append(fileDescriptor)


class AdvertisedTests(SynchronousTestCase):
    """Answers about routes name proxies; nothing else changes."""

    def setUp(self) -> None:
        self.reactor = Reactor()
        self.asked_for: list[tuple[str, int]] = []

    def factory_for(self, address: tuple[str, int]) -> ProxyFactory:
        self.asked_for.append(address)
        return ProxyFactory(self.reactor, address, lambda *seen: None, lambda: unchanged)

    def test_addresses_in_answers_become_those_of_proxies(self) -> None:
        rewrite = RouteRewrite(lambda address: f"127.0.0.1:{address.rpartition(':')[2]}")
        request = RemotingCommand.request(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "T"})
        request.opaque = 7
        asked = encode_frame(request)
        body = b'{"brokerDatas":[{"brokerAddrs":{0:"10.0.0.1:10911",1:"[2001:db8::1]:10921"},"brokerName":"a"}]}'
        answer = RemotingCommand(code=0, opaque=7, flag=1, body=body)
        self.assertEqual(rewrite(True, asked), asked)
        (changed,) = FrameDecoder().receive_data(rewrite(False, encode_frame(answer)))
        self.assertEqual(
            changed.body,
            b'{"brokerDatas":[{"brokerAddrs":{0:"127.0.0.1:10911",1:"127.0.0.1:10921"},"brokerName":"a"}]}',
        )
        again = encode_frame(answer)
        self.assertEqual(rewrite(False, again), again, "an answer to nothing that was asked")

    def test_other_answers_stay(self) -> None:
        rewrite = RouteRewrite(lambda address: "changed:1")
        rewrite(True, encode_frame(RemotingCommand.request(RequestCode.GET_BROKER_CLUSTER_INFO, {})))
        other = encode_frame(RemotingCommand(code=0, opaque=99, flag=1, body=b'{"a":"10.0.0.1:10911"}'))
        self.assertEqual(rewrite(False, other), other)
        self.assertEqual(rewrite(False, b"\0\0\0\x04\0\0\0\0"), b"\0\0\0\x04\0\0\0\0")

    def test_each_server_has_one_listener_on_loopback(self) -> None:
        advertised = Advertised(self.reactor, self.factory_for)
        addresses = ("10.0.0.1:10911", "[2001:db8::1]:10921", "10.0.0.1:10911")
        first, other, again = map(advertised.proxy_of, addresses)
        self.assertEqual((first == again, first == other), (True, False))
        self.assertTrue(first.startswith("127.0.0.1:"))
        self.assertEqual(self.asked_for, [("10.0.0.1", 10911), ("2001:db8::1", 10921)])
        self.assertEqual(len(self.reactor.adopted), 2)


def pieces(data: bytes, size: int) -> Iterable[bytes]:
    return (data[begin : begin + size] for begin in range(0, len(data), size))
