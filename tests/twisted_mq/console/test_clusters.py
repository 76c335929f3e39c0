"""Several clusters in one console: a switch on each page, and no page that acts on another cluster than it shows."""

from __future__ import annotations

import re

from click.testing import CliRunner

from tests.twisted_mq.console.browser import ConsoleCase, Reply, reactor
from tests.twisted_mq.console.test_accounts import ROOT, AccountsOfTheCluster
from twisted_mq.cli.console import console
from twisted_mq.console.routes import NAVIGATION, ROUTES
from twisted_mq.console.service import ConsoleService
from twisted_mq.console.settings import ConsoleSettings, NamedCluster
from twisted_mq.testing import EmbeddedCluster

AWAY = NamedCluster("away", ("127.0.0.1:1",))


class TwoClusters(ConsoleCase):
    """The clusters "shop" and "bank", and one that is away."""

    async def setUp(self) -> None:
        await super().setUp()
        self.bank = await EmbeddedCluster(reactor, broker_options=self.broker_options).start()
        self.addCleanup(self.bank.stop)
        await self.console.stopService()
        others = (NamedCluster("bank", (self.bank.name_server,)), AWAY, *(await self.more()))
        settings = ConsoleSettings(
            (self.cluster.name_server,), port=0, name="shop", others=others, **self.console_options
        )
        self.console = ConsoleService(settings, reactor, self.invitations.append)
        self.console.startService()
        self.addCleanup(self.console.stopService)
        self.console.invite()

    async def more(self) -> list[NamedCluster]:
        return []

    async def switch(self, cluster: str, here: str = "/") -> Reply:
        return await self.submit("/cluster", cluster=cluster, here=here)

    def shown(self, reply: Reply) -> str:
        """The cluster that a page's switch shows, checked against its title and its name servers."""
        found = re.search(r"<option selected>([^<]+)</option>", reply.text)
        assert found is not None, reply.words
        servers = {"shop": self.cluster.name_server, "bank": self.bank.name_server, "away": AWAY.name_servers[0]}
        self.assertIn(f"{found[1]} · RocketMQ console</title>", reply.text)
        self.assertIn(f"Name servers: {servers[found[1]]}.", reply.words)
        return found[1]


