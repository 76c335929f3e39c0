"""`mq replay` from Kafka's broker and RabbitMQ's server: killed in the middle and run again, nothing is missing."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeVar

import attrs
import pytest

from interop.peers.other_systems import Kafka, Rabbit, environment, kafka_problem, program, rabbit_problem
from interop.peers.process import wait_until
from interop.peers.requirements import unavailable
from twisted_mq.cli.other_systems import AT_ONCE
from twisted_mq.cli.replay import GROUP
from twisted_mq.protocol.bodies import TopicConfig
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.testing import EmbeddedServer

pytestmark = pytest.mark.peer

System = TypeVar("System", Kafka, Rabbit)

MQ = str(Path(sys.executable).with_name("mq"))
COUNT, PARTITIONS, RATE = 600, 3, 200
KILLED_AFTER = 150


@contextlib.contextmanager
def started(system: System, problem: str | None) -> Iterator[System]:
    """Start it, and stop it at the end. With a problem the test skips, or fails with CI=true."""
    if problem is not None:
        unavailable(problem)
    try:
        system.start()
        yield system
    finally:
        system.stop()


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    with started(Kafka(tmp_path_factory.mktemp("kafka") / "kafka"), kafka_problem()) as server:
        yield server


@pytest.fixture(scope="module")
def rabbit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rabbit]:
    with started(Rabbit(tmp_path_factory.mktemp("rabbit") / "rabbit"), rabbit_problem()) as server:
        yield server


@pytest.fixture
def ours() -> Iterator[EmbeddedServer]:
    with EmbeddedServer() as server:
        server._thread.call(lambda: server._controller.topics.update([TopicConfig("Orders", PARTITIONS, PARTITIONS)]))
        yield server


@attrs.frozen
class Replay:
    """A command `mq replay` to the topic Orders."""

    words: tuple[str, ...]
    server: EmbeddedServer
    more: Mapping[str, str] = attrs.field(factory=dict)
    source: str = "orders"

    def start(self, *words: str) -> subprocess.Popen[str]:
        command = [MQ, "replay", self.source, *self.words, "--to", "Orders", "--json", *words]
        settings = {**environment(), "NAMESRV_ADDR": self.server.namesrv, **self.more}
        return subprocess.Popen(command, env=settings, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, *words: str, code: int = 0) -> dict[str, int]:
        run = self.start(*words)
        out, error = run.communicate(timeout=120)
        assert run.returncode == code, error
        return json.loads(out) if code == 0 else {}

    def come(self) -> list[MessageExt]:
        return sorted(self.server.messages("Orders"), key=lambda one: (one.queue_id, one.queue_offset))

    def killed_and_run_again(self) -> int:
        """Move all messages in two runs, of which the first is killed; how many came twice."""
        first, began = self.start("--rate", str(RATE)), time.monotonic()
        wait_until(lambda: len(self.come()) >= KILLED_AFTER, "the first messages have come")
        first.kill()
        first.communicate()
        before, seconds = len(self.come()), time.monotonic() - began
        assert before <= seconds * RATE + AT_ONCE
        assert before < COUNT
        second = self.run("--idle", "2")
        assert second["messages"] < COUNT
        found = self.come()
        assert len(found) == before + second["messages"]
        assert {int(one.body) for one in found} == set(range(COUNT))
        return len(found) - COUNT


def first_of_each(found: list[MessageExt], queue_id: int) -> list[int]:
    """Return what a queue has, each message where it came first."""
    return list(dict.fromkeys(int(one.body) for one in found if one.queue_id == queue_id))


def test_messages_of_kafka_all_come_although_a_run_was_killed(kafka: Kafka, ours: EmbeddedServer) -> None:
    program("kafka", kafka.address, "orders", str(PARTITIONS), str(COUNT))
    replay = Replay(("--kafka", kafka.address), ours)
    assert replay.killed_and_run_again() <= AT_ONCE
    found = replay.come()
    for partition in range(PARTITIONS):
        assert first_of_each(found, partition) == list(range(partition, COUNT, PARTITIONS))
    assert {(one.keys[0], one.properties["size"]) for one in found} == {(f"key-{n}", str(n)) for n in range(COUNT)}
    assert int(program("committed", kafka.address, "orders", GROUP)) == COUNT
    assert replay.run("--idle", "0")["messages"] == 0


def test_a_topic_that_kafka_lacks_is_an_error(kafka: Kafka, ours: EmbeddedServer) -> None:
    _, error = Replay(("--kafka", kafka.address), ours, source="none").start().communicate(timeout=60)
    assert "Kafka has no topic none" in error


def test_messages_of_rabbitmq_all_come_although_a_run_was_killed(rabbit: Rabbit, ours: EmbeddedServer) -> None:
    program("rabbit", rabbit.url, "orders", str(COUNT))
    replay = Replay((), ours, {"MQ_RABBITMQ": rabbit.url})
    assert replay.killed_and_run_again() <= AT_ONCE
    found = replay.come()
    assert first_of_each(found, 0) == list(range(COUNT))
    assert {(one.keys[0], one.properties["size"], one.properties["content_type"]) for one in found} == {
        (f"key-{n}", str(n), "text/plain") for n in range(COUNT)
    }
    assert int(program("left", rabbit.url, "orders")) == 0


def test_a_queue_that_rabbitmq_lacks_is_an_error(rabbit: Rabbit, ours: EmbeddedServer) -> None:
    replay = Replay((), ours, {"MQ_RABBITMQ": rabbit.url}, source="none")
    _, error = replay.start("--idle", "1").communicate(timeout=60)
    assert "no queue 'none'" in error
