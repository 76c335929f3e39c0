"""Serves the pages of a supervisor: the metrics of its brokers on one page, and whether all of them are well.

Each request asks the brokers' own pages on 127.0.0.1.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from prometheus_client.core import Metric
from twisted.internet import defer, interfaces
from twisted.python.failure import Failure
from twisted.web.client import Agent, HTTPConnectionPool, _HTTP11ClientFactory, readBody
from twisted.web.http import OK, SERVICE_UNAVAILABLE, Request
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET

from twisted_mq.broker.processes.child import Child, State
from twisted_mq.logs import Logger
from twisted_mq.metrics.family import Family, collected, text_of
from twisted_mq.metrics.joined import joined
from twisted_mq.metrics.page import MetricsPage, PagesSite
from twisted_mq.metrics.process import of_process
from twisted_mq.reactor_threads import InThread
from twisted_mq.remoting.rotation import Rotation
from twisted_mq.turns import Turns, Work

ASK_SECONDS = 10.0
"""The time that one broker may take to answer; after that its part is missing."""

FAMILIES: tuple[Family[Sequence[Child]], ...] = (
    Family("mq_supervised_broker_ready", "gauge", "1 for a broker that is ready", ("broker",),
           lambda children: [((one.name,), float(one.state is State.READY)) for one in children]),
    Family("mq_supervised_broker_restarts_total", "counter", "Processes of a broker after its first", ("broker",),
           lambda children: [((one.name,), one.restarts) for one in children]),
)  # fmt: skip


class _QuietFactory(_HTTP11ClientFactory):
    noisy = False


class BrokerPages:
    """Asks the pages of brokers."""

    log = Logger()

    def __init__(self, children: Sequence[Child], reactor: interfaces.IReactorTime, in_thread: InThread) -> None:
        self._children = children
        self._reactor = reactor
        self._in_thread = in_thread
        self._turns = Turns(Rotation(reactor))
        pool = HTTPConnectionPool(reactor, persistent=False)
        pool._factory = _QuietFactory  # Twisted offers no other way to leave out two log lines a request
        self._agent = Agent(reactor, pool=pool, connectTimeout=ASK_SECONDS)

    async def metrics(self) -> bytes:
        """Return all brokers' metrics on one page, with the supervisor's own. Brokers that do not answer are left out."""
        pages = await self._ask("metrics", [one for one in self._children if one.ports])
        own = await text_of(self._turns, self._in_thread, _own(self._children))
        return await self._in_thread(joined, [("", own), *((child.name, body) for child, _, body in pages)])

    async def complaints(self, path: str) -> list[str]:
        """Return what /health or /ready of each broker says is wrong, after the broker's name."""
        wrong = [
            f"{one.name}: {one.state.value}{f' ({one.why})' if one.why else ''}"
            for one in self._children
            if one.state is not State.READY
        ]
        asked = [one for one in self._children if one.state is State.READY]
        answers = await self._ask(path, asked)
        for child, code, body in answers:
            if code != OK:
                wrong += [f"{child.name}: {reason}" for reason in json.loads(body)["wrong"]]
        answered = {child for child, _, _ in answers}
        return wrong + [f"{child.name}: its metrics page does not answer" for child in asked if child not in answered]

    async def _ask(self, path: str, children: Sequence[Child]) -> list[tuple[Child, int, bytes]]:
        """Return the answers (broker, status, body) of those that answer in time."""
        asked = [defer.ensureDeferred(self._page(child, path)) for child in children]
        for one in asked:
            one.addTimeout(ASK_SECONDS, self._reactor)
        answers = await defer.DeferredList(asked, consumeErrors=True)
        found = []
        for child, (succeeded, answer) in zip(children, answers, strict=True):
            if succeeded:
                found.append((child, *answer))
            else:
                self.log.warn("no /{path} of broker {name}: {e}", path=path, name=child.name, e=answer)
        return found

    async def _page(self, child: Child, path: str) -> tuple[int, bytes]:
        url = f"http://127.0.0.1:{child.ports['metrics']}/{path}"
        response = await self._agent.request(b"GET", url.encode())
        return response.code, await readBody(response)


class JoinedStatePage(Resource):
    """Answers 200 if no broker says that something is wrong, otherwise 503."""

    isLeaf = True
    log = Logger()

    def __init__(self, pages: BrokerPages, path: str) -> None:
        super().__init__()
        self._pages = pages
        self._path = path

    def render_GET(self, request: Request) -> int:
        gone: list[object] = []
        request.notifyFinish().addErrback(gone.append)
        asked = defer.ensureDeferred(self._pages.complaints(self._path))
        asked.addErrback(self._failed)
        asked.addCallback(lambda wrong: None if gone else self._answer(request, wrong))
        return NOT_DONE_YET

    def _failed(self, reason: Failure) -> list[str]:
        self.log.failure("state of brokers not known", reason)
        return ["not known, see the log"]

    def _answer(self, request: Request, wrong: list[str]) -> None:
        request.setResponseCode(SERVICE_UNAVAILABLE if wrong else OK)
        request.setHeader(b"content-type", b"application/json")
        request.write(json.dumps({"ok": not wrong, "wrong": wrong}).encode() + b"\n")
        request.finish()


def _own(children: Sequence[Child]) -> Work[list[Metric]]:
    metrics = yield from collected(children, FAMILIES, {})
    return [*metrics, *of_process()]


def supervisor_site(children: Sequence[Child], reactor: interfaces.IReactorTime, in_thread: InThread) -> PagesSite:
    """Return the site with /metrics, /health and /ready of all brokers."""
    pages = BrokerPages(children, reactor, in_thread)
    states: dict[bytes, Resource] = {path.encode(): JoinedStatePage(pages, path) for path in ("health", "ready")}
    metrics = MetricsPage(lambda: defer.ensureDeferred(pages.metrics()), reactor.seconds)
    return PagesSite({b"metrics": metrics, **states}, reactor)
