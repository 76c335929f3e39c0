"""Replication between this project's brokers and Apache's, both ways: stores compared, sides killed, read from the slave."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from interop.peers.clients import Clients, JavaPeer, Producer, bodies, unique
from interop.peers.process import wait_until
from interop.peers.replicas import Member, ReplicaPair, queues, records
from interop.peers.requirements import require_java
from interop.peers.servers import CLUSTER_NAME

pytestmark = pytest.mark.peer

KINDS = {"our slave": ("apache", "ours"), "our master": ("ours", "apache")}
MESSAGES = 5000
METADATA_SECONDS = 100
"""Apache's slave copies its master's tables for the first time a minute after its start."""


@attrs.define(eq=False)
class Running:
    """A pair with clients and a topic; `sent` are the bodies in it. The tests of one pair build on each other."""

    pair: ReplicaPair
    clients: Clients
    topic: str
    sent: set[str] = attrs.field(factory=set)


@pytest.fixture(scope="module")
def pairs(java: JavaPeer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Running]]:
    """Both pairs run through the whole module, so that Apache's slave may wait for its minute meanwhile."""
    require_java()
    running: dict[str, Running] = {}
    try:
        for name, (master, slave) in KINDS.items():
            pair = ReplicaPair.make(master, slave, tmp_path_factory.mktemp("pair"))
            running[name] = Running(pair, Clients(java, pair.name_server), unique("Replicated"))
            pair.slave.start()
            names = ("-n", pair.name_server, "-c", CLUSTER_NAME, "-t", running[name].topic)
            java.mqadmin("updateTopic", *names, "-r", "4", "-w", "4")
        yield running
    finally:
        for one in running.values():
            one.clients.stop()
            one.pair.stop()


@pytest.fixture(params=list(KINDS))
def running(request: pytest.FixtureRequest, pairs: dict[str, Running]) -> Running:
    return pairs[request.param]


def send_mixed(producer: Producer, topic: str, count: int, word: str) -> set[str]:
    """Small and large, tagged and keyed, single and in batches; returns the bodies that were taken."""
    texts = [f"{word} {number} " + "x" * (number * 37 % 900) for number in range(count)]
    singles, batched = texts[: count // 2], texts[count // 2 :]
    stored = set(batched)
    for start in range(0, len(singles), 200):
        part = singles[start : start + 200]
        messages = [
            {"topic": topic, "body": text, "tags": f"Tag{index % 3}", "keys": f"key{index}"}
            for index, text in enumerate(part)
        ]
        results = producer.command("send_async", messages=messages)
        # a busy broker refuses some sends; what it takes in spite of that only has to be the same on both sides
        stored |= {text for text, result in zip(part, results, strict=True) if result.get("status") == "SEND_OK"}
    for start in range(0, len(batched), 50):
        batch = [{"topic": topic, "body": text, "tags": "TagB"} for text in batched[start : start + 50]]
        producer.command("send_batch", messages=batch)
    producer.send(topic, f"{word} " + "compressed " * 2000)
    assert len(stored) > count * 3 // 4
    return {*stored, f"{word} " + "compressed " * 2000}


def assert_equal_stores(pair: ReplicaPair, end: int) -> None:
    mine, theirs = records(pair.master.store), records(pair.slave.store)
    assert mine[-1][0] + len(mine[-1][1]) == end
    assert theirs == mine
    wait_until(lambda: queues(pair.slave.store) == queues(pair.master.store), "the slave's queues are the master's")


def test_slave_holds_the_masters_records_and_queues(running: Running) -> None:
    running.sent = send_mixed(running.clients.producer(), running.topic, MESSAGES, "first")
    assert_equal_stores(running.pair, running.pair.wait_caught_up())


def test_killed_slave_comes_back_and_catches_up(running: Running) -> None:
    """Killed in the middle of what it is sent."""
    producer, pair, topic = running.clients.producer(), running.pair, running.topic
    running.sent |= send_mixed(producer, topic, 300, "before the kill")
    pair.slave.kill()
    running.sent |= send_mixed(producer, topic, 300, "while it is away")
    pair.slave.start()
    running.sent |= send_mixed(producer, topic, 100, "after")
    assert_equal_stores(pair, pair.wait_caught_up())


def test_status_names_the_slave(running: Running, java: JavaPeer) -> None:
    pair = running.pair
    end = pair.wait_caught_up()
    status = pair.master.ha_status()
    (slave,) = status["haConnectionInfo"]
    assert (status["master"], status["inSyncSlaveNums"]) == (True, 1)
    assert status["masterCommitLogMaxOffset"] == end
    assert (slave["slaveAckOffset"], slave["diff"], slave["inSync"]) == (end, 0, True)
    assert slave["transferFromWhere"] == end
    printed = java.mqadmin("haStatus", "-n", pair.name_server, "-b", pair.master.address)
    assert f"#MasterCommitLogMaxOffset\t{end}" in printed
    assert "#SlaveNum\t1" in printed
    client = pair.slave.ha_status()["haClientRuntimeInfo"]
    assert (client["masterAddr"], client["maxOffset"]) == (f"127.0.0.1:{pair.master.port + 1}", end)


def test_slave_refuses_sends(running: Running, java: JavaPeer) -> None:
    fields = {"a": "G", "b": running.topic, "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "1", "h": "0", "j": "0"}
    answer = java.invoke(running.pair.slave.address, 310, fields, b"body")
    assert (answer["code"], answer["remark"]) == (2, "[REJECTREQUEST]system busy, start flow control for a while")


def topics_of(member: Member) -> set[str]:
    file = member.store / "config" / "topics.json"
    return set(json.loads(file.read_text())["topicConfigTable"]) if file.exists() else set()


def test_synchronous_sends_wait_for_apaches_slave(java: JavaPeer, tmp_path: Path) -> None:
    """Our SYNC_MASTER with inSyncReplicas 2: the answer says whether the slave has the message."""
    require_java()
    pair = ReplicaPair.make("ours", "apache", tmp_path, brokerRole="SYNC_MASTER", inSyncReplicas=2, slaveTimeout=1000)
    clients = Clients(java, pair.name_server)
    try:
        topic = unique("Sync")
        producer = clients.producer(retries=0)
        assert producer.send(topic, "nobody there")["status"] == "FLUSH_SLAVE_TIMEOUT"
        pair.slave.start()
        pair.wait_caught_up()
        statuses = [result["status"] for result in producer.send_all(topic, [f"sync {n}" for n in range(50)])]
        assert statuses == ["SEND_OK"] * 50
        assert_equal_stores(pair, pair.wait_caught_up())
        pair.slave.kill()
        wait_until(
            lambda: producer.send(topic, "gone")["status"] == "FLUSH_SLAVE_TIMEOUT", "the slave counts no longer"
        )
    finally:
        clients.stop()
        pair.stop()


def test_consumer_goes_on_at_the_slave_when_the_master_is_gone(running: Running) -> None:
    """The last test of a pair: the master is killed for good."""
    pair, topic = running.pair, running.topic
    pair.wait_caught_up()
    wait_until(lambda: topic in topics_of(pair.slave), "the slave has copied the topics", METADATA_SECONDS)
    pair.master.kill()
    consumer = running.clients.push_consumer(unique("Group"), topic)
    assert set(bodies(consumer.wait_bodies(running.sent))) >= running.sent
