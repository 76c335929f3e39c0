"""Name servers whose addresses come from the environment or from a page."""

from __future__ import annotations

import os
from typing import Any
from unittest import mock

from twisted.internet import defer, reactor
from twisted.trial.unittest import SynchronousTestCase, TestCase
from twisted.web import resource, server

from tests.support.client_case import ClientCase
from twisted_mq.client import ClientOptionIllegal, ClientOptions, Message, NameServerUnreachable, Producer
from twisted_mq.routing.address_server import AddressServer, address_server_url, http_get
from twisted_mq.routing.name_servers import NameServers, given_addresses


class Addresses(SynchronousTestCase):
    def test_argument_counts_before_the_environment_and_that_before_another_source(self) -> None:
        environment = {"NAMESRV_ADDR": "e:1;f:2"}
        self.assertEqual(given_addresses("a:9,b:8", environment), ("a:9", "b:8"))
        self.assertEqual(given_addresses(None, environment), ("e:1", "f:2"))
        self.assertEqual(given_addresses((), {}, elsewhere=True), ())

    def test_without_any_the_error_names_both_ways(self) -> None:
        error = self.assertRaises(ClientOptionIllegal, given_addresses, None, {})
        self.assertIn("host:port", str(error))
        self.assertIn("NAMESRV_ADDR", str(error))

    def test_bad_address_of_the_environment_is_named_as_that(self) -> None:
        error = self.assertRaises(ClientOptionIllegal, given_addresses, None, {"NAMESRV_ADDR": "nonsense"})
        self.assertTrue(str(error).startswith("NAMESRV_ADDR 'nonsense'"))

    def test_pages_are_where_apaches_client_looks(self) -> None:
        self.assertEqual(address_server_url("ns.example"), "http://ns.example:8080/rocketmq/nsaddr")
        self.assertEqual(address_server_url("ns.example:80", "sub", "u"), "http://ns.example:80/rocketmq/sub-u?nofix=1")


class Environment(ClientCase):
    def test_producer_without_an_address_takes_that_of_the_environment(self) -> None:
        self.cluster.add_broker("broker-a", {"T": 1})
        arguments = {**self.client_arguments(), "namesrv": None}
        with mock.patch.dict(os.environ, {"NAMESRV_ADDR": self.cluster.namesrv}):
            producer = Producer(self.clock, "g", **arguments)
        self.run_to_end(producer.start())
        self.run_to_end(producer.send(Message("T", b"x")))


class Page(ClientCase):
    """Name servers of a page, which changes."""

    def setUp(self) -> None:
        super().setUp()
        self.page: Any = self.cluster.namesrv.encode() + b"\nanother line"
        self.cluster.add_broker("broker-a", {"T": 1})
        options = ClientOptions(address_server_domain="ns.example")
        with mock.patch.dict(os.environ):
            os.environ.pop("NAMESRV_ADDR", None)
            self.producer = Producer(
                self.clock, "g", client_options=options, **{**self.client_arguments(), "namesrv": None}
            )
        self.name_servers: NameServers = self.producer.client.name_servers
        self.asked: list[str] = []
        self.name_servers._address_server = AddressServer("http://ns.example/", self.get)
        self.run_to_end(self.producer.start())

    def get(self, url: str) -> defer.Deferred[bytes]:
        self.asked.append(url)
        return defer.execute(lambda: self.page) if isinstance(self.page, bytes) else defer.fail(self.page)

    def test_page_is_asked_before_the_first_question_and_now_and_then(self) -> None:
        self.run_to_end(self.producer.send(Message("T", b"x")))
        self.assertEqual((self.name_servers.addresses, len(self.asked)), (("10.0.0.1:9876",), 1))
        self.page = b"10.0.0.7:9876"
        self.advance(121)
        self.assertEqual((self.name_servers.addresses, len(self.asked)), (("10.0.0.7:9876",), 2))

    def test_page_that_is_not_there_is_named_and_leaves_what_is_known(self) -> None:
        self.page = OSError("no page")
        error = self.run_to_failure(self.producer.send(Message("T", b"x"), timeout_seconds=0.01), NameServerUnreachable)
        self.assertIn("http://ns.example/: no page", str(error))
        self.page = self.cluster.namesrv.encode()
        self.run_to_end(self.producer.send(Message("T", b"x")))
        for page in (OSError("gone"), b"", b"nonsense"):
            self.page = page
            self.advance(121)
        self.assertEqual((self.name_servers.addresses, len(self.asked)), (("10.0.0.1:9876",), 5))


class Http(TestCase):
    timeout = 20

    @defer.inlineCallbacks
    def test_pages_are_got_over_http_and_other_answers_are_failures(self) -> Any:
        root = resource.Resource()
        root.putChild(b"nsaddr", _Text(b"a:1;b:2\n" + b"x" * 100_000))
        site = server.Site(root)
        port = reactor.listenTCP(0, site, interface="127.0.0.1")
        self.addCleanup(port.stopListening)
        get = http_get(reactor, 10)
        url = f"http://127.0.0.1:{port.getHost().port}/"
        page = yield get(url + "nsaddr")
        self.assertEqual((page[:8], len(page)), (b"a:1;b:2\n", 64 * 1024))
        yield self.assertFailure(get(url + "none"), OSError)

    @defer.inlineCallbacks
    def test_page_without_an_end_is_cut(self) -> Any:
        """Behind its first 64 KiB, and where it does not bring them in time."""
        for size, seconds in ((100_000, 10.0), (10, 0.2)):
            endless = _Endless(b"a:1\n" + b"x" * size)
            port = reactor.listenTCP(0, server.Site(endless), interface="127.0.0.1")
            got = http_get(reactor, seconds)(f"http://127.0.0.1:{port.getHost().port}/")
            if size > 64 * 1024:
                self.assertEqual(len((yield got)), 64 * 1024)
            else:
                yield self.assertFailure(got, defer.TimeoutError)
            yield endless.cut
            yield port.stopListening()


class _Endless(resource.Resource):
    """`cut` fires when the client has ended the connection."""

    isLeaf = True

    def __init__(self, text: bytes) -> None:
        super().__init__()
        self._text = text
        self.cut: defer.Deferred[Any] = defer.Deferred()

    def render_GET(self, request: Any) -> int:
        request.notifyFinish().addBoth(lambda _: self.cut.callback(None))
        request.write(self._text)
        return server.NOT_DONE_YET


class _Text(resource.Resource):
    isLeaf = True

    def __init__(self, text: bytes) -> None:
        super().__init__()
        self._text = text

    def render_GET(self, request: Any) -> bytes:
        request.setHeader(b"connection", b"close")
        return self._text
