"""The embedded coordinator for other processes: the contract through kazoo, limits, damaged frames."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
from kazoo.client import KazooClient
from kazoo.exceptions import BadArgumentsError, NoNodeError, UnimplementedError
from kazoo.protocol import serialization
from twisted.internet import defer, endpoints, protocol, reactor

from tests.twisted_mq.coordination import kazoo_case
from tests.twisted_mq.coordination.contract import events_of
from twisted_mq.coordination.interfaces import CoordinationError, Create, Delete, Put
from twisted_mq.coordination.memory import MemoryEnsemble
from twisted_mq.coordination.server import CoordinationService
from twisted_mq.coordination.settings import boot_seconds
from twisted_mq.coordination.tree import Tree


class ServerCase(kazoo_case.KazooCase):
    @defer.inlineCallbacks
    def setUp(self) -> Any:
        self.ensemble = MemoryEnsemble(reactor, monotonic=boot_seconds, tree=Tree(max_nodes=50, max_bytes=1_100_000))
        self.service = CoordinationService(self.ensemble, reactor)
        self.service.startService()
        self.server_port = self.service.port
        yield super().setUp()

    @defer.inlineCallbacks
    def tearDown(self) -> Any:
        yield super().tearDown()
        yield self.service.stopService()
        yield self.service.stopService()
        self.ensemble.stop()


class ServerContractCase(ServerCase, kazoo_case.KazooContract):
    """All of the contract, through kazoo, against a server in the same process."""


class ServerFacesCase(ServerCase):
    """Requests of kazoo that ZooKeeperCoordinator does not send."""

    async def test_single_requests_of_other_clients_are_answered_as_zookeeper_does(self) -> None:
        def ask(client: KazooClient) -> Any:
            created, stat = client.create("/mq/a", b"1", include_data=True)
            changed = client.set("/mq/a", b"22", version=0)
            sequential = client.create("/mq/a/n-", ephemeral=True, sequence=True)
            data, seen = client.get("/mq/a")
            names, parent = client.get_children("/mq", include_data=True)
            client.delete(sequential)
            unknown = outcome(client.get_acls, "/mq")
            missing = outcome(client.get, "/mq/none")
            bad = outcome(client.delete, "/")
            return created, stat.version, changed.version, sequential, data, seen, names, parent, unknown, missing, bad

        created, new, changed, sequential, data, seen, names, parent, *refused = await self.in_client(ask)
        self.assertEqual((created, new, changed, sequential), ("/mq/a", 0, 1, "/mq/a/n-0000000000"))
        self.assertEqual((data, seen.version, seen.dataLength, seen.numChildren, seen.cversion), (b"22", 1, 2, 1, 1))
        self.assertEqual((names, parent.numChildren, parent.ephemeralOwner), (["a"], 1, 0))
        self.assertEqual(refused, [UnimplementedError, NoNodeError, BadArgumentsError])
        self.assertEqual(seen.czxid + 1, seen.mzxid)
        self.assertGreater(seen.ctime, 1_600_000_000_000)

    async def test_credentials_are_ignored_and_that_is_said_once(self) -> None:
        self.service._server._has_ignored = False  # of who cleaned before this test
        with self.assertLogs("twisted_mq.coordination.server", "WARNING") as logged:
            for user in ("mq:secret", "mq:other"):
                one = self.coordinator(auth=user)
                await self.wait(one.start())
        self.assertEqual(
            [record.getMessage() for record in logged.records],
            ["coordinator in memory has no access rights: digest credentials are ignored"],
        )

    async def test_a_full_tree_refuses_and_goes_on(self) -> None:
        one = await self.started()
        told = events_of(one)
        for too_much in ([Create(f"/n{number}") for number in range(60)], [Create("/big", bytes(900_000))]):
            await self.wait(one.commit([Create("/kept", bytes(300_000))]))
            self.assertIn("QuotaExceeded", await self.fails(CoordinationError, one.commit(too_much)))
            await self.wait(one.commit([Put("/kept", b"", 0)]))
            await self.wait(one.commit([Delete("/kept")]))
        self.assertEqual(told, [])

    async def test_the_session_time_is_within_the_limits(self) -> None:
        for asked, granted in ((600.0, 40.0), (0.1, 1.0), (3.0, 3.0)):
            one = self.coordinator(session_seconds=asked)
            await self.wait(one.start())
            self.assertEqual(one.session_seconds, granted)


class Raw(protocol.Protocol):
    """Connection that keeps the bytes of the server."""

    def __init__(self) -> None:
        self.received = b""
        self.ended: defer.Deferred[None] = defer.Deferred()

    def dataReceived(self, data: bytes) -> None:
        self.received += data

    def connectionLost(self, reason: object = None) -> None:
        self.ended.callback(None)


def frame(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


CONNECT = frame(serialization.Connect(0, 0, 2000, 0, bytes(16), False).serialize())


class DamageCase(ServerCase):
    async def connected(self) -> Raw:
        return await self.wait(endpoints.TCP4ClientEndpoint(reactor, "127.0.0.1", self.server_port).connect(
            protocol.Factory.forProtocol(Raw)
        ))  # fmt: skip

    async def test_a_damaged_frame_closes_its_connection_and_no_other(self) -> None:
        one = await self.started()
        told = events_of(one)
        header = bytes([0, 0, 0, 1, 0, 0, 0, 1])
        damaged = {
            "a four-letter word": b"ruok",
            "a length past the limit": CONNECT + (2**20).to_bytes(4, "big"),
            "a negative length": CONNECT + b"\xff\xff\xff\xff",
            "a connect cut short": frame(b"\0\0"),
            "a request cut short": CONNECT + frame(b"\0\0"),
            "a record cut short": CONNECT + frame(header + b"\0\0\0\x05/a"),
            "a text that is none": CONNECT + frame(header + b"\0\0\0\x02/\xff" + bytes(12)),
            "a list without end": CONNECT + frame(header + b"\0\0\0\x02/a" + bytes(4) + b"\x7f\xff\xff\xff"),
            "a multi of unknown parts": CONNECT + frame(bytes([0, 0, 0, 1, 0, 0, 0, 14, 0, 0, 0, 99, 0]) + bytes(4)),
        }
        for name, data in damaged.items():
            with self.subTest(name):
                raw = await self.connected()
                raw.transport.write(data)
                await self.wait(raw.ended)
        self.assertEqual((told, one.holds()), ([], True))
        self.assertEqual(await self.wait(one.children("/")), ())

    async def test_a_wrong_password_is_not_a_session(self) -> None:
        one = await self.started()
        session = one.session_id
        raw = await self.connected()
        raw.transport.write(frame(serialization.Connect(0, 0, 2000, session, b"x" * 16, False).serialize()))
        await self.wait(raw.ended)
        answer, _ = serialization.Connect.deserialize(raw.received, 4)
        self.assertEqual((answer.time_out, answer.session_id, answer.passwd), (0, 0, bytes(16)))
        self.assertTrue(one.holds())

    async def test_who_says_nothing_is_closed(self) -> None:
        self.restrict(first_frame_seconds=0.1)
        raw = await self.connected()
        await self.wait(raw.ended)

    async def test_connections_past_the_limit_are_refused(self) -> None:
        self.restrict(connections=1)
        first, second = await self.connected(), await self.connected()
        await self.wait(second.ended)
        self.assertFalse(first.ended.called)
        first.transport.loseConnection()
        await self.wait(first.ended)
        await self.until(lambda: not self.service._server._connections)

    async def test_sessions_past_the_limit_are_refused(self) -> None:
        self.restrict(sessions=1)
        raw = await self.connected()
        raw.transport.write(CONNECT)
        await self.until(lambda: raw.received)
        raw.transport.abortConnection()
        await self.wait(raw.ended)
        second = await self.connected()
        await self.wait(second.ended)

    async def test_who_watches_too_much_is_closed(self) -> None:
        self.restrict(watches=3)
        raw = await self.connected()
        exists = b"".join(
            frame(bytes([0, 0, 0, 1, 0, 0, 0, 3]) + serialization.Exists(f"/{name}", True).serialize())
            for name in "abcd"
        )
        raw.transport.write(CONNECT + exists)
        await self.wait(raw.ended)

    async def test_who_does_not_read_is_not_read(self) -> None:
        """Its answers stay within the buffers of the connection."""
        self.ensemble.apply([Create("/big", bytes(500_000))], 0)
        raw = await self.connected()
        raw.transport.pauseProducing()
        get = frame(bytes([0, 0, 0, 1, 0, 0, 0, 4]) + serialization.GetData("/big", None).serialize())
        raw.transport.write(CONNECT + get * 1000)
        (connection,) = self.service._server._connections
        await self.until(lambda: connection.paused)
        self.assertLess(len(connection.transport._tempDataBuffer), 10)
        raw.transport.abortConnection()
        await self.wait(raw.ended)

    def restrict(self, **limits: Any) -> None:
        self.service._server.limits = attrs.evolve(self.service._server.limits, **limits)


def outcome(ask: Callable[..., object], *arguments: object) -> type[Exception] | None:
    try:
        ask(*arguments)
    except Exception as error:
        return type(error)
    return None
