"""Each page against a broker: what it shows, and what its forms do."""

from __future__ import annotations

import json
from typing import Any

from twisted.internet.task import deferLater

from tests.twisted_mq.console.browser import ConsoleCase, reactor
from twisted_mq.admin.calls import AdminCalls
from twisted_mq.admin.sending import send_once
from twisted_mq.client.consuming.consumer_options import ConsumeStatus
from twisted_mq.client.consuming.push_consumer import PushConsumer
from twisted_mq.client.producing.transaction_producer import TransactionProducer, TransactionState
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.messages.message import Message

HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)>\u202e'
ESCAPED = "&lt;script&gt;alert(1)&lt;/script&gt;"


class Pages(ConsoleCase):
    async def setUp(self) -> None:
        await super().setUp()
        await self.log_in()

    async def consumed(self, topic: str, group: str, status: ConsumeStatus, count: int) -> PushConsumer:
        """A running consumer that was handed so many messages."""
        taken: list[Any] = []

        def listen(messages: Any, context: Any) -> ConsumeStatus:
            taken.extend(messages)
            if status is ConsumeStatus.RECONSUME_LATER:
                context.delay_level_when_next_consume = -1
            return status

        consumer = PushConsumer(reactor, group, self.cluster.name_server)
        consumer.subscribe(topic, "*")
        consumer.listen(listen)
        await consumer.start()
        self.addCleanup(consumer.stop)
        await self.wait(lambda: len(taken) >= count)
        await consumer.persist_offsets()
        return consumer

    async def test_clusters_and_a_broker(self) -> None:
        address = self.cluster.broker_address
        page = await self.get("/")
        self.assertIn(f"broker-a master {address}", page.words)
        broker = await self.get("/broker", address=address)
        for part in ("No slave is connected.", "commitLogMaxOffset", "brokerName broker-a"):
            self.assertIn(part, broker.words)
        figures = json.loads((await self.get("/api/figures")).text)
        self.assertEqual([(one["name"], one["id"]) for one in figures["brokers"]], [("broker-a", 0)])

    async def test_the_console_connects_to_no_other_servers(self) -> None:
        for path in ("/broker", "/waiting/delayed"):
            reply = await self.get(path, address="127.0.0.1:1")
            self.assertEqual(reply.status, 404)
            self.assertIn("No broker is registered at 127.0.0.1:1", reply.words)
        foreign = "7F000001000000010000000000000000"
        await self.send(Message("Orders", b"x"))
        self.assertEqual((await self.get("/message", topic="Orders", id=foreign)).status, 404)

    async def test_a_topic_is_made_changed_sent_to_and_deleted(self) -> None:
        made = await self.submit("/topics/create", name="Made", read_queues=2, write_queues=2, perm=6)
        self.assertIn("Topic Made is created at 1 brokers", made.words)
        await self.wait_route("Made")
        self.assertIn("Made normal 2 2 RW- broker-a", (await self.get("/topics")).words)
        changed = await self.submit("/topic/change", name="Made", read_queues=3, write_queues=3, perm=6)
        self.assertIn("Topic Made is changed at 1 brokers", changed.words)
        config = self.cluster.broker.controller.topics.topics["Made"]
        self.assertEqual((config.read_queue_nums, config.write_queue_nums), (3, 3))
        sent = await self.submit("/topic/send", name="Made", body="one\r\ntwo", tags="t", keys="k", properties="a = b")
        self.assertIn("SEND_OK", sent.words)
        message = self.stored("Made")[0]
        self.assertEqual(
            (message.body, message.tags, message.keys, message.properties["a"]), (b"one\ntwo", "t", ["k"], "b")
        )
        refused = await self.submit("/topic/delete", name="Made", typed="Mad")
        self.assertEqual(refused.status, 400)
        self.assertIn("Made", self.cluster.broker.controller.topics.topics)
        await self.submit("/topic/delete", name="Made", typed="Made")
        self.assertNotIn("Made", self.cluster.broker.controller.topics.topics)

    async def test_a_topic_shows_its_rate_and_its_day(self) -> None:
        statistics, now = self.cluster.broker.controller.statistics, reactor.seconds()
        await self.send(Message("Rated", b"first"))
        list(statistics.sample(now + 1, 0))
        await self.send(*(Message("Rated", b"more") for _ in range(30)))
        list(statistics.sample(now + 61, 0))
        self.assertIn("In, a second 0.5 In, a day 31", (await self.get("/topic", name="Rated")).words)

    async def test_forms_with_nonsense_say_what_to_give(self) -> None:
        for path, fields, text in (
            ("/topics/create", {"name": "no such/name"}, "illegal characters"),
            ("/topics/create", {"name": "Made", "read_queues": "many"}, "Read queues must be a whole number from 1"),
            ("/topics/create", {"name": "Made", "perm": 1}, "The permission must be to read, to write, or both"),
            ("/topic/send", {"name": "TBW102", "properties": "nothing"}, "name=value, got 'nothing'"),
            ("/group/reset", {"name": "g", "topic": "t"}, "Enter the time"),
            ("/group/reset", {"name": "g", "topic": "t", "time": "soon"}, "a time in UTC like 2026-11-22T08:00"),
            ("/dead-letters/resend", {"name": "g"}, "Choose the dead letters"),
        ):
            reply = await self.submit(path, **fields)
            self.assertEqual(reply.status, 400, path)
            self.assertIn(text, reply.words.replace("&#39;", "'"))

    async def test_a_group_its_clients_its_lag_and_a_reset_after_a_look(self) -> None:
        await self.send(*(Message("Orders", b"%d" % number) for number in range(8)))
        await self.consumed("Orders", "audit", ConsumeStatus.CONSUME_SUCCESS, 8)
        self.assertRegex((await self.get("/groups")).words, r"audit 1 0 0 s \S+ clustering Orders")
        page = await self.get("/group", name="audit")
        self.assertIn("Orders: *", page.words)
        self.assertNotIn("subscriptions of this group conflict", page.words)
        look = await self.get("/group/reset", name="audit", topic="Orders", to="earliest")
        self.assertIn("Come again 8 Are skipped 0 Clients connected 1", look.words)
        self.assertIn("Nothing is changed yet.", look.words)
        done = await self.submit("/group/reset", name="audit", topic="Orders", to="earliest")
        self.assertIn("audit is at the first message in 4 queues of Orders", done.words)

    async def test_a_group_without_clients_is_moved_at_the_brokers(self) -> None:
        await self.send(*(Message("Orders", b"%d" % number) for number in range(8)))
        consumer = await self.consumed("Orders", "audit", ConsumeStatus.CONSUME_SUCCESS, 8)
        await consumer.stop()
        done = await self.submit("/group/reset", name="audit", topic="Orders", to="time", time="2001-02-03T04:05")
        self.assertIn("audit is at 2001-02-03 04:05:00.000 UTC in 4 queues of Orders", done.words)
        self.assertIn("Lag 8", (await self.get("/group", name="audit")).words)

    async def test_messages_by_time_key_and_id(self) -> None:
        ids = await self.send(*(Message.make("Orders", b"body %d" % n, None, f"key-{n}") for n in range(5)))
        found = await self.get("/messages", topic="Orders")
        self.assertIn("5 messages, the newest first", found.words)
        before = await self.get("/messages", topic="Orders", end="2001-01-01T00:00")
        self.assertIn("No message fits.", before.words)
        self.assertIn("1 messages", (await self.get("/messages", by="key", topic="Orders", key="key-3")).words)
        self.assertIn("No message fits.", (await self.get("/messages", by="key", topic="Orders", key="none")).words)
        by_id = await self.get("/messages", by="id", topic="Orders", id=ids[2])
        page = await self.ask("GET", by_id.header("location") or "")
        self.assertIn("body 2", page.text)
        self.assertIn("No client has traced this message", page.words)
        saved = await self.get("/message/body", topic="Orders", id=ids[2])
        self.assertEqual((saved.body, saved.header("content-type")), (b"body 2", "application/octet-stream"))
        self.assertTrue((saved.header("content-disposition") or "").startswith("attachment;"))
        self.assertIn("62 6f 64 79", (await self.get("/message", topic="Orders", id=ids[2], view="hex")).text)

    async def test_nothing_of_a_message_is_taken_for_a_page(self) -> None:
        message = Message.make("Orders", HOSTILE.encode(), HOSTILE, HOSTILE.replace(" ", ""), {"name": HOSTILE})
        as_json = Message("Orders", json.dumps({"what": HOSTILE}).encode())
        ids = await self.send(message, as_json)
        pages = [
            await self.get("/message", topic="Orders", id=one, view=view) for one in ids for view in ("", "json", "hex")
        ]
        pages += [await self.get("/messages", topic="Orders"), await self.get("/topics", q=HOSTILE)]
        pages += [await self.get(path, name=HOSTILE) for path in ("/topic", "/group", "/dead-letters/group")]
        pages += [await self.get("/broker", address=HOSTILE), await self.get("/message", topic=HOSTILE, id=HOSTILE)]
        for page in pages:
            self.assertNotIn("<script>alert", page.text)
            self.assertNotIn("<img src=x", page.text)
            self.assertNotIn("\u202e", page.text)
        self.assertIn(ESCAPED, pages[0].text)
        self.assertIn("\\u202e", pages[0].text)

    async def test_hostile_names_and_remarks_of_servers_are_text(self) -> None:
        names = [HOSTILE, f"%RETRY%{HOSTILE}", f"%DLQ%{HOSTILE}"]
        self.patch(AdminCalls, "topic_list", lambda admin: _given(names))
        self.patch(AdminCalls, "topic_route", lambda admin, topic: _refused(f"no route of {topic} {HOSTILE}"))
        self.patch(
            AdminCalls,
            "broker_runtime",
            lambda admin, address: _given({"brokerVersionDesc": HOSTILE, HOSTILE: HOSTILE}),
        )
        pages = [await self.get(path) for path in ("/topics", "/groups", "/dead-letters", "/")]
        pages += [await self.get("/topic", name="T"), await self.get("/broker", address=self.cluster.broker_address)]
        for page in pages:
            self.assertNotIn("<script>alert", page.text)
            self.assertNotIn("\u202e", page.text)
        self.assertIn(ESCAPED, pages[0].text)
        self.assertEqual(pages[4].status, 502)
        self.assertIn("no route of T", pages[4].words)

    async def test_half_messages_wait_for_their_producer(self) -> None:
        unknown = TransactionState.UNKNOWN
        producer = TransactionProducer(reactor, "tx", self.cluster.name_server, check=lambda message: unknown)
        await producer.start()
        self.addCleanup(producer.stop)
        await producer.send_in_transaction(Message.make("Orders", b"half", None, "half"), lambda message: unknown)
        await producer.send_in_transaction(Message("Orders", b"done"), lambda message: TransactionState.COMMIT)
        while "1 half messages wait for their producer" not in (page := await self.get("/waiting")).words:
            await deferLater(reactor, 0.1)  # brokers note decisions together, three seconds apart
        self.assertRegex(page.words, r"Orders tx \d+ s 0 broker-a")

    async def test_the_way_of_a_message_that_was_traced(self) -> None:
        admin = self.console.admin(None)
        self.addCleanup(admin.client.close)
        result = await send_once(admin, Message("Orders", b"traced"), "shop", trace=True)
        page = await self.get("/message", topic="Orders", id=result.offset_msg_id)
        self.assertRegex(page.words, r"sent shop 127.0.0.1 .* success to 127.0.0.1:\d+")

    async def test_a_hundred_thousand_topics_come_in_pages(self) -> None:
        admin_list = [f"Topic-{number:06d}" for number in range(100_000)]
        self.patch(type(self.console.admin(None)), "topic_list", lambda admin: _given(admin_list))
        page = await self.get("/topics", kind="all", page=2000)
        self.assertIn("100 000 of 100 000 topics", page.words)
        self.assertIn("Page 2 000 of 2 000", page.words)
        self.assertEqual(page.text.count('<th scope="row">'), 50)
        self.assertIn("Topic-099999", page.text)
        self.assertIn("1 of 100 000 topics", (await self.get("/topics", kind="all", q="topic-012345")).words)

    async def test_dead_letters_are_listed_saved_and_sent_again(self) -> None:
        await self.send(*(Message("Orders", b"%d" % number) for number in range(3)))
        consumer = await self.consumed("Orders", "audit", ConsumeStatus.RECONSUME_LATER, 3)
        await self.wait(lambda: "%DLQ%audit" in self.cluster.namesrv.routes.topics)
        await self.wait(lambda: len(self.stored("%DLQ%audit")) == 3)
        await consumer.stop()
        self.assertIn("audit 3 3", (await self.get("/dead-letters")).words)
        saved = await self.get("/dead-letters/export", name="audit")
        self.assertEqual(sorted(json.loads(line)["body"] for line in saved.text.splitlines()), ["0", "1", "2"])
        chosen = self.stored("%DLQ%audit")[1].msg_id
        done = await self.submit("/dead-letters/resend", name="audit", id=[chosen])
        self.assertIn("1 dead letters of audit were sent again", done.words)
        self.assertEqual(len(self.stored("Orders")), 4)
        rest = await self.submit("/dead-letters/resend", name="audit", which="rest")
        while "All were sent again" not in rest.words:
            rest = await self.get("/dead-letters/progress", name="audit")
        self.assertIn("audit 3 0", (await self.get("/dead-letters")).words)
        other = self.stored("Orders")[0].msg_id
        foreign = await self.submit("/dead-letters/resend", name="audit", id=[other])
        self.assertEqual(foreign.status, 400)
        self.assertIn("Not all of these are dead letters of audit", foreign.words)

    async def test_delayed_messages_wait_by_level(self) -> None:
        message = Message.make("Orders", b"later", None, "late")
        message.delay_time_level = 5
        await self.send(message)
        self.assertIn("Delay Messages 1m 1", (await self.get("/waiting")).words)
        page = await self.get("/waiting/delayed", address=self.cluster.broker_address, level=5)
        self.assertIn("The next 1 of 1 messages", page.words)
        self.assertIn("Orders", page.words)


