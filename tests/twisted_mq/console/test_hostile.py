"""Servers that announce or answer nonsense spoil their own rows of a page, and no other."""

from __future__ import annotations

from typing import Any

from tests.twisted_mq.console.browser import ConsoleCase, reactor
from tests.twisted_mq.namesrv.routes import register, topics
from twisted_mq.console.visit import PAGE_ROWS
from twisted_mq.protocol.bodies import TopicConfig
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.remoting.channel import Answer, Channel
from twisted_mq.remoting.client import RemotingClient
from twisted_mq.remoting.server import RemotingServerFactory
from twisted_mq.remoting.socket_channel import Traffic

ADDRESSES = ("127.0.0.1:1", "127.0.0.1:99999", "nowhere", "[::1", ":", "127.0.0.1:x", "a b:1", "\x00:1")
PAGES = ("/", "/topics", "/groups", "/charts", "/api/figures", "/messages", "/waiting", "/dead-letters")
TOPIC, GROUP = "honest", "readers"


class Hostile(ConsoleCase):
    async def setUp(self) -> None:
        await super().setUp()
        self.cluster.broker.controller.topics.update(
            [TopicConfig(name, 1, 1, 6) for name in (TOPIC, f"%RETRY%{GROUP}")]
        )
        self.cluster.broker.controller.groups.find(GROUP)
        self.cluster.broker.controller.offsets.commit(GROUP, TOPIC, 0, 0)
        await self.wait_route(TOPIC)
        await self.log_in()

    def announce(self, address: str, name: str, *of_topics: str, queues: int = 4) -> None:
        register(
            self.cluster.namesrv.routes, name, address=address, topics=topics(*of_topics, queues=queues),
            cluster_name="DefaultCluster", now_ms=int(reactor.seconds() * 1000),
        )  # fmt: skip

    def answer_everything_with(self, body: bytes, **fields: str) -> str:
        """The address of a server that does."""

        def answered(channel: Channel, command: RemotingCommand) -> Answer:
            return command.answer(body=body, ext_fields=fields)

        codes = {int(code): answered for code in RequestCode}
        factory = RemotingServerFactory(Traffic(codes, reactor))
        port = reactor.listenTCP(0, factory, interface="127.0.0.1")
        self.addCleanup(port.stopListening)
        self.addCleanup(factory.close_all)
        return f"127.0.0.1:{port.getHost().port}"

    async def failing(self) -> dict[str, Any]:
        """The pages that do not come, and why."""
        found = {path: await self.get(path) for path in PAGES}
        found["/topic"] = await self.get("/topic", name=TOPIC)
        found["/messages of a topic"] = await self.get("/messages", by="time", topic=TOPIC)
        found["/group"] = await self.get("/group", name=GROUP)
        print(
            {
                path: (reply.status, reply.words[-300:])
                for path, reply in found.items()
                if path in ("/messages of a topic", "/group/reset", "/topic")
            }
        )
        return {path: (reply.status, reply.words) for path, reply in found.items() if reply.status >= 500}

    async def test_addresses_that_lead_nowhere(self) -> None:
        for number, address in enumerate(ADDRESSES):
            self.announce(address, f"evil-{number}", TOPIC, "other")
        self.assertEqual(await self.failing(), {})
        self.assertIn("evil-0", (await self.get("/")).words)
        move = await self.get("/group/reset", name=GROUP, topic=TOPIC, to="earliest")
        self.assertEqual(move.status, 502, "offsets are moved at all brokers of a topic or at none")
        self.assertIn("127.0.0.1:1", move.words)

    async def test_brokers_that_answer_nonsense(self) -> None:
        bodies = (b"", b"{", b"[]", b'{"table":{"putTps":"nan nan nan","commitLogDiskRatio":"nan","bootTimestamp":"inf",'
                  b'"msgPutTotalTodayNow":"inf","msgPutTotalTodayMorning":"nan","earliestMessageTimeStamp":"1e300"}}',
                  b'{"table":{"bootTimestamp":"99999999999999999999"},"offsetTable":{},"consumerTable":7}')  # fmt: skip
        for number, body in enumerate(bodies):
            self.announce(self.answer_everything_with(body), f"evil-{number}", TOPIC, "other")
        self.assertEqual(await self.failing(), {})

    async def test_registrations_with_odd_values(self) -> None:
        client = RemotingClient(reactor)
        self.addCleanup(client.close)
        plain = {"brokerName": "odd", "brokerAddr": "127.0.0.1:1", "clusterName": "DefaultCluster",
                 "haServerAddr": "127.0.0.1:2", "brokerId": "0", "compressed": "false", "bodyCrc32": "0"}  # fmt: skip
        odd: list[dict[str, str]] = [
            {"brokerName": name}
            for name in ("", " ", "\0", "\ud7ff", "é" * 1000, "x" * 100_000, "<b>", "\n\n", '"}', "[")
        ]
        odd += [{"clusterName": name} for name in ("", "\0", "x" * 100_000, "a\nb", '"')]
        odd += [{"brokerId": number} for number in ("-1", "9223372036854775807", "1", "-9223372036854775808")]
        odd += [{"brokerAddr": address} for address in ("", "x" * 100_000, "\n", "127.0.0.1:1;127.0.0.1:2")]
        for number, change in enumerate(odd):
            fields = {**plain, "brokerAddr": f"127.0.0.1:{number + 1}", "brokerName": f"odd-{number}", **change}
            await client.invoke(self.cluster.name_server, RemotingCommand.request(103, fields))
        self.assertEqual(await self.failing(), {})

    async def test_a_topic_of_many_queues_is_shown_page_by_page(self) -> None:
        """The requests and the rows of a page do not grow with the number of queues."""
        queues = 2_000
        self.cluster.broker.controller.topics.update([TopicConfig("wide", queues, queues, 6)])
        await self.wait_route("wide")
        offsets = self.cluster.broker.controller.offsets
        for queue_id in range(queues):
            offsets.commit(GROUP, "wide", queue_id, 0)
        asked: list[str] = []
        invoke = RemotingClient.invoke

        def counted(client: RemotingClient, address: str, *more: Any, **named: Any) -> Any:
            asked.append(address)
            return invoke(client, address, *more, **named)

        self.patch(RemotingClient, "invoke", counted)
        for path, fields in (
            ("/topic", {"name": "wide"}),
            ("/group", {"name": GROUP}),
            ("/messages", {"by": "time", "topic": "wide"}),
        ):
            del asked[:]
            reply = await self.get(path, **fields)
            self.assertEqual((reply.status, len(asked) <= 4 * PAGE_ROWS), (200, True), (path, len(asked)))
            self.assertLess(reply.text.count("<tr>"), 2 * PAGE_ROWS, path)
            self.assertIn("Page 1 of", reply.words)
            self.assertEqual((await self.get(path, page=2, **fields)).status, 200)
