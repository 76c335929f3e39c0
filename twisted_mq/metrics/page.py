"""Serves a server's metrics: /metrics for Prometheus, /health and /ready for supervisors that start and restart it.

/health is 503 if a restart may help, /ready if the server should get no work now; both give the reasons as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from twisted.internet import defer, interfaces
from twisted.python import failure
from twisted.web.http import INTERNAL_SERVER_ERROR, OK, SERVICE_UNAVAILABLE, Request
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET

from twisted_mq.logs import Logger
from twisted_mq.web_bounds import BoundedSite

IDLE_SECONDS = 30.0
"""The time that a connection may be silent."""
LONG_SECONDS = 0.1
"""The time from which a page is long to collect, and served again for a while."""
REST = 3.0
"""So many times what a long page took to collect, it is served again."""

PAGE = b"text/plain; version=0.0.4; charset=utf-8"

Text = Callable[[], defer.Deferred[bytes]]
Complaints = Callable[[], list[str]]
"""Returns what is wrong; empty if all is well."""


class MetricsPage(Resource):
    """Serves the metrics. Requests that come while metrics are collected, or soon after if that took long, get the same ones."""

    isLeaf = True
    log = Logger()

    def __init__(self, text: Text, seconds: Callable[[], float]) -> None:
        super().__init__()
        self._text = text
        self._seconds = seconds
        self._waiting: list[Request] = []
        self._last, self._until = b"", 0.0

    def render_GET(self, request: Request) -> int:
        self._waiting.append(request)
        request.notifyFinish().addErrback(lambda _: self._waiting.remove(request) if request in self._waiting else None)
        if len(self._waiting) > 1:
            return NOT_DONE_YET
        began = self._seconds()
        if self._last and began < self._until:
            self._answer(OK, PAGE, self._last)
        else:
            defer.maybeDeferred(self._text).addCallbacks(self._collected, self._failed, callbackArgs=(began,))
        return NOT_DONE_YET

    def _collected(self, text: bytes, began: float) -> None:
        now = self._seconds()
        is_long = now - began >= LONG_SECONDS
        self._last, self._until = (text, now + REST * (now - began)) if is_long else (b"", 0.0)
        self._answer(OK, PAGE, text)

    def _failed(self, reason: failure.Failure) -> None:
        self.log.failure("metrics not collected", reason)
        self._answer(INTERNAL_SERVER_ERROR, b"text/plain; charset=utf-8", b"metrics not collected, see the log\n")

    def _answer(self, code: int, kind: bytes, text: bytes) -> None:
        waiting, self._waiting = self._waiting, []
        for request in waiting:
            request.setResponseCode(code)
            request.setHeader(b"content-type", kind)
            request.setHeader(b"content-length", str(len(text)).encode())
            request.write(text)
            request.finish()


class StatePage(Resource):
    """Answers 200 if nothing is wrong, otherwise 503."""

    isLeaf = True

    def __init__(self, complaints: Complaints) -> None:
        super().__init__()
        self._complaints = complaints

    def render_GET(self, request: Request) -> bytes:
        wrong = self._complaints()
        request.setResponseCode(SERVICE_UNAVAILABLE if wrong else OK)
        request.setHeader(b"content-type", b"application/json")
        return json.dumps({"ok": not wrong, "wrong": wrong}).encode() + b"\n"


class PagesSite(BoundedSite):
    """Serves pages by their path, without a log line for each request."""

    def __init__(self, pages: Mapping[bytes, Resource], reactor: interfaces.IReactorTime) -> None:
        root = Resource()
        for path, page in pages.items():
            root.putChild(path, page)
        super().__init__(root, timeout=IDLE_SECONDS, reactor=reactor)
        self.noisy = False

    def log(self, request: Request) -> None:
        """Log nothing: there are too many requests for metrics."""


class MetricsSite(PagesSite):
    """Serves all pages."""

    def __init__(
        self, text: Text, unhealthy: Complaints, not_ready: Complaints, reactor: interfaces.IReactorTime
    ) -> None:
        pages = {
            b"metrics": MetricsPage(text, reactor.seconds),
            b"health": StatePage(unhealthy),
            b"ready": StatePage(not_ready),
        }
        super().__init__(pages, reactor)
