"""Runs a name server and a broker in the test's process, in a thread of their own: for tests of any kind and any runner.

with EmbeddedServer() as mq_server:
    ... clients connect to mq_server.namesrv ...

All calls block until they are done. If the test's clients need the event loop that the test runs on, make the calls that wait
for clients (`wait_until_consumed`, `send_and_wait`) in another thread. `BrokerMixin` is for TestCases of unittest and trial.
"""

from __future__ import annotations

import asyncio
import itertools
import re
import unittest
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeAlias, TypeVar

from twisted.internet import task

from twisted_mq.broker.controller import BrokerController
from twisted_mq.client import Message, Producer, SendResult
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.protocol.names.system_topics import DLQ_PREFIX
from twisted_mq.testing.cluster import EmbeddedCluster, Settings
from twisted_mq.testing.faults import Faults
from twisted_mq.testing.reactor_thread import shared_thread
from twisted_mq.testing.stored import left_over, make_topic, messages_of

if TYPE_CHECKING:
    Case = unittest.TestCase
else:
    Case = object

StoreKind: TypeAlias = Literal["file", "memory"]
"""Messages are in files or in memory."""

Result = TypeVar("Result")

LOOK_SECONDS = 0.01
"""The interval of checks whether a group has consumed."""
NEVER_MS = 86_400_000
"""No test takes a day: until then the disk is not measured, and nothing expires."""
STOOD_STILL = "; the event loop of this thread was blocked during the wait: use await asyncio.to_thread(...)"
LONGEST_NAME = 60
QUEUES = 4


class NotConsumed(AssertionError):
    """Raised when a group did not consume all messages of a topic in time; the text says how far it came."""


class EmbeddedServer:
    """A server that runs between `start` and `stop`, or inside a `with` block; on free ports of 127.0.0.1, the store in a
    temporary folder.

    `store` is "file" or "memory". The options are those of EmbeddedCluster. `busy`, `slow`, `losing_connections` and
    `full_disk` are its faults, see Faults.
    """

    def __init__(
        self,
        *,
        store: StoreKind = "file",
        broker_options: Settings | None = None,
        namesrv_options: Settings | None = None,
    ) -> None:
        if store not in ("file", "memory"):
            raise ValueError(f'store must be "file" or "memory", got {store!r}')
        self._thread = shared_thread()
        self._cluster = EmbeddedCluster(
            self._thread.reactor,
            broker_options={"clean_resource_interval": NEVER_MS, **(broker_options or {})},
            namesrv_options=namesrv_options,
            in_memory=store == "memory",
        )
        self._producer: Producer | None = None
        self._numbers = itertools.count(1)
        faults = Faults(lambda: self._cluster.broker, self._thread.reactor, self._thread.call)
        self.busy, self.slow = faults.busy, faults.slow
        self.losing_connections, self.full_disk = faults.losing_connections, faults.full_disk

    @property
    def namesrv(self) -> str:
        """Return the name server's address."""
        return self._cluster.name_server

    @property
    def broker(self) -> str:
        """Return the broker's address."""
        return self._cluster.broker_address

    @property
    def grpc(self) -> str:
        """Return the address for clients of 5.x, as their endpoints take it; they are served from the first call on."""
        return self._thread.call(self._cluster.serve_grpc)

    @property
    def store_path(self) -> str:
        """Return the store's directory."""
        return self._cluster.store_path

    # life

    def start(self) -> Self:
        """Start the servers; they run when this returns."""
        self._thread.wait_for(self._cluster.start)
        return self

    def stop(self) -> None:
        """Stop the servers and remove the folder. A second call does nothing."""
        self._thread.wait_for(self._stop)

    async def _stop(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            await producer.stop()
        await self._cluster.stop()

    def restart_broker(self) -> None:
        """Restart the broker on the same messages and ports: clients lose their connections, and find it again."""
        self._thread.wait_for(self._cluster.restart_broker)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.stop()

    # topics and messages

    def new_topic(self, name: str = "topic", queues: int = QUEUES) -> str:
        """Create a new topic; its name begins with `name`, with characters that topics may have."""
        fit = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:LONGEST_NAME]
        topic = f"{fit or 'topic'}-{next(self._numbers)}"
        self._thread.wait_for(lambda: make_topic(self._controller, topic, queues))
        return topic

    def send(self, message: Message) -> SendResult:
        """Send one message with the server's own producer. Raises the errors of Producer.send."""
        return self._thread.wait_for(lambda: self._send(message))

    async def _send(self, message: Message) -> SendResult:
        if self._producer is None:
            self._producer = Producer(self._thread.reactor, "mq_server", self.namesrv)
            await self._producer.start()
        return await self._producer.send(message)

    def send_and_wait(self, message: Message, group: str, timeout: float = 10.0) -> SendResult:
        """Send, then wait as `wait_until_consumed` does."""
        result = self.send(message)
        self.wait_until_consumed(message.topic, group, timeout)
        return result

    def wait_until_consumed(self, topic: str, group: str, timeout: float = 10.0) -> None:
        """Wait until the group has consumed all messages of the topic. Messages that it refused, to retry later, count as
        consumed.

        Raises NotConsumed after `timeout` seconds.
        """
        advice = STOOD_STILL if _runs_a_loop() else ""
        self._thread.wait_for(lambda: self._consumed(topic, group, timeout, advice))

    async def _consumed(self, topic: str, group: str, timeout: float, advice: str) -> None:
        clock = self._thread.reactor
        deadline = clock.seconds() + timeout
        while left := await left_over(self._controller, topic, group):
            if clock.seconds() >= deadline:
                raise NotConsumed(f"{group} has not consumed {topic} after {timeout} s, left by queue: {left}{advice}")
            await task.deferLater(clock, LOOK_SECONDS)

    def messages(self, topic: str) -> Sequence[MessageExt]:
        """Return all messages of a topic, in the order in which they were stored."""
        return self._thread.call(lambda: messages_of(self._controller.store, topic))

    def dead_letters(self, group: str) -> Sequence[MessageExt]:
        """Return the messages that a group refused for good."""
        return self.messages(DLQ_PREFIX + group)

    @property
    def _controller(self) -> BrokerController:
        return self._cluster.broker.controller


def _runs_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class BrokerMixin(Case):
    """Gives each test an EmbeddedServer, `mq_server`, and a topic, `mq_topic`. Name it before the TestCase."""

    mq_settings: ClassVar[Mapping[str, Any]] = {}
    """Arguments of EmbeddedServer."""
    mq_server: EmbeddedServer
    mq_topic: str

    def setUp(self) -> None:
        super().setUp()
        self.mq_server = EmbeddedServer(**self.mq_settings).start()
        self.addCleanup(self.mq_server.stop)
        self.mq_topic = self.mq_server.new_topic(self.id().rpartition(".")[2])
