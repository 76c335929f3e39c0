"""Visitor of a console without a browser: requests over real sockets of the loopback, with the received cookie."""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Mapping
from io import BytesIO
from typing import Any

import attrs
from twisted.internet import reactor as global_reactor
from twisted.internet.task import deferLater
from twisted.trial.unittest import TestCase
from twisted.web.client import Agent, FileBodyProducer, HTTPConnectionPool, readBody
from twisted.web.http_headers import Headers

from twisted_mq.admin.sending import started_producer
from twisted_mq.console.service import ConsoleService
from twisted_mq.console.settings import ConsoleSettings
from twisted_mq.protocol.messages.message import Message
from twisted_mq.testing import EmbeddedCluster
from twisted_mq.testing.stored import messages_of

reactor: Any = global_reactor
FORM = "application/x-www-form-urlencoded"


@attrs.frozen
class Reply:
    """Answer of the console."""

    status: int
    headers: Headers
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def words(self) -> str:
        """The text of a page without its tags, blanks made single."""
        return " ".join(re.sub(r"<[^>]*>", " ", self.text).split())

    def header(self, name: str) -> str | None:
        values = self.headers.getRawHeaders(name)
        return None if values is None else values[0]

    @property
    def form_key(self) -> str:
        found = re.search(r'name="form_key" value="([^"]+)"', self.text)
        assert found is not None, self.words
        return found[1]


class ConsoleCase(TestCase):
    """A cluster with a console, without a login."""

    timeout = 60
    broker_options: Mapping[str, Any] = {}
    namesrv_options: Mapping[str, Any] = {}
    console_options: Mapping[str, Any] = {}

    async def setUp(self) -> None:
        options = {"broker_options": self.broker_options, "namesrv_options": self.namesrv_options}
        self.cluster = await EmbeddedCluster(reactor, **options).start()
        self.addCleanup(self.cluster.stop)
        self.invitations: list[str] = []
        settings = ConsoleSettings((self.cluster.name_server,), port=0, **self.console_options)
        self.console = ConsoleService(settings, reactor, self.invitations.append)
        self.console.startService()
        self.addCleanup(self.console.stopService)
        self.console.invite()
        self.pool = HTTPConnectionPool(reactor)
        self.addCleanup(self.pool.closeCachedConnections)
        self.agent = Agent(reactor, pool=self.pool)
        self.cookie: str | None = None

    @property
    def token(self) -> str:
        """The last one that was announced."""
        return self.invitations[-1].partition("#")[2]

    async def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Reply:
        """Send a request; names of headers have underscores."""
        sent = {name.replace("_", "-"): [value] for name, value in headers.items()}
        if self.cookie is not None:
            sent["cookie"] = [self.cookie]
        producer = None if body is None else FileBodyProducer(BytesIO(body))
        url = f"{self.console.url.rstrip('/')}{path}".encode()
        answer = await self.agent.request(method.encode(), url, Headers(sent), producer)
        return Reply(answer.code, answer.headers, await readBody(answer))

    async def get(self, path: str, **fields: object) -> Reply:
        query = urllib.parse.urlencode(fields)
        return await self.ask("GET", f"{path}?{query}" if query else path)

    async def post(self, path: str, fields: Mapping[str, object], **headers: str) -> Reply:
        """A form as it stands; `submit` adds the key of a page."""
        body = urllib.parse.urlencode(fields, doseq=True).encode()
        return await self.ask("POST", path, body, content_type=FORM, **headers)

    async def submit(self, path: str, **fields: object) -> Reply:
        """A form of a page of this session; the page that it leads to."""
        key = (await self.get("/")).form_key
        reply = await self.post(path, {"form_key": key, **fields})
        return reply if reply.status != 303 else await self.ask("GET", reply.header("location") or "")

    async def log_in(self, **fields: str) -> Reply:
        """By the last token, unless other fields are given."""
        page = await self.get("/login")
        reply = await self.post("/login", {"form_key": page.form_key, **(fields or {"token": self.token})})
        cookie = reply.header("set-cookie")
        if cookie is not None:
            self.cookie = cookie.partition(";")[0]
        return reply

    async def send(self, *messages: Message) -> list[str]:
        """The offset ids of what was sent."""
        admin = self.console.admin(None)
        try:
            async with started_producer(admin, "shop") as producer:
                return [(await producer.send(message)).offset_msg_id for message in messages]
        finally:
            await admin.client.close()

    def stored(self, topic: str) -> Any:
        """Return the broker's messages of a topic."""
        return messages_of(self.cluster.broker.controller.store, topic)

    async def wait(self, holds: Any) -> None:
        """Until something holds; the test's own time ends a wait without hope."""
        while not holds():
            await deferLater(reactor, 0.02)

    async def wait_route(self, topic: str) -> None:
        await self.wait(lambda: topic in self.cluster.namesrv.routes.topics)
