"""Subcommands against an embedded name server and broker, over real sockets of the loopback."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from typing import Any

from twisted.internet import reactor as global_reactor
from twisted.internet.task import deferLater
from twisted.trial.unittest import TestCase

from twisted_mq.admin.errors import AdminError
from twisted_mq.cli.admin.calls import AdminContext
from twisted_mq.cli.admin.command_line import UsageError, parse_command_line
from twisted_mq.cli.admin.registry import find_sub_command
from twisted_mq.client.consuming.consumer_options import ConsumeStatus
from twisted_mq.client.consuming.push_consumer import PushConsumer
from twisted_mq.client.core.message import Message
from twisted_mq.client.producing.producer import Producer
from twisted_mq.client.producing.send_result import SendResult
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.errors import RocketMQError
from twisted_mq.remoting.client import RemotingClient
from twisted_mq.testing import EmbeddedCluster

reactor: Any = global_reactor

TOPIC, GROUP, PRODUCERS = "Orders", "audit", "shop"
QUEUES = 4
TIMEOUT_SECONDS = 20.0


class AdminCase(TestCase):
    """A cluster with a topic of four queues and eight messages; `run_line` is what mqadmin does with a line."""

    timeout = 60
    broker_options: Mapping[str, Any] = {}

    async def setUp(self) -> None:
        self.cluster = await EmbeddedCluster(reactor, broker_options=self.broker_options).start()
        self.addCleanup(self.cluster.stop)
        self.folder = self.mktemp()
        os.mkdir(self.folder)
        self.remoting = RemotingClient(reactor)
        self.addCleanup(self.remoting.close)
        self.warnings: list[str] = []
        self.patch(tempfile, "tempdir", self.folder)
        await self.run_line(f"updateTopic -b BROKER -t {TOPIC} -r {QUEUES} -w {QUEUES}")
        await self.wait(lambda: self.has_route(TOPIC))
        self.producer = Producer(reactor, PRODUCERS, self.cluster.name_server)
        await self.producer.start()
        self.addCleanup(self.producer.stop)
        self.sent = [await self.send(number) for number in range(8)]

    def has_route(self, topic: str) -> bool:
        return topic in self.cluster.namesrv.routes.topics

    async def send(self, number: int) -> SendResult:
        queue = MessageQueue(TOPIC, "broker-a", number % QUEUES)
        message = Message(TOPIC, f"body {number}".encode(), "TagA", f"key{number}")
        return await self.producer.send(message, queue)

    async def consume_all(self) -> PushConsumer:
        """A consumer that has taken all messages and has told the broker."""
        taken: list[bytes] = []

        def listen(messages: Any, context: Any) -> ConsumeStatus:
            taken.extend(message.body for message in messages)
            return ConsumeStatus.CONSUME_SUCCESS

        consumer = PushConsumer(reactor, GROUP, self.cluster.name_server)
        consumer.subscribe(TOPIC, "*")
        consumer.listen(listen)
        await consumer.start()
        self.addCleanup(consumer.stop)
        await self.wait(lambda: len(taken) >= 8)
        await consumer.persist_offsets()
        return consumer

    async def wait(self, holds: Any) -> None:
        """Until something holds; the test's own time ends a wait without hope."""
        while not holds():
            await deferLater(reactor, 0.02)

    def context(self, lines: list[str], as_json: bool) -> AdminContext:
        return AdminContext(
            client=self.remoting,
            name_servers=[self.cluster.name_server],
            echo=lines.append,
            warn=self.warnings.append,
            now_ms=lambda: int(reactor.seconds() * 1000),
            sleep=lambda seconds: deferLater(reactor, seconds),
            reactor=reactor,
            as_json=as_json,
        )

    async def run_line(self, text: str) -> str:
        """Return the output of a command line. BROKER is replaced with the broker's address, CLUSTER with its cluster."""
        words = {"BROKER": self.cluster.broker_address, "CLUSTER": "DefaultCluster"}
        name, *arguments = [words.get(word, word) for word in text.split(" ")]
        command = find_sub_command(name)
        assert command is not None
        line = parse_command_line(command.all_options, arguments)
        lines: list[str] = []
        await command.run(self.context(lines, "json" in line), line)
        return "\n".join(lines)

    async def shown(self, text: str) -> list[str]:
        """Return the output of a command line, with names for the servers' addresses, and single blanks."""
        printed = await self.run_line(text)
        for address, word in ((self.cluster.broker_address, "BROKER"), (self.cluster.name_server, "NAMESRV")):
            printed = printed.replace(address, word)
        return [" ".join(line.split()) for line in printed.split("\n")]

    async def fails(self, text: str) -> str:
        """Why a command line fails."""
        try:
            await self.run_line(text)
        except (AdminError, RocketMQError, UsageError) as error:
            return str(error)
        raise AssertionError(f"{text} did not fail")

    async def run_json(self, text: str) -> list[Any]:
        """The values of a line with --json."""
        return [json.loads(line) for line in (await self.run_line(f"{text} --json")).splitlines()]