async def _refused(remark: str) -> Any:
    raise BrokerError(ResponseCode.SYSTEM_ERROR, remark)


async def _given(value: Any) -> Any:
    return value


class NobodyThere(ConsoleCase):
    async def test_without_a_name_server_pages_say_what_to_do(self) -> None:
        await self.log_in()
        await self.cluster.stop()
        for path in ("/", "/topics", "/groups", "/dead-letters", "/waiting"):
            reply = await self.get(path)
            self.assertEqual(reply.status, 502, path)
            self.assertIn("No name server answers", reply.words)
            self.assertIn("start one with `mq up`", reply.words)
        self.assertEqual((await self.get("/charts")).status, 200)

    async def test_without_a_broker_pages_show_what_name_servers_know(self) -> None:
        await self.log_in()
        await self.send(Message("Orders", b"one"))
        await self.cluster.broker.stopService()
        await self.wait(lambda: not self.cluster.namesrv.routes.live)
        for path in ("/", "/topics", "/groups", "/dead-letters", "/waiting", "/charts", "/messages?topic=Orders"):
            self.assertIn((await self.get(path)).status, (200, 404), path)
        self.assertIn("No broker", (await self.get("/")).words)
        refused = await self.submit("/topics/create", name="Made", read_queues=1, write_queues=1, perm=6)
        self.assertEqual((refused.status, "No master is running" in refused.words), (400, True))
        self.assertEqual((await self.get("/topic", name="Orders")).status, 404)
