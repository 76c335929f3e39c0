"""A store directory that Apache's broker and this project's use in turns, after clean stops and kills.

Each broker serves every message, finds every key and has every offset of the one before.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from interop.peers.clients import Clients, JavaPeer, PullConsumer, flat, unique
from interop.peers.process import wait_until
from interop.peers.servers import CLUSTER_NAME, Cluster
from interop.peers.waiting import ALL_QUEUES
from twisted_mq.protocol.layouts.index import IndexSizes
from twisted_mq.storage.check import check_store

pytestmark = pytest.mark.peer

INDEX = IndexSizes(slots=40, entries=60)
"""So small that each turn fills files."""
A_TURN = 46
"""Messages sent in one turn, each with a key of its own and one of its turn.

At the first kill three turns have filled seven index files of 59 entries, and the last key is alone in the eighth.
"""
OWN, OTHER = "ours", "apache"
Turn = tuple[str, bool]
"""A broker that serves, and True for a clean stop."""


@attrs.define(eq=False)
class SmallFiles(Cluster):
    """A cluster whose store consists of many small files."""

    def _broker_settings(self) -> dict[str, object]:
        return super()._broker_settings() | {
            "mappedFileSizeCommitLog": 16 * 1024,
            "mappedFileSizeConsumeQueue": 400,
            "maxHashSlotNum": INDEX.slots,
            "maxIndexNum": INDEX.entries,
            "maxMessageSize": 4096,
        }


@attrs.define(eq=False)
class Relay:
    """Hands one store from broker to broker; the name server is this project's all the time."""

    cluster: Cluster
    java: JavaPeer
    clients: Clients
    topic: str = attrs.field(factory=lambda: unique("Relay"))
    group: str = attrs.field(factory=lambda: unique("RelayGroup"))
    turns: int = 0

    def open(self, kind: str) -> None:
        self.cluster.kind = kind
        self.cluster.start_broker()
        self.cluster.wait_route(self.topic)

    def leave(self, cleanly: bool) -> None:
        self.clients.stop()
        if cleanly:
            self.cluster.stop_broker()
        else:
            self.cluster.kill_broker()
        assert (self.cluster.store / "abort").exists() is not cleanly

    def admin(self, command: str, *arguments: str) -> list[str]:
        """Return the output of mqadmin, without empty lines and with single spaces."""
        printed = self.java.mqadmin(command, "-n", self.cluster.name_server, *arguments)
        return [" ".join(line.split()) for line in printed.splitlines() if line.strip()]

    def send(self) -> None:
        """A turn's messages, acknowledged one by one."""
        producer = self.clients.producer(retries=5)
        messages = [
            {"topic": self.topic, "body": f"turn {self.turns} number {number}", "tags": f"Tag{number % 3}",
             "keys": f"turn{self.turns} own{self.turns}x{number}"}
            for number in range(A_TURN)
        ]  # fmt: skip
        results = producer.command("send_all", messages=messages)
        assert {result["status"] for result in results} == {"SEND_OK"}
        self.turns += 1

    def messages(self) -> list[Any]:
        """Every message as pulls give it, queue by queue, once all are visible."""
        reader = self.clients.pull_consumer(unique("Reader"))
        found: list[Any] = []

        def complete() -> bool:
            found[:] = flat(self._queue(reader, queue_id) for queue_id in ALL_QUEUES)
            return len(found) >= self.turns * A_TURN

        wait_until(complete, f"{self.turns * A_TURN} messages in {self.topic}")
        reader.stop()
        return found

    def _queue(self, reader: PullConsumer, queue_id: int) -> list[Any]:
        found: list[Any] = []
        while new := reader.command("pull", self.topic, queue_id, tags="*", offset=len(found), max=32)["messages"]:
            for one in new:
                del one["received_at_ms"], one["properties"]["MAX_OFFSET"]  # these tell of the moment of the pull
            found += new
        return found

    def found(self, key: str) -> list[str]:
        """A headline, and a line for each message with the key.

        Each counts once: Apache's start after a crash indexes the last record of the last file that it keeps again. That is
        the last message of all if its last keys are alone in that file, and the checkpoint has its time.
        """
        return list(dict.fromkeys(self.admin("queryMsgByKey", "-t", self.topic, "-k", key)))

    def keys(self) -> list[str]:
        return [
            *(f"turn{turn}" for turn in range(self.turns)),
            *(f"own{turn}x{number}" for turn in range(self.turns) for number in (0, A_TURN - 1)),
        ]

    def answers(self) -> dict[str, list[str]]:
        """mqadmin's answers to everything that the store must know."""
        unique_keys = [message["msg_id"] for message in self.messages()[:: A_TURN // 2]]
        found = {key: self.found(key) for key in [*self.keys(), *unique_keys]}
        status = self.admin("topicStatus", "-t", self.topic)
        progress = self.admin("consumerProgress", "-g", self.group)
        return found | {
            "status": [line for line in status if "TPS" not in line],
            "progress": [line for line in progress if line.split()[0] == self.topic],
        }

    def settled_answers(self) -> dict[str, list[str]]:
        """The answers once the last message is indexed, which Apache's broker does a moment after it answered."""
        last = f"own{self.turns - 1}x{A_TURN - 1}"
        wait_until(lambda: len(self.found(last)) == 2, lambda: f"the last key is found: {self.found(last)}")
        return self.answers()

    def problems(self) -> list[str]:
        return [str(problem) for problem in check_store(str(self.cluster.store), index_sizes=INDEX)]


@pytest.fixture
def relay(java: JavaPeer, tmp_path: Path) -> Iterator[Relay]:
    cluster = SmallFiles(OWN, tmp_path / "relay")
    cluster.start()
    relay = Relay(cluster, java, Clients(java, cluster.name_server))
    relay.admin("updateTopic", "-c", CLUSTER_NAME, "-t", relay.topic, "-r", "4", "-w", "4")
    cluster.wait_route(relay.topic)
    try:
        yield relay
    finally:
        relay.clients.stop()
        cluster.stop()


THREE_TIMES: tuple[Turn, ...] = ((OWN, True), (OTHER, True), (OWN, False), (OTHER, False), (OWN, True), (OTHER, False))
"""Turns of both brokers; each gets a store from the other's clean stop and from its kill."""


def test_a_store_goes_to_and_fro_three_times(relay: Relay) -> None:
    consumer = relay.clients.push_consumer(relay.group, relay.topic)
    relay.send()
    consumer.wait(lambda messages: len(messages) == A_TURN)
    consumer.stop()
    for position, (kind, cleanly) in enumerate(THREE_TIMES):
        if position:
            relay.send()
        messages, answers = relay.messages(), relay.settled_answers()
        relay.leave(cleanly)
        if kind == OWN and cleanly:
            assert relay.problems() == []
        relay.open(THREE_TIMES[position + 1][0] if position + 1 < len(THREE_TIMES) else OWN)
        assert relay.messages() == messages
        assert relay.settled_answers() == answers
        assert {len(answers[f"turn{turn}"]) for turn in range(relay.turns)} == {1 + A_TURN}
        assert len(answers["progress"]) == len(ALL_QUEUES)
    relay.leave(cleanly=True)
    assert relay.problems() == []
