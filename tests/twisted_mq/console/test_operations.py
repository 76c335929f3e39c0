"""Actions of operators at the console: groups, settings, writing, users, clients, dead letters, charts, search."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import attrs
from twisted.internet.task import deferLater
from twisted.web.resource import Resource
from twisted.web.server import Request, Site

from tests.twisted_mq.console.browser import ConsoleCase, reactor
from tests.twisted_mq.console.test_accounts import ROOT
from twisted_mq.client.consuming.consumer_options import ConsumeStatus
from twisted_mq.client.consuming.push_consumer import PushConsumer
from twisted_mq.client.producing.producer import Producer
from twisted_mq.protocol.flags import PERM_READ_WRITE
from twisted_mq.protocol.messages.message import Message

GROUP = {"retry_max_times": 5, "retry_queues": 2, "timeout_minutes": 30, "consume": "yes"}


class Operations(ConsoleCase):
    async def setUp(self) -> None:
        await super().setUp()
        await self.log_in()

    async def consumer(self, topic: str, group: str, taken: list[Any]) -> PushConsumer:
        def listen(messages: Any, context: Any) -> ConsumeStatus:
            taken.extend(messages)
            return ConsumeStatus.CONSUME_SUCCESS

        consumer = PushConsumer(reactor, group, self.cluster.name_server)
        consumer.subscribe(topic, "*")
        consumer.listen(listen)
        await consumer.start()
        self.addCleanup(consumer.stop)
        return consumer

    async def test_a_group_is_made_configured_and_deleted(self) -> None:
        made = await self.submit("/groups/create", name="audit", **GROUP)
        self.assertIn("Group audit is created at 1 brokers", made.words)
        self.assertIn("broker-a 5 2 30 yes no no", made.words)
        self.assertIn("audit", (await self.get("/groups")).words)
        again = await self.submit("/groups/create", name="audit", **GROUP)
        self.assertEqual((again.status, "already exists, at broker-a" in again.words), (400, True))
        changed = await self.submit("/group/configure", name="audit", **{**GROUP, "order": "yes", "retry_max_times": 3})
        self.assertIn("broker-a 3 2 30 yes yes no", changed.words)
        groups = self.cluster.broker.controller.groups
        self.assertEqual(groups.groups["audit"].retry_max_times, 3)
        wrong = await self.submit("/group/delete", name="audit", typed="other")
        self.assertEqual((wrong.status, "audit" in groups.groups), (400, True))
        deleted = await self.submit("/group/delete", name="audit", typed="audit", offsets="yes")
        self.assertIn("Group audit is deleted", deleted.words)
        self.assertNotIn("audit", groups.groups)

    async def test_what_a_form_does_not_show_stays_as_it_was(self) -> None:
        await self.submit("/groups/create", name="audit", **GROUP)
        groups = self.cluster.broker.controller.groups
        groups.update(attrs.evolve(groups.groups["audit"], notify_consumer_ids_changed_enable=False))
        await self.submit("/group/configure", name="audit", **GROUP)
        self.assertFalse(groups.groups["audit"].notify_consumer_ids_changed_enable)

    async def test_names_of_no_group_are_refused(self) -> None:
        for name in ("no such/group", "x" * 300):
            self.assertEqual((await self.submit("/groups/create", name=name, **GROUP)).status, 400)

    async def test_a_topic_has_type_order_and_brokers(self) -> None:
        numbers = {"read_queues": 2, "write_queues": 2, "perm": 6}
        made = await self.submit("/topics/create", name="Fifo", type="FIFO", order="yes", broker="broker-a", **numbers)
        self.assertIn("Topic Fifo is created at 1 brokers", made.words)
        config = self.cluster.broker.controller.topics.get("Fifo")
        assert config is not None
        self.assertEqual((config.order, dict(config.attributes or {})), (True, {"message.type": "FIFO"}))
        for wrong in ({"type": "STRANGE"}, {"broker": "nobody"}):
            self.assertEqual((await self.submit("/topics/create", name="Other", **numbers, **wrong)).status, 400)

    async def test_a_setting_changes_and_one_that_cannot_says_so(self) -> None:
        address = self.cluster.broker_address
        page = await self.get("/broker", address=address)
        self.assertRegex(page.words, r"maxMessageSize \d+ at once")
        self.assertRegex(page.words, r"listenPort \d+ after a restart")
        self.assertIn("storeType default not here", page.words)
        done = await self.submit("/broker/setting", address=address, key="maxMessageSize", value="12345")
        self.assertIn("maxMessageSize of broker-a", done.words)
        self.assertEqual(self.cluster.broker.options.max_message_size, 12345)
        for key, value in (("listenPort", "1"), ("maxMessageSize", "many"), ("maxMessageSize", "1\nlistenPort=2")):
            self.assertIn(
                (await self.submit("/broker/setting", address=address, key=key, value=value)).status, (403, 502)
            )
        self.assertEqual((await self.submit("/broker/setting", address=address, key="a=b", value="1")).status, 400)
        self.assertEqual(self.cluster.broker.options.max_message_size, 12345)

    async def test_writing_goes_off_and_on_at_the_name_servers(self) -> None:
        address = self.cluster.broker_address
        await self.send(Message("Orders", b"one"))
        off = await self.submit("/broker/writing", address=address, write="off")
        self.assertIn("clients stop sending to it", off.words)
        self.assertIn("Name servers tell clients that they may not send to it.", off.words)
        on = await self.submit("/broker/writing", address=address, write="on")
        self.assertIn("clients send to it again", on.words)
        self.assertIn("Name servers tell clients that they may send to it.", on.words)
        routes = self.cluster.namesrv.routes.topics["Orders"]
        self.assertEqual({one.perm for one in routes.values()}, {PERM_READ_WRITE})

    async def test_connected_producers_are_listed(self) -> None:
        self.assertIn("No producer is connected", (await self.get("/producers")).words)
        producer = Producer(reactor, "shop", self.cluster.name_server)
        await producer.start()
        self.addCleanup(producer.stop)
        await producer.send(Message("Orders", b"one"))
        while "shop" not in (page := await self.get("/producers")).words:
            await deferLater(reactor, 0.05)
        self.assertIn("broker-a 127.0.0.1", page.words)
        self.assertIn("No producer fits", (await self.get("/producers", q="nobody")).words)

    async def test_a_client_tells_its_queues_and_its_stack(self) -> None:
        taken: list[Any] = []
        await self.send(Message("Orders", b"one"))
        await self.consumer("Orders", "audit", taken)
        await self.wait(lambda: len(taken) == 1)
        (client,) = self.cluster.broker.controller.consumers.groups["audit"].client_ids()
        self.assertIn(client, (await self.get("/group", name="audit")).words)
        page = await self.get("/group/client", group="audit", client=client)
        self.assertRegex(page.words, r"Orders broker-a \d 1 0 0 MiB .* in use")
        stack = await self.get("/group/client", group="audit", client=client, stack="yes")
        self.assertTrue("File " in stack.text or "tells no stack" in stack.words)
        self.assertEqual((await self.get("/group/client", group="audit", client="nobody")).status, 502)

    async def test_a_message_is_handed_to_a_listener_once_more(self) -> None:
        taken: list[Any] = []
        (message_id,) = await self.send(Message("Orders", b"one"))
        await self.consumer("Orders", "audit", taken)
        await self.wait(lambda: len(taken) == 1)
        done = await self.submit("/message/consume", topic="Orders", id=message_id, group="audit")
        self.assertRegex(done.words, r"answered CR_SUCCESS after \d+ ms")
        self.assertEqual([one.body for one in taken], [b"one", b"one"])
        nobody = await self.submit("/message/consume", topic="Orders", id=message_id, group="nobody")
        self.assertIn(nobody.status, (404, 502))

    async def given_up(self, count: int) -> None:
        for number in range(count):
            message = Message("%DLQ%audit", b"%d" % number)
            message.properties["DLQ_ORIGIN_TOPIC"] = "Orders"
            await self.send(message)

    async def test_dead_letters_are_counted_before_and_followed_while_they_are_sent(self) -> None:
        await self.send(Message("Orders", b"first"))
        await self.given_up(3)
        page = await self.get("/dead-letters/group", name="audit")
        self.assertIn("Send 3 dead letters again", page.text)
        progress = await self.submit("/dead-letters/resend", name="audit", which="rest")
        while "All were sent again" not in progress.words:
            progress = await self.get("/dead-letters/progress", name="audit")
        self.assertIn("Sent 3 Of 3 Done 100 %", progress.words)
        self.assertIn("Not sent again 0", progress.words)
        self.assertEqual(len(self.stored("Orders")), 4)
        again = await self.submit("/dead-letters/resend", name="audit", which="rest")
        self.assertEqual(again.status, 200)
        self.assertEqual(len(self.stored("Orders")), 4)
        self.assertEqual((await self.get("/dead-letters/progress", name="nobody")).status, 404)

    async def test_the_charts_have_what_was_before_they_were_opened(self) -> None:
        self.assertEqual(json.loads((await self.get("/api/history")).text), {"samples": []})
        await self.console._histories[""].take()
        (sample,) = json.loads((await self.get("/api/history", hours=1)).text)["samples"]
        (broker,) = sample["brokers"]
        self.assertEqual((broker["name"], broker["id"]), ("broker-a", 0))
        self.assertGreater(broker["disk"], 0)

    async def test_search_finds_topics_groups_and_brokers(self) -> None:
        await self.send(Message("OrdersOfToday", b"one"))
        await self.submit("/groups/create", name="orders-audit", **GROUP)
        page = await self.get("/search", q="ORDERS")
        self.assertIn("Topics OrdersOfToday", page.words)
        self.assertIn('href="/search"', (await self.get("/")).text.replace('action="/search"', 'href="/search"'))
        self.assertIn("broker-a 0 127.0.0.1", (await self.get("/search", q="broker-a")).words)
        self.assertIn("No name has that in it", (await self.get("/search", q="nothing of this")).words)
        self.assertIn("Type a part of a name", (await self.get("/search")).words)


class ReadOnly(ConsoleCase):
    console_options = {"read_only": True}

    async def test_who_only_looks_changes_nothing_of_this(self) -> None:
        await self.log_in()
        for path in (
            "/groups/create", "/group/configure", "/group/delete", "/broker/setting", "/broker/writing", "/message/consume",
            "/access/user/create", "/access/user/change", "/access/user/delete", "/access/grant", "/access/revoke",
            "/dead-letters/stop",
        ):  # fmt: skip
            self.assertEqual((await self.submit(path, name="audit", user="a")).status, 403, path)


class UsersAndRights(ConsoleCase):
    broker_options = {
        "authentication_enabled": True,
        "authorization_enabled": True,
        "init_authentication_user": json.dumps({"username": ROOT.access_key, "password": ROOT.secret_key}),
        "inner_client_authentication_credentials": json.dumps({"accessKey": "inner", "secretKey": "planted-of-inner"}),
    }
    console_options = {"accounts": True}

    async def test_users_and_their_rules_come_change_and_go(self) -> None:
        await self.log_in(access_key="root", secret_key=ROOT.secret_key)
        self.assertIn("root super may log in all masters", (await self.get("/access")).words)
        made = await self.submit("/access/user/create", user="ada", password="planted-secret")
        self.assertIn("User ada is created at 1 brokers", made.words)
        self.assertIn("ada normal may log in", made.words)
        self.assertNotIn("planted", made.text)
        rule = {"user": "ada", "kind": "Topic", "resource": "Orders*", "action": ["Pub", "Sub"], "ips": "10.0.0.0/8"}
        given = await self.submit("/access/grant", decision="Allow", **rule)
        self.assertIn("User:ada Topic:Orders* Pub, Sub allow 10.0.0.0/8", given.words)
        locked = await self.submit("/access/user/change", user="ada", status="disable")
        self.assertIn("ada normal locked out", locked.words)
        gone = await self.submit("/access/revoke", subject="User:ada", resource="Topic:Orders*")
        self.assertIn("There is no rule", gone.words)
        wrong = await self.submit("/access/user/delete", user="ada", typed="eve")
        self.assertEqual(wrong.status, 400)
        deleted = await self.submit("/access/user/delete", user="ada", typed="ada")
        self.assertNotIn("ada normal", deleted.words)

    async def test_forms_with_nonsense_say_what_to_give(self) -> None:
        await self.log_in(access_key="root", secret_key=ROOT.secret_key)
        for path, fields in (
            ("/access/user/create", {"user": "a b", "password": "x"}),
            ("/access/user/create", {"user": "ada", "password": ""}),
            ("/access/user/change", {"user": "ada"}),
            ("/access/user/change", {"user": "ada", "status": "strange"}),
            ("/access/grant", {"user": "ada", "kind": "Topic", "resource": "Orders"}),
            ("/access/grant", {"user": "ada", "kind": "Table", "resource": "Orders", "action": ["Pub"]}),
            ("/access/grant", {"user": "ada", "kind": "Topic", "resource": "a b", "action": ["Pub"]}),
        ):
            self.assertEqual((await self.submit(path, **fields)).status, 400, path)


class Prometheus(Resource):
    """A Prometheus server that has one sample of each metric for the broker at an address."""

    isLeaf = True

    def __init__(self, address: Callable[[], str]) -> None:
        super().__init__()
        self.address = address

    def render_GET(self, request: Request) -> bytes:
        found = {"metric": {"brokerIP": self.address()}, "values": [[1_795_216_968, "0.5"]]}
        return json.dumps({"status": "success", "data": {"result": [found]}}).encode()


class PastFromPrometheus(ConsoleCase):
    async def setUp(self) -> None:
        site = Site(Prometheus(lambda: self.cluster.broker_address))
        port = reactor.listenTCP(0, site, interface="127.0.0.1")
        self.addCleanup(port.stopListening)
        self.console_options = {"prometheus": f"http://127.0.0.1:{port.getHost().port}"}
        self.port = port
        await super().setUp()
        await self.log_in()

    async def test_the_charts_have_what_prometheus_has(self) -> None:
        (sample,) = json.loads((await self.get("/api/history")).text)["samples"]
        (broker,) = sample["brokers"]
        self.assertEqual(sample["timeMs"], 1_795_216_968_000)
        self.assertEqual([broker[name] for name in ("name", "inRate", "outRate", "disk")], ["broker-a", 0.5, 0.5, 0.5])

    async def test_a_prometheus_that_is_away_is_said_on_the_page(self) -> None:
        await self.port.stopListening()
        answer = await self.get("/api/history")
        self.assertEqual(answer.status, 502)
        self.assertIn("does not answer", answer.text)
