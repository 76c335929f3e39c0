"""gRPC producers and consumers of a simulated world, each a process of its own, that tell the observer."""

from __future__ import annotations

import random
from typing import Any

from twisted.internet import defer, task
from twisted.internet.endpoints import TCP4ClientEndpoint
from twisted.internet.error import ConnectError
from twisted.internet.protocol import Factory

from tests.simulation.grpc_link import CallFailed, GrpcLink
from tests.simulation.grpc_observer import GrpcObserver
from tests.simulation.nodes import Node
from tests.simulation.world import World
from twisted_mq.proxy import messages as v2

GRPC_PORT = 8081
OK, NOT_FOUND = v2.Code.OK, v2.Code.MESSAGE_NOT_FOUND
HEARTBEAT_SECONDS = 10.0


class GrpcNode(Node):
    """A client that connects again a second after its connection broke, as Apache's clients do."""

    def __init__(self, world: World, name: str, broker: str, observer: GrpcObserver) -> None:
        super().__init__(world, name)
        self.observer = observer
        self._broker = broker
        self._source = random.Random(world.random.getrandbits(32))
        self._lives = 0
        self.link: GrpcLink | None = None

    def _begin(self) -> None:
        self._lives += 1
        defer.ensureDeferred(self._live(self.host)).addErrback(self._failed)

    def _failed(self, reason: Any) -> None:
        self.observer.broke(f"{self.name} failed: {reason.getTraceback()}")

    def _sleep(self, seconds: float) -> defer.Deferred[None]:
        return task.deferLater(self.host, seconds)  # type: ignore[arg-type, call-overload, no-any-return]

    async def _live(self, host: Any) -> None:
        endpoint = TCP4ClientEndpoint(host, self._broker, GRPC_PORT, timeout=3)
        while self.host is host:
            link = GrpcLink(host, f"{self.name}@{self._lives}")
            link.lost = lambda: self.observer.vanished(self.name)
            try:
                await endpoint.connect(Factory.forProtocol(lambda link=link: link))  # type: ignore[arg-type, misc]
                self.link = link
                await self._settle(link)
                await self._work(link)
            except (CallFailed, ConnectError, defer.CancelledError):
                self.observer.vanished(self.name)
            if link.transport is not None:
                link.transport.loseConnection()
            await self._sleep(1.0)

    async def _settle(self, link: GrpcLink) -> None:
        settled: defer.Deferred[Any] = defer.Deferred()
        stream_id, call = link.open("Telemetry", lambda answer: None if settled.called else settled.callback(answer))
        call.ended.addBoth(lambda result: None if settled.called else settled.errback(CallFailed("no settings")))
        link.tell(stream_id, v2.TelemetryCommand(settings=self.settings()), end=False)
        try:
            await settled.addTimeout(5.0, self.host)  # type: ignore[arg-type]
        except defer.TimeoutError:
            raise CallFailed("no settings") from None

    def settings(self) -> Any:
        raise NotImplementedError

    async def _work(self, link: GrpcLink) -> None:
        raise NotImplementedError


class GrpcProducer(GrpcNode):
    """A producer that sends messages of some lanes (message groups), or without, until it is stopped."""

    def __init__(
        self, world: World, name: str, broker: str, observer: GrpcObserver, topic: str, lanes: list[str]
    ) -> None:
        super().__init__(world, name, broker, observer)
        self._topic = topic
        self._lanes = lanes
        self._count = 0
        self.is_sending = True

    def settings(self) -> Any:
        return v2.Settings(client_type=v2.ClientType.PRODUCER, publishing={"topics": [{"name": self._topic}]})

    async def _work(self, link: GrpcLink) -> None:
        while self.is_sending:
            self._count += 1
            lane = self._source.choice(self._lanes) if self._lanes else ""
            name = f"{lane}-{self._count}" if lane else f"{self.name}/{self._count}"
            system: dict[str, Any] = {"message_id": f"01{self._source.getrandbits(120):030X}", "message_type": 1}
            if lane:
                system |= {"message_group": lane, "message_type": 2}
            message = {"topic": {"name": self._topic}, "body": name.encode(), "system_properties": system}
            (answer,) = await link.call("SendMessage", 3.0, messages=[message]) or [None]
            if answer is not None and answer.status.code == OK:
                self.observer.sent(self._topic, name)
            await self._sleep(self._source.uniform(0.05, 1.0))
        await defer.Deferred()