class SwitchTests(TwoClusters):
    async def test_each_page_has_a_switch_and_shows_the_cluster_that_was_chosen(self) -> None:
        await self.log_in()
        await self.submit("/topics/create", name="OfShop", read_queues=1, write_queues=1, perm=6)
        for cluster, has_it in (("shop", True), ("bank", False), ("shop", True)):
            page = await self.switch(cluster, "/topics")
            self.assertEqual((self.shown(page), "OfShop" in page.words), (cluster, has_it))
        for entry in NAVIGATION:
            if entry.path != "/ordered":
                self.assertEqual(self.shown(await self.get(entry.path)), "shop")

    async def test_changes_go_to_the_cluster_that_is_shown(self) -> None:
        await self.log_in()
        await self.switch("bank")
        await self.submit("/topics/create", name="OfBank", read_queues=1, write_queues=1, perm=6)
        there = self.bank.broker.controller.topics, self.cluster.broker.controller.topics
        self.assertEqual([topics.get("OfBank") is not None for topics in there], [True, False])

    async def test_form_of_another_cluster_is_refused(self) -> None:
        """The user switched in another tab."""
        await self.log_in()
        old = (await self.get("/topics")).form_key
        await self.switch("bank")
        fields = {"form_key": old, "name": "Stray", "read_queues": 1, "write_queues": 1, "perm": 6}
        reply = await self.post("/topics/create", fields)
        self.assertEqual(reply.status, 403)
        self.assertIn("a cluster that is not shown any more", reply.words)
        for cluster in (self.cluster, self.bank):
            self.assertIsNone(cluster.broker.controller.topics.get("Stray"))
        await self.switch("shop")
        self.assertEqual((await self.post("/topics/create", fields)).status, 303)

    async def test_old_form_logs_out(self) -> None:
        await self.log_in()
        old = (await self.get("/")).form_key
        await self.switch("bank")
        await self.post("/logout", {"form_key": old})
        self.assertEqual((await self.get("/")).status, 303)

    async def test_cluster_that_is_away_says_so_and_leaves_the_switch(self) -> None:
        await self.log_in()
        page = await self.switch("away")
        self.assertEqual((self.shown(page), page.status), ("away", 502))
        self.assertEqual(self.shown(await self.post_and_follow("shop", page.form_key)), "shop")

    async def post_and_follow(self, cluster: str, form_key: str) -> Reply:
        reply = await self.post("/cluster", {"form_key": form_key, "cluster": cluster, "here": "/topics"})
        return await self.ask("GET", reply.header("location") or "")

    async def test_unknown_cluster_is_refused_and_no_other_page_is_opened(self) -> None:
        await self.log_in()
        self.assertEqual((await self.switch("nowhere")).status, 403)
        key = (await self.get("/")).form_key
        reply = await self.post("/cluster", {"form_key": key, "cluster": "bank", "here": "//evil.example"})
        self.assertEqual((reply.status, reply.header("location")), (303, "/"))
        self.assertEqual((await self.post("/cluster", {"cluster": "shop"})).status, 403)

    async def test_dead_letters_of_groups_of_one_name_are_sent_apart(self) -> None:
        await self.log_in()
        self.assertTrue(any(route.path == "/dead-letters/progress" for route in ROUTES))
        await self.switch("bank")
        self.console._jobs.start("shop/G", 5, _no_steps())
        reply = await self.get("/dead-letters/progress", name="G")
        self.assertIn("No resend of G is running", reply.words)

    async def test_samples_of_the_charts_are_those_of_the_cluster(self) -> None:
        await self.log_in()
        for name in ("shop", "bank"):
            await self.console._histories[name].take()
        await self.console._histories["bank"].take()
        counts = {}
        for name in ("shop", "bank"):
            await self.switch(name)
            counts[name] = (await self.get("/api/history")).text.count("timeMs")
        self.assertLess(counts["shop"], counts["bank"])


async def _no_steps():  # type: ignore[no-untyped-def]
    return
    yield


class SwitchWithAccountsTests(TwoClusters):
    """The account logs in at each cluster."""

    broker_options = AccountsOfTheCluster.broker_options
    console_options = {"accounts": True}

    async def more(self) -> list[NamedCluster]:
        """A cluster that checks no account."""
        checks_none = await EmbeddedCluster(reactor).start()
        self.addCleanup(checks_none.stop)
        return [NamedCluster("open", (checks_none.name_server,))]

    async def test_account_that_another_cluster_knows_may_do_there_what_that_cluster_lets_it(self) -> None:
        await self.log_in(access_key="root", secret_key=ROOT.secret_key)
        page = await self.switch("bank")
        self.assertEqual(self.shown(page), "bank")
        self.assertIn("root operator", page.words)

    async def test_account_that_another_cluster_refuses_stays_where_it_is(self) -> None:
        await self.log_in(access_key="root", secret_key=ROOT.secret_key)
        reply = await self.switch("open")
        self.assertEqual((reply.status, self.shown(reply)), (403, "shop"))
        self.assertIn("The brokers have no accounts", reply.words)

    async def test_user_who_wants_to_look_only_does_so_at_each_cluster(self) -> None:
        await self.log_in(access_key="root", secret_key=ROOT.secret_key, read_only="yes")
        self.assertIn("root read only", (await self.switch("bank")).words)


class SingleClusterTests(ConsoleCase):
    async def test_one_cluster_has_no_switch(self) -> None:
        await self.log_in()
        self.assertNotIn("cluster-shown", (await self.get("/")).text)


def test_clusters_of_the_command_line_need_names_of_their_own() -> None:
    for words, text in (
        (["--cluster", "shop"], "NAME=HOST:PORT is needed"),
        (["--cluster", "=h:1"], "NAME=HOST:PORT is needed"),
        (["--cluster", "a=h:1", "--cluster", "a=h:2"], "each needs a name of its own"),
    ):
        done = CliRunner().invoke(console, words)
        assert (done.exit_code, text in done.output) == (2, True), done.output
