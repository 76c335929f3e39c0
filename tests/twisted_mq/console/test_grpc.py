"""Messages that pass between gRPC and remoting clients, as the console shows them; gRPC clients on its pages."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from typing import Any

from twisted.internet.threads import deferToThread

from tests.support.grpc_client import GrpcClient, code
from tests.twisted_mq.console.browser import ConsoleCase, reactor
from twisted_mq.admin.sending import send_once
from twisted_mq.client.consuming.consumer_options import ConsumerOptions, ConsumeStatus
from twisted_mq.client.consuming.push_consumer import PushConsumer
from twisted_mq.protocol.bodies import SubscriptionGroupConfig, TopicConfig
from twisted_mq.protocol.messages.message import Message

TOPIC, GROUP = "Orders", "audit"


class GrpcPages(ConsoleCase):
    async def setUp(self) -> None:
        await super().setUp()
        await self.log_in()
        controller = self.cluster.broker.controller
        controller.topics.update([TopicConfig(TOPIC, 1, 1)])
        controller.groups.update(SubscriptionGroupConfig(GROUP))
        await self.wait_route(TOPIC)
        self.client = GrpcClient(self.cluster.serve_grpc())
        self.addCleanup(self.client.__exit__, None, None, None)

    def of_client(self, work: Callable[..., Any], *given: Any, **fields: Any) -> Any:
        """Do what blocks a thread."""
        return deferToThread(work, *given, **fields)

    async def page_of_id(self, message_id: str) -> Any:
        """The page of a message, found by its id."""
        found = await self.get("/messages", by="id", topic=TOPIC, id=message_id)
        return await self.ask("GET", found.header("location") or "")

    async def test_what_grpc_sends_and_remoting_consumes_is_shown_with_its_trace(self) -> None:
        message_id = f"01{uuid.uuid4().hex.upper()}"
        sent = await self.of_client(
            self.client.send, TOPIC, b"a chair", message_id=message_id, tag="new", keys=["order-7"]
        )
        self.assertEqual(code(sent), "OK")
        options = ConsumerOptions(message_trace=True)
        consumer = PushConsumer(reactor, GROUP, self.cluster.name_server, options=options)
        consumer.subscribe(TOPIC, "*")
        taken: list[Any] = []
        consumer.listen(lambda messages, context: taken.extend(messages) or ConsumeStatus.CONSUME_SUCCESS)
        await consumer.start()
        await self.wait(lambda: taken)
        await consumer.stop()  # its offset and its traces are at the broker then
        self.assertIn("1 messages", (await self.get("/messages", by="key", topic=TOPIC, key="order-7")).words)
        page = await self.page_of_id(message_id)
        for text in ("a chair", "order-7", message_id, f"consumed {GROUP}"):
            self.assertIn(text, page.words)

    async def test_what_remoting_sends_and_grpc_consumes_is_shown_with_its_trace(self) -> None:
        admin = self.console.admin(None)
        self.addCleanup(admin.client.close)
        result = await send_once(admin, Message.make(TOPIC, b"a table", "new", "order-8"), "shop", trace=True)
        await self.of_client(self.client.settle_consumer, TOPIC, GROUP, client_type="PUSH_CONSUMER")
        [got] = await self.of_client(self.client.receive, TOPIC, GROUP, auto_renew=True)
        self.assertEqual((got.body, got.system_properties.message_id), (b"a table", result.msg_id))
        entry = {
            "message_id": got.system_properties.message_id,
            "receipt_handle": got.system_properties.receipt_handle,
        }
        acked = await self.of_client(
            self.client.call, "AckMessage", group={"name": GROUP}, topic={"name": TOPIC}, entries=[entry]
        )
        self.assertEqual(code(acked), "OK")
        page = await self.page_of_id(result.msg_id)
        self.assertRegex(page.words, r"sent shop 127.0.0.1 .* success to 127.0.0.1:\d+")
        self.assertRegex(page.words, rf"{GROUP} consumed")

    async def test_page_of_a_grpc_consumer_has_its_threads_and_hands_it_a_message(self) -> None:
        await self.of_client(self.client.send, TOPIC, b"a lamp")
        await self.of_client(self.client.settle_consumer, TOPIC, GROUP, client_type="PUSH_CONSUMER")
        asked = threading.Thread(target=self.answer_two, daemon=True)
        asked.start()
        client_id = self.client.client_id
        page = await self.get("/group/client", group=GROUP, client=client_id, stack="yes")
        self.assertIn("worker-1 RUNNABLE", page.words)
        self.assertIn("PROP_CONSUME_TYPE CONSUME_PASSIVELY", page.words)
        [stored] = self.stored(TOPIC)
        done = await self.submit("/message/consume", topic=TOPIC, group=GROUP, client=client_id, id=stored.msg_id)
        self.assertIn(f"{client_id} answered CR_SUCCESS after", done.words)

    def answer_two(self) -> None:
        """Answer for its thread stacks, and for a message."""
        nonce = self.client.told.get(timeout=20).print_thread_stack_trace_command.nonce
        stack = {"nonce": nonce, "thread_stack_trace": "worker-1 RUNNABLE"}
        self.client.tell(status={"code": 20000}, thread_stack_trace=stack)
        nonce = self.client.told.get(timeout=20).verify_message_command.nonce
        self.client.tell(status={"code": 20000}, verify_message_result={"nonce": nonce})
