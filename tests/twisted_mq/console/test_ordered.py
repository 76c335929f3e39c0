"""The lists of ordered topics on a page, from a coordinator that is asked over its own protocol."""

from __future__ import annotations

from tests.twisted_mq.console.browser import ConsoleCase, reactor
from twisted_mq.console.service import ConsoleService
from twisted_mq.console.settings import ConsoleSettings
from twisted_mq.coordination.address import parse_address
from twisted_mq.coordination.settings import CoordinatorSettings
from twisted_mq.testing import OrderedCluster


class OrderedTopics(ConsoleCase):
    async def setUp(self) -> None:
        await super().setUp()
        self.groups = OrderedCluster(reactor)
        await self.groups.start()
        self.addCleanup(self.groups.stop)
        await self.console.stopService()
        coordinator = CoordinatorSettings(parse_address(self.groups.coordinator_address))
        settings = ConsoleSettings((self.groups.name_server,), port=0, coordinator=coordinator)
        self.console = ConsoleService(settings, reactor, self.invitations.append)
        self.console.startService()
        self.addCleanup(self.console.stopService)
        self.console.invite()
        await self.log_in()

    async def test_lists_heads_and_groups(self) -> None:
        self.assertIn("No ordered topic is declared.", (await self.get("/ordered")).words)
        await self.groups.declare("Strict", queues=2)
        page = await self.get("/ordered")
        self.assertIn("2 queues, kept by broker-a, broker-b.", page.words)
        self.assertRegex(page.words, r"0 \d+ broker-[ab] broker-[ab], broker-[ab] broker-[ab] \d+ \(0\) goes on")
        self.assertEqual((await self.get("/ordered", topic="None")).status, 404)


class WithoutCoordinator(ConsoleCase):
    async def test_the_page_is_not_in_the_menu_and_says_why(self) -> None:
        await self.log_in()
        self.assertNotIn("Ordered", (await self.get("/")).words)
        reply = await self.get("/ordered")
        self.assertEqual(reply.status, 404)
        self.assertIn("started without --coordinator", reply.words)
