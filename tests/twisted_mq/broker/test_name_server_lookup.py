"""Name servers that are looked up: pages and names, failures, changes; and a broker that registers where they say."""

from __future__ import annotations

from typing import Any

from twisted.internet import defer, reactor
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.resource import Resource
from twisted.web.server import Site

from tests.twisted_mq.broker.test_broker_service import BrokerServiceCase
from twisted_mq.broker.name_server_lookup import NameServerLookUp, by_name
from twisted_mq.routing.errors import NameServerUnreachable


class LookUpTest(SynchronousTestCase):
    def setUp(self) -> None:
        self.servers = ["old:9876"]
        self.changes: list[list[str]] = []
        self.found: list[str] | Exception = ["a:9876", "b:9876"]

    async def answer(self) -> list[str]:
        if isinstance(self.found, Exception):
            raise self.found
        return self.found

    def look(self, times: int = 1) -> None:
        look_up = NameServerLookUp(self.answer, self.servers, lambda: self.changes.append(list(self.servers)))
        for _ in range(times):
            self.successResultOf(defer.ensureDeferred(look_up.look()))

    def test_a_change_is_told_once(self) -> None:
        self.look(2)
        self.assertEqual(self.servers, ["a:9876", "b:9876"])
        self.assertEqual(self.changes, [["a:9876", "b:9876"]])

    def test_what_fails_or_is_empty_changes_nothing(self) -> None:
        for found in (NameServerUnreachable({"page": "no"}), OSError("no such host"), ValueError("no port"), []):
            self.found = found
            self.look()
        self.assertEqual((self.servers, self.changes), (["old:9876"], []))

    def test_a_name_stands_for_all_its_addresses(self) -> None:
        async def found(host: str, addresses: dict[str, list[str]]) -> list[str]:
            return addresses[host]

        addresses = {"mq.example.org": ["192.0.2.8", "192.0.2.7"]}
        look = by_name(["mq.example.org:9876"], lambda host: defer.ensureDeferred(found(host, addresses)))
        self.found = self.successResultOf(defer.ensureDeferred(look()))
        self.look()
        self.assertEqual(self.servers, ["192.0.2.7:9876", "192.0.2.8:9876"])


class Page(Resource):
    isLeaf = True
    text = b""
    asked: bytes = b""

    def render_GET(self, request: Any) -> bytes:
        self.asked = request.path
        return self.text


class AddressServerTest(BrokerServiceCase):
    async def test_a_broker_registers_where_the_page_says_and_follows_its_changes(self) -> None:
        first = self.namesrv()
        page = Page()
        page.text = b"127.0.0.1:%d\n" % first.port
        server = reactor.listenTCP(0, Site(page), interface="127.0.0.1")  # type: ignore[attr-defined]
        self.addCleanup(server.stopListening)
        broker = await self.start(
            fetch_namesrv_addr_by_address_server=True, fetch_namesrv_addr_interval=50,
            namesrv_domain=f"127.0.0.1:{server.getHost().port}",
        )  # fmt: skip
        await self.until(lambda: broker.registration.is_known)
        self.assertEqual(page.asked, b"/rocketmq/nsaddr")
        self.assertEqual(await self.route(first.port, "TBW102"), 0)
        await first.stopService()
        second = self.namesrv()
        page.text = b"127.0.0.1:%d" % second.port
        await self.until(lambda: broker.registration.name_servers == [f"127.0.0.1:{second.port}"])
        await self.until(lambda: broker.registration.is_known)
        self.assertEqual(await self.route(second.port, "TBW102"), 0)

    async def test_names_are_looked_up_where_that_is_asked_for(self) -> None:
        name_server = self.namesrv()
        broker = await self.start(
            fetch_name_srv_addr_by_dns_lookup=True, namesrv_addr=f"localhost:{name_server.port}",
            update_name_server_addr_period=50,
        )  # fmt: skip
        await self.until(lambda: broker.registration.name_servers == [f"127.0.0.1:{name_server.port}"])
        await self.until(lambda: broker.registration.is_known)
        self.assertEqual(await self.route(name_server.port, "TBW102"), 0)
