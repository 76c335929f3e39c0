"""Connections of pages: slow requests end, and a host with many connections does not block others."""

from __future__ import annotations

from twisted.internet.address import IPv4Address
from twisted.internet.error import ConnectionAborted
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.http import Request
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET

from twisted_mq.web_bounds import MOST_CONNECTIONS, REQUEST_SECONDS, BoundedChannel, BoundedRequest, BoundedSite

WHOLE = b"GET /health HTTP/1.1\r\nHost: h\r\n\r\n"


class Transport(StringTransport):
    channel: BoundedChannel

    def abortConnection(self) -> None:
        self.disconnecting = True
        self.channel.connectionLost(Failure(ConnectionAborted()))


class Slow(Resource):
    isLeaf = True

    def render_GET(self, request: Request) -> int:
        return NOT_DONE_YET


class Health(Resource):
    isLeaf = True

    def render_GET(self, request: Request) -> bytes:
        return b"well"


class BoundsTest(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        root = Resource()
        root.putChild(b"health", Health())
        root.putChild(b"slow", Slow())
        self.site = BoundedSite(root, timeout=30.0, reactor=self.clock)
        self.site.startFactory()
        self.addCleanup(self.site.stopFactory)

    def connect(self, host: str = "10.0.0.1", data: bytes = b"") -> Transport:
        address = IPv4Address("TCP", host, 1)
        channel = self.site.buildProtocol(address)
        assert isinstance(channel, BoundedChannel)
        transport = Transport(peerAddress=address)
        transport.channel = channel
        channel.makeConnection(transport)
        channel.dataReceived(data)
        return transport

    def dribble(self, transport: Transport, seconds: float) -> None:
        for _ in range(int(seconds)):
            self.clock.advance(1)
            if not transport.disconnecting:
                transport.channel.dataReceived(b"X-A: b\r\n")

    def test_request_that_comes_in_drops_ends_in_its_time(self) -> None:
        slow = self.connect(data=b"GET /health HTTP/1.1\r\n")
        self.dribble(slow, REQUEST_SECONDS - 1)
        self.assertFalse(slow.disconnecting)
        self.dribble(slow, 1)
        self.assertTrue(slow.disconnecting)

    def test_later_request_of_a_connection_has_the_same_time(self) -> None:
        slow = self.connect(data=WHOLE)
        self.assertIn(b"well", slow.value())
        self.dribble(slow, 2)
        self.clock.advance(REQUEST_SECONDS)
        self.assertTrue(slow.disconnecting)

    def test_answer_may_take_longer_than_a_request(self) -> None:
        waiting = self.connect(data=WHOLE.replace(b"health", b"slow"))
        self.clock.advance(REQUEST_SECONDS * 10)
        self.assertFalse(waiting.disconnecting)

    def test_who_opens_many_connections_keeps_nobody_out(self) -> None:
        honest = self.connect("10.0.0.2")
        many = [self.connect(data=b"GET /") for _ in range(MOST_CONNECTIONS * 2)]
        self.assertEqual(len(self.site.connections), MOST_CONNECTIONS)
        self.assertEqual([one.disconnecting for one in many], [True] * (MOST_CONNECTIONS + 1) + [False] * 63)
        for transport in (honest, self.connect("10.0.0.1")):
            transport.channel.dataReceived(WHOLE)
            self.assertIn(b"well", transport.value())

    def test_those_that_wait_for_an_answer_are_cut_last(self) -> None:
        asked = [self.connect(data=WHOLE.replace(b"health", b"slow")) for _ in range(MOST_CONNECTIONS - 1)]
        self.connect("10.0.0.2", b"GET /")
        self.connect("10.0.0.3", b"GET /")
        self.assertFalse(any(one.disconnecting for one in asked))

    def test_forms_of_too_many_fields_or_of_several_parts_are_cut_unread(self) -> None:
        self.site.requestFactory = FormRequest
        for kind, form in (
            (b"application/x-www-form-urlencoded", b"a=b&" * 501),
            (b"multipart/form-data; boundary=x", b"--x--"),
        ):
            head = b"POST /health HTTP/1.1\r\nHost: h\r\ncontent-type: %s\r\ncontent-length: %d\r\n\r\n" % (
                kind,
                len(form),
            )
            self.assertTrue(self.connect(data=head + form).disconnecting)
        few = b"a=b&c=d"
        head = b"POST /health HTTP/1.1\r\nHost: h\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-length: 7\r\n\r\n"
        self.assertFalse(self.connect(data=head + few).disconnecting)

    def test_so_many_requests_in_one_read_are_answered(self) -> None:
        some, many = self.connect(data=WHOLE * 32), self.connect(data=WHOLE * 33)
        self.assertEqual((some.value().count(b"well"), some.disconnecting), (32, False))
        self.assertEqual((many.value().count(b"well"), many.disconnecting), (32, True))
        some.channel.dataReceived(WHOLE)
        self.assertEqual(some.value().count(b"well"), 33)

    def test_pages_without_forms_take_no_body(self) -> None:
        with_body = self.connect(data=b"POST /health HTTP/1.1\r\nHost: h\r\ncontent-length: 1\r\n\r\nx")
        chunked = self.connect(data=b"POST /health HTTP/1.1\r\nHost: h\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n")
        self.assertTrue(with_body.disconnecting and chunked.disconnecting)


class FormRequest(BoundedRequest):
    most_bytes = 10_000
