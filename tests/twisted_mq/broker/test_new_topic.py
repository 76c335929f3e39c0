"""The first sends to a topic that they make: answered when a client that asks a name server for its route gets one."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet import defer, reactor
from twisted.internet.task import deferLater

from tests.support.broker import BrokerInMemory, Peer
from tests.twisted_mq.broker.test_broker_service import SEND, BrokerServiceCase
from twisted_mq.broker.service import BrokerService
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.layouts.batch_entry import encode_entry
from twisted_mq.protocol.wire.command import RemotingCommand


class NameServers:
    """Know of changes when a test says so."""

    def __init__(self) -> None:
        self._waiting: list[defer.Deferred[None]] = []

    def known(self) -> defer.Deferred[None]:
        self._waiting.append(defer.Deferred())
        return self._waiting[-1]

    def answer(self) -> None:
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            one.callback(None)


@pytest.fixture
def servers() -> NameServers:
    return NameServers()


def fields(topic: str = "T", properties: str = "UNIQ_KEY\x01K\x02", **more: str) -> dict[str, str]:
    return {"a": "P", "b": topic, "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "1795217217000", "h": "0", "j": "0",
            "i": properties, **more}  # fmt: skip


def send(peer: Peer, topic: str = "T", properties: str = "UNIQ_KEY\x01K\x02") -> None:
    peer.send(RemotingCommand(RequestCode.SEND_MESSAGE_V2, body=b"x", ext_fields=fields(topic, properties)))


def send_batch(peer: Peer) -> None:
    body = encode_entry(0, b"x", b"") * 2
    peer.send(RemotingCommand(RequestCode.SEND_BATCH_MESSAGE, body=body, ext_fields=fields(m="true")))


WAYS: dict[str, Any] = {
    "plain": send,
    "batch": send_batch,
    "half": lambda peer: send(peer, properties="TRAN_MSG\x01true\x02PGROUP\x01P\x02"),
    "level": lambda peer: send(peer, properties="DELAY\x011\x02"),
    "retry": lambda peer: send(peer, "%RETRY%G"),
}


@pytest.mark.parametrize("way", WAYS)
def test_first_sends_are_answered_when_the_name_servers_know_their_topic(servers: NameServers, way: str) -> None:
    broker = BrokerInMemory(parts={"known": servers.known})
    peer = broker.connect()
    WAYS[way](peer)
    assert broker.store.max_physical_offset() > 0
    WAYS[way](peer)
    assert peer.received() == []
    servers.answer()
    assert [one.code for one in peer.received()] == [0, 0]
    WAYS[way](peer)
    assert [one.code for one in peer.received()] == [0]


def test_other_topics_and_refusals_do_not_wait(servers: NameServers) -> None:
    broker = BrokerInMemory(parts={"known": servers.known})
    peer = broker.connect()
    send(peer, "Known")
    servers.answer()
    peer.received()
    send(peer)
    assert peer.ask(RequestCode.SEND_MESSAGE_V2, fields("Known"), b"x").code == 0
    assert peer.ask(RequestCode.SEND_MESSAGE_V2, fields(e="99"), b"x").code == 29
    assert peer.ask(RequestCode.SEND_MESSAGE_V2, fields(), b"").code == 1


def test_durability_and_name_servers_are_both_waited_for(servers: NameServers) -> None:
    broker = BrokerInMemory(parts={"known": servers.known}, flush_disk_type="SYNC_FLUSH", hold_flushes=True)
    for first, second in ((broker.store.flush, servers.answer), (servers.answer, broker.store.flush)):
        peer = broker.connect()
        send(peer, f"T-{first.__name__}")
        first()
        assert peer.received() == []
        second()
        assert [one.code for one in peer.received()] == [0]


def test_a_channel_that_gives_a_first_send_up_leaves_nothing_behind(servers: NameServers) -> None:
    broker = BrokerInMemory(parts={"known": servers.known})
    peer = broker.connect()
    send(peer)
    peer.channel.connectionLost()
    servers.answer()
    other = broker.connect()
    send(other)
    assert [one.code for one in other.received()] == [0]


class RouteTest(BrokerServiceCase):
    """Over sockets, with a name server that takes its time."""

    async def test_who_asks_for_the_route_at_once_gets_it(self) -> None:
        namesrv = self.namesrv()
        table = namesrv.factory.traffic.processors
        register = table[RequestCode.REGISTER_BROKER]
        broker = await self.start(namesrv_addr=f"127.0.0.1:{namesrv.port}")
        table[RequestCode.REGISTER_BROKER] = lambda *asked: deferLater(reactor, 0.2, register, *asked)  # type: ignore[index]
        self.assertEqual((await self.ask(broker.port, 310, SEND, b"x")).code, 0)
        self.assertEqual(await self.route(namesrv.port, "T"), 0)

    async def held_writes(self, broker: BrokerService) -> list[tuple[Any, defer.Deferred[object]]]:
        """The writes of the topics' table behind that of the start: none ends before a test says so."""
        await broker._parts.state.topics_saver.when_saved()
        writes: list[tuple[Any, defer.Deferred[object]]] = []

        def in_thread(write: Any) -> defer.Deferred[object]:
            writes.append((write, defer.Deferred()))
            return writes[-1][1]

        broker._parts.state.topics_saver._in_thread = in_thread
        return writes

    async def test_who_makes_a_topic_is_answered_when_it_is_on_disk(self) -> None:
        """A broker that is killed before that has the message, but no client could pull it."""
        broker = await self.start(register_broker_timeout_mills=5000)
        writes = await self.held_writes(broker)
        asked = [self.ask(broker.port, 310, SEND, b"x") for _ in range(2)]
        for _ in range(200):
            await deferLater(reactor, 0.01)
            if broker.controller.store.max_offset_in_queue("T", 0) == 2:
                break
        for one in asked:
            self.assertNoResult(one)
        ((write, done),) = writes
        done.callback(write())
        self.assertEqual([(await one).code for one in asked], [0, 0])

    async def test_a_topic_that_is_not_written_in_time_makes_no_acknowledgement(self) -> None:
        broker = await self.start(register_broker_timeout_mills=200)
        writes = await self.held_writes(broker)
        answer = await self.ask(broker.port, 310, SEND, b"x")
        said = "changed, but not saved: the broker cannot write its table now"
        self.assertEqual((answer.code, answer.remark), (1, said))
        ((write, done),) = writes
        done.callback(write())

    async def test_a_name_server_that_never_answers_holds_a_first_send_no_longer_than_the_limit(self) -> None:
        namesrv = self.namesrv()
        table = namesrv.factory.traffic.processors
        broker = await self.start(namesrv_addr=f"127.0.0.1:{namesrv.port}", register_broker_timeout_mills=1000)
        table[RequestCode.REGISTER_BROKER] = lambda *asked: defer.Deferred()  # type: ignore[index]
        self.assertEqual((await self.ask(broker.port, 310, SEND, b"x")).code, 0)
        self.assertEqual(len(self.said("not reached, retrying")), 1)
        self.assertEqual((await self.ask(broker.port, 310, SEND | {"b": "U"}, b"x")).code, 0)
