"""Several brokers of one name server, restarted in turn while a query in Spark reads their topic."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from interop.peers.process import wait_until
from interop.peers.servers import Cluster
from tests.spark.live.brokers import Broker

NAMES = ("broker-a", "broker-b", "broker-c")
TURNS = 2
"""Number of restarts of each broker: by SIGTERM, and by SIGKILL."""
QUEUES = 2


@attrs.define(eq=False)
class Member(Cluster):
    """A broker at the name server of another cluster."""

    def start(self) -> None:
        (self.directory / "home").mkdir(parents=True)
        self._file("broker.conf", {**self._broker_settings(), **self.settings})
        self.start_broker()


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[list[Cluster]]:
    """Each has on its disk what it acknowledged."""
    started: list[Cluster] = []
    try:
        for name in NAMES:
            settings = {"brokerName": name, "flushDiskType": "SYNC_FLUSH"}
            if started:
                started.append(Member("ours", tmp_path / name, started[0].name_server_port, settings=settings))
            else:
                started.append(Cluster("ours", tmp_path / name, settings=settings))
            started[-1].start()
        yield started
    finally:
        for one in reversed(started):
            one.stop()


def test_brokers_restarted_in_turn_end_no_query(session: SparkSession, servers: list[Cluster], tmp_path: Path) -> None:
    """While one is away the others get messages, and it gets some when it is back: each is a row once."""
    brokers = [Broker(servers[0].name_server, one.broker, str(one.settings["brokerName"])) for one in servers]
    for broker in brokers:
        broker.topic(QUEUES, "Rolling")
    sent: list[str] = []

    def send(*those: Broker) -> None:
        for broker, queue in itertools.product(those, range(QUEUES)):
            texts = [f"{broker.name} {queue} {len(sent) + number}" for number in range(10)]
            broker.send("Rolling", [text.encode() for text in texts], queue)
            sent.extend(texts)

    def read() -> list[str]:
        return [row.text for row in session.sql("SELECT text FROM rolling").collect()]

    options = {"nameServer": servers[0].name_server, "topic": "Rolling", "startingOffsets": "earliest"}
    stream = session.readStream.format("rocketmq").options(**options).load()
    writer = stream.select(F.col("body").cast("string").alias("text")).writeStream.format("memory")
    query = writer.queryName("rolling").option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    try:
        send(*brokers)
        for turn, number in itertools.product(range(TURNS), range(len(servers))):
            servers[number].kill_broker() if turn else servers[number].stop_broker()
            send(*(broker for broker in brokers if broker is not brokers[number]))
            servers[number].start_broker()
            send(brokers[number])
            wait_until(lambda: not query.isActive or len(read()) >= len(sent), lambda: f"{query.lastProgress}")
            assert query.exception() is None
        assert sorted(read()) == sorted(sent)
    finally:
        query.stop()
