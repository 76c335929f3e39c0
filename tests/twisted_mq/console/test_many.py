"""What a page of a long list asks of the servers does not grow with the list."""

from __future__ import annotations

from typing import Any

from tests.twisted_mq.console.browser import ConsoleCase
from twisted_mq.console.forms import count
from twisted_mq.console.visit import PAGE_ROWS
from twisted_mq.protocol.bodies import TopicConfig
from twisted_mq.remoting.client import RemotingClient

MANY = 3_000


class ManyTopics(ConsoleCase):
    async def asked(self, path: str, **fields: object) -> int:
        """How many requests a page makes."""
        invoke, made = RemotingClient.invoke, []

        def counted(client: RemotingClient, address: str, *more: Any, **named: Any) -> Any:
            made.append(address)
            return invoke(client, address, *more, **named)

        patch = self.patch(RemotingClient, "invoke", counted)
        self.assertEqual((await self.get(path, **fields)).status, 200)
        patch.restore()
        return len(made)

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
