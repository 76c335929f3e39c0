"""The number of requests of a page does not grow with its list."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred

from tests.twisted_mq.console.browser import ConsoleCase
from twisted_mq.console.forms import count
from twisted_mq.console.visit import PAGE_ROWS
from twisted_mq.console.wide import MOST_COLLECTED
from twisted_mq.protocol.bodies import TopicConfig
from twisted_mq.protocol.messages.message import Message
from twisted_mq.remoting.client import RemotingClient

MANY = 3_000


class CountedCase(ConsoleCase):
    async def work(self, path: str, **fields: object) -> tuple[int, int, int]:
        """Return the number of requests of a page, the bytes of their answers, and its own."""
        invoke, made = RemotingClient.invoke, []

        async def counted(client: RemotingClient, address: str, *more: Any, **named: Any) -> Any:
            answer = await invoke(client, address, *more, **named)
            made.append(len(answer.body))
            return answer

        def as_deferred(*arguments: Any, **named: Any) -> Any:
            return Deferred.fromCoroutine(counted(*arguments, **named))

        patch = self.patch(RemotingClient, "invoke", as_deferred)
        reply = await self.get(path, **fields)
        self.assertEqual(reply.status, 200, reply.words)
        patch.restore()
        return len(made), sum(made), len(reply.body)


class ManyTopics(CountedCase):
    async def asked(self, path: str, **fields: object) -> int:
        return (await self.work(path, **fields))[0]

    async def make(self, first: int, end: int) -> None:
        broker = self.cluster.broker.controller
        names = [f"many-{number:06d}" for number in range(first, end)]
        broker.topics.update([TopicConfig(name, 1, 1, 6) for name in names])
        await self.wait_route(names[-1])

    async def test_a_page_of_topics_or_groups_asks_as_much_of_many_as_of_few(self) -> None:
        await self.log_in()
        await self.make(0, PAGE_ROWS)
        few = [await self.asked(path) for path in ("/topics", "/groups")]
        self.assertEqual(few[0], PAGE_ROWS + 2)
        await self.make(PAGE_ROWS, MANY)
        self.assertEqual([await self.asked(path) for path in ("/topics", "/groups")], few)
        self.assertEqual(await self.asked("/topics", q="many", page=MANY // PAGE_ROWS), few[0])
        page = await self.get("/topics")
        self.assertIn(f"{count(MANY)} of", page.text)
        self.assertLess(len(page.body), 64 * 1024)


class ManyQueues(CountedCase):
    """Two topics of each kind: one with the most queues of a topic, one with the fewest that are many."""

    FEW, MANY = MOST_COLLECTED + 1, 65_535
    PAGES = (
        ("/topic", {"name": "{topic}"}),
        ("/topic", {"name": "{topic}", "page": 20}),
        ("/groups", {"q": "{group}"}),
        ("/group", {"name": "{group}"}),
        ("/group", {"name": "{group}", "page": 20}),
        ("/group/reset", {"name": "{group}", "topic": "{topic}", "to": "earliest"}),
        ("/group/reset", {"name": "{group}", "topic": "{topic}", "to": "latest", "page": 20}),
        ("/messages", {"by": "time", "topic": "{topic}"}),
        ("/dead-letters/group", {"name": "{group}"}),
    )

    async def make(self, queues: int) -> dict[str, str]:
        names = {"topic": f"Wide-{queues:06d}", "group": f"G-{queues:06d}"}
        controller = self.cluster.broker.controller
        topics = (names["topic"], f"%DLQ%{names['group']}")
        wide = [TopicConfig(name, queues, queues, 6) for name in topics]
        controller.topics.update([*wide, TopicConfig(f"%RETRY%{names['group']}", 1, 1, 6)])
        assert controller.groups.find(names["group"]) is not None
        controller.offsets.offsets[f"{names['topic']}@{names['group']}"] = dict.fromkeys(range(queues), 0)
        for name in topics:
            await self.wait_route(name)
        return names

    async def test_a_page_takes_as_much_work_for_very_many_queues_as_for_fewer(self) -> None:
        await self.log_in()
        few, many = await self.make(self.FEW), await self.make(self.MANY)
        for path, fields in self.PAGES:
            work = []
            for names in (few, many):
                given = {key: str(value).format(**names) for key, value in fields.items()}
                work.append(await self.work(path, **given))
            (requests, answers, page), (as_many, as_long, other_page) = work
            self.assertEqual(as_many, requests, path)
            self.assertLess(abs(as_long - answers), 4096, path)
            self.assertLess(abs(other_page - page), 4096, path)
            self.assertLess(requests, 5 * PAGE_ROWS, path)

    async def test_a_page_shows_the_queues_of_its_number(self) -> None:
        await self.log_in()
        names = await self.make(self.FEW)
        await self.send(*(Message(names["topic"], b"m") for _ in range(3)))
        last = await self.get("/topic", name=names["topic"], page=999)
        self.assertIn("It has 1 025 queues: this page asks for those that it shows", last.words)
        self.assertIn("broker-a 1000 0 0 0", last.words)
        self.assertIn("broker-a 1024 0 0 0", last.words)
        self.assertNotIn("broker-a 999 ", last.words)
        group = await self.get("/group", name=names["group"], page=2)
        self.assertIn(f"{names['topic']} broker-a 50 0 0 0 0", group.words)
        move = await self.get("/group/reset", name=names["group"], topic=names["topic"], to="latest", page=2)
        self.assertIn("a move is made in all of them", move.words)
        self.assertIn("page=3", move.text)