class GrpcConsumer(GrpcNode):
    """Receives, works for a while on each message, and acknowledges. With `renews` as push consumers do."""

    def __init__(
        self, world: World, name: str, broker: str, observer: GrpcObserver, group: str, *, renews: bool
    ) -> None:
        super().__init__(world, name, broker, observer)
        self._group = group
        self._renews = renews
        self._topic = observer.groups[group]
        self._at_work: list[tuple[str, Any, float]] = []
        """Messages that are renewed. Their acknowledgements are tried again on the next connection."""
        self.hurries = False
        """True if it needs no time for a message."""

    def settings(self) -> Any:
        kind = v2.ClientType.PUSH_CONSUMER if self._renews else v2.ClientType.SIMPLE_CONSUMER
        entry = {"topic": {"name": self._topic}, "expression": {"expression": "*"}}
        return v2.Settings(client_type=kind, subscription={"group": {"name": self._group}, "subscriptions": [entry]})

    def _begin(self) -> None:
        self._at_work = []
        super()._begin()

    async def _work(self, link: GrpcLink) -> None:
        for message in list(self._at_work):
            await self._acknowledge(link, *message)
        beaten = self.world.clock.now
        while True:
            await self._receive(link)
            if self.world.clock.now - beaten >= HEARTBEAT_SECONDS:
                beaten = self.world.clock.now
                await link.call("Heartbeat", 3.0, group={"name": self._group})

    async def _receive(self, link: GrpcLink) -> None:
        got: list[tuple[str, Any, float]] = []

        def came(answer: Any) -> None:
            if answer.WhichOneof("content") == "message":
                name, system = answer.message.body.decode(), answer.message.system_properties
                self.observer.received(self._group, self.name, name, system.receipt_handle, renewed=self._renews)
                got.append((name, system, self.world.clock.now))

        asked = {"group": {"name": self._group}, "message_queue": {"topic": {"name": self._topic}}}
        more = {"auto_renew": True} if self._renews else {"invisible_duration": {"seconds": 10}}
        answers = await link.call(
            "ReceiveMessage", 9.0, came, batch_size=self._source.choice((1, 4)), long_polling_timeout={"seconds": 5},
            filter_expression={"expression": "*"}, **asked, **more,
        )  # fmt: skip
        if not got and answers[0].status.code != NOT_FOUND:
            self.world.remark(f"{self.name} receives nothing: {answers[0].status.message}")
            await self._sleep(1.0)
        if self._renews:
            self._at_work += got
        for name, system, since in got:
            pause = self._source.choice((0.05, 0.2, 2.0, 25.0 if self._renews else 0.5))
            await self._sleep(0.05 if self.hurries else pause)
            if not self._renews and self._source.random() < 0.1:
                continue  # it comes back by itself
            await self._acknowledge(link, name, system, since)

    async def _acknowledge(self, link: GrpcLink, name: str, system: Any, since: float) -> None:
        entry = {"message_id": system.message_id, "receipt_handle": system.receipt_handle}
        group, topic = {"name": self._group}, {"name": self._topic}
        self.observer.worked(self._group, name)
        (answer,) = await link.call("AckMessage", 3.0, group=group, topic=topic, entries=[entry]) or [None]
        self._at_work = [one for one in self._at_work if one[1] is not system]
        if answer is not None and answer.status.code == OK:
            self.observer.done(self._group, name, system.receipt_handle, self.world.clock.now - since)
