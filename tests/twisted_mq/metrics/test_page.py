"""The page of metrics: what takes long to collect is not collected anew for each request."""

from __future__ import annotations

from twisted.internet import defer
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.http import INTERNAL_SERVER_ERROR
from twisted.web.test.requesthelper import DummyRequest

from twisted_mq.metrics.page import LONG_SECONDS, REST, MetricsPage


class MetricsPageCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.collecting: list[defer.Deferred[bytes]] = []
        self.page = MetricsPage(self._text, self.clock.seconds)

    def _text(self) -> defer.Deferred[bytes]:
        self.collecting.append(defer.Deferred())
        return self.collecting[-1]

    def ask(self) -> DummyRequest:
        request = DummyRequest([b"metrics"])
        self.page.render_GET(request)  # type: ignore[arg-type]  # has what a page uses of a request
        return request

    def collect(self, text: bytes, seconds: float) -> DummyRequest:
        """Ask, and have the page collected in that time."""
        request = self.ask()
        self.clock.advance(seconds)
        self.collecting[-1].callback(text)
        return request

    def written(self, request: DummyRequest) -> bytes:
        return b"".join(request.written)

    def test_requests_while_it_is_collected_get_the_same(self) -> None:
        first, second = self.ask(), self.ask()
        self.collecting[0].callback(b"a 1\n")
        self.assertEqual((self.written(first), self.written(second), len(self.collecting)), (b"a 1\n", b"a 1\n", 1))

    def test_a_quick_page_is_collected_for_each_request(self) -> None:
        self.collect(b"a 1\n", LONG_SECONDS - 0.01)
        self.assertEqual(self.written(self.collect(b"a 2\n", 0.0)), b"a 2\n")

    def test_a_long_page_is_served_again_for_a_while(self) -> None:
        self.collect(b"a 1\n", 2.0)
        self.clock.advance(2.0 * REST - 0.01)
        self.assertEqual((self.written(self.ask()), len(self.collecting)), (b"a 1\n", 1))
        self.clock.advance(0.01)
        self.assertEqual(self.written(self.collect(b"a 2\n", 0.0)), b"a 2\n")

    def test_a_failure_is_not_served_again(self) -> None:
        request = self.ask()
        self.clock.advance(2.0)
        self.collecting[0].errback(ValueError("no figures"))
        self.assertEqual((request.responseCode, len(self.flushLoggedErrors(ValueError))), (INTERNAL_SERVER_ERROR, 1))
        self.assertEqual(self.written(self.collect(b"a 2\n", 0.0)), b"a 2\n")
