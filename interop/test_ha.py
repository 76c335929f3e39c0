"""Replication between this project's brokers and Apache's, both ways: under load, with sides killed and links cut."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from interop.peers.clients import Clients, JavaPeer, Producer, bodies, unique
from interop.peers.line_peer import LinePeer, PeerError
from interop.peers.load import Load
from interop.peers.process import wait_until
from interop.peers.replicas import Member, ReplicaPair, queues
from interop.peers.requirements import require_java
from interop.peers.servers import CLUSTER_NAME
from twisted_mq.storage.store_reader import StoreReader
from twisted_mq.storage.tools.compare import StoreDifference, compare_stores

pytestmark = pytest.mark.peer

KINDS = {"our slave": ("apache", "ours"), "our master": ("ours", "apache")}
QUEUES = range(4)
MESSAGES = 1000
LOAD = 100_000
TRANSACTIONS = 40
SEND_ROUNDS = 20
SEED = 6
STATUS_FIELDS = {
    "haClientRuntimeInfo",
    "haConnectionInfo",
    "inSyncSlaveNums",
    "master",
    "masterCommitLogMaxOffset",
}
SLAVE_FIELDS = {"addr", "diff", "inSync", "slaveAckOffset", "transferFromWhere", "transferredByteInSecond"}
MOVING = re.compile(r" *-?\d+\.\d+\b|\d+:\d\d:\d\d,\d+| +-?\d+-\d+\(")
OURS = [sys.executable, "-c", "from twisted_mq.cli.mqadmin import main; main()"]
TRIES = 5
METADATA_SECONDS = 100
"""Apache's slave copies its master's tables for the first time a minute after its start."""


@attrs.define(eq=False)
class Running:
    """A pair with clients and a topic; `sent` are the bodies in it. The tests of one pair build on each other."""

    pair: ReplicaPair
    clients: Clients
    topic: str
    sent: set[str] = attrs.field(factory=set)
    group: str = ""


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
            make_topics(java, pair, running[name].topic)
        yield running
    finally:
        for one in running.values():
            one.clients.stop()
            one.pair.stop()


@pytest.fixture(params=list(KINDS))
def running(request: pytest.FixtureRequest, pairs: dict[str, Running]) -> Running:
    return pairs[request.param]


def make_topics(java: JavaPeer, pair: ReplicaPair, *topics: str) -> None:
    for topic in topics:
        names = ("-n", pair.name_server, "-c", CLUSTER_NAME, "-t", topic)
        java.mqadmin("updateTopic", *names, "-r", str(len(QUEUES)), "-w", str(len(QUEUES)))


def send_mixed(producer: Producer, topic: str, count: int) -> set[str]:
    """Small and large, tagged and keyed, single and in batches; returns the bodies."""
    texts = [f"{number} " + "x" * (number * 37 % 900) for number in range(count)]
    singles, batched = texts[: count // 2], texts[count // 2 :]
    send_singles(
        producer,
        [
            {"topic": topic, "body": text, "tags": f"Tag{number % 3}", "keys": f"key{number}"}
            for number, text in enumerate(singles)
        ],
    )
    for start in range(0, len(batched), 50):
        batch = [{"topic": topic, "body": text, "tags": "TagB"} for text in batched[start : start + 50]]
        producer.command("send_batch", messages=batch)
    producer.send(topic, "compressed " * 2000)
    return {*texts, "compressed " * 2000}


def send_singles(producer: Producer, messages: list[dict[str, str]]) -> None:
    """All at once, and those again that a busy broker refused; what it took in spite of that is there twice."""
    for _ in range(SEND_ROUNDS):
        results = producer.command("send_async", messages=messages)
        pairs = zip(messages, results, strict=True)
        messages = [message for message, result in pairs if result.get("status") != "SEND_OK"]
        if not messages:
            return
    raise AssertionError(f"{len(messages)} messages refused {SEND_ROUNDS} times")


def send_transactions(clients: Clients, topic: str) -> int:
    """All at once, every second one is rolled back; returns how many messages come of those that a busy broker took."""
    producer, peer = clients.transaction_producer(unique("Transactions")), clients.peer
    decisions = ["commit", "rollback"] * (TRANSACTIONS // 2)
    begun = [
        peer.begin(
            "send_in_transaction", producer=producer.name, topic=topic, body=f"{n}", properties={"local": decision}
        )
        for n, decision in enumerate(decisions)
    ]
    taken = [decision for number, decision in zip(begun, decisions, strict=True) if is_taken(peer, number)]
    assert len(taken) > TRANSACTIONS // 2
    return taken.count("commit")


def is_taken(peer: LinePeer, number: int) -> bool:
    try:
        return bool(peer.finish(number)["status"] == "SEND_OK")
    except PeerError:
        return False


def assert_delivered(member: Member, topics: list[str], load: Load, more: int) -> None:
    """Everything is in its queue: delayed and transactional messages come later than the sends' answers.

    Apache's busy broker may have taken what it refused.
    """
    count = load.stored + more

    def delivered() -> int:
        return sum(member.max_offset(topic, queue_id) for topic in topics for queue_id in QUEUES)

    wait_until(lambda: delivered() >= count, f"{count} messages in {topics}")
    assert delivered() <= count + load.sent["BUSY"]


def assert_equal_stores(pair: ReplicaPair, kills: int = 0) -> None:
    """Both logs, record by record, and what is made of them; `kills` is how often the slave was killed."""
    end, difference = settled_difference(pair)
    if difference and pair.slave.kind == "apache":
        assert_torn_by_kills(pair, kills)
        return
    assert not difference, difference
    assert (difference.left.max_offset, difference.right.max_offset) == (end, end)
    wait_until(lambda: queues(pair.slave.store) == queues(pair.master.store), "the slave's queues are the master's")


def settled_difference(pair: ReplicaPair) -> tuple[int, StoreDifference]:
    """The log's end, and how the stores differ when nothing was appended while they were read."""
    while True:
        end = pair.wait_caught_up()
        difference = compare_stores(str(pair.master.store), str(pair.slave.store))
        if pair.wait_caught_up() == end:
            return end, difference


def assert_torn_by_kills(pair: ReplicaPair, kills: int) -> None:
    """Apache's slave writes bytes as they come, and its recovery keeps a record whose properties are not all there yet."""
    theirs = dict(StoreReader(str(pair.slave.store)).records())
    torn = 0
    for offset, record in StoreReader(str(pair.master.store)).records():
        found = theirs.get(offset, record[:0])
        if found != record:
            written = len(bytes(found).rstrip(b"\0"))
            assert found[:written] == record[:written], f"the record at {offset}"
            torn += 1
    assert torn <= kills


def test_slave_holds_the_masters_records_and_queues(running: Running) -> None:
    running.sent = send_mixed(running.clients.producer(), running.topic, MESSAGES)
    assert_equal_stores(running.pair)


def test_slave_is_killed_at_random_moments_while_load_runs(running: Running, java: JavaPeer) -> None:
    """Once while messages come in, once while it is sent what it missed."""
    pair, clients = running.pair, running.clients
    topics = [unique("Load"), unique("Load")]
    make_topics(java, pair, *topics)
    chance = random.Random(f"{SEED} {pair.master.kind}")
    load = Load(clients.producer(), topics, LOAD, SEED)
    kill_first, kill_second = chance.randrange(LOAD // 2), chance.random()
    wait_until(lambda: load.check() or load.stored >= kill_first, "the load runs")
    pair.slave.kill()
    missing_from = pair.master.ha_status()["masterCommitLogMaxOffset"]
    committed = send_transactions(clients, topics[0])
    pair.slave.start()
    pair.wait_acknowledged(kill_second, missing_from)
    pair.slave.kill()
    pair.slave.start()
    statuses = load.finish()
    assert set(statuses) <= {"SEND_OK", "BUSY"}
    assert load.stored >= LOAD
    assert_delivered(pair.master, topics, load, committed)
    assert_equal_stores(pair, kills=2)


def test_status_names_the_slave(running: Running) -> None:
    pair = running.pair
    end = pair.wait_caught_up()
    status = pair.master.ha_status()
    (slave,) = status["haConnectionInfo"]
    assert set(status) == STATUS_FIELDS
    assert (status["master"], status["inSyncSlaveNums"], status["masterCommitLogMaxOffset"]) == (True, 1, end)
    assert set(slave) == SLAVE_FIELDS
    assert (slave["slaveAckOffset"], slave["diff"], slave["inSync"]) == (end, 0, True)
    assert slave["transferFromWhere"] == end
    client = pair.slave.ha_status()["haClientRuntimeInfo"]
    assert (client["masterAddr"], client["maxOffset"]) == (f"127.0.0.1:{pair.master.port + 1}", end)


def test_both_tools_show_both_brokers_alike(running: Running, java: JavaPeer) -> None:
    pair = running.pair
    end = pair.wait_caught_up()
    (slave,) = pair.master.ha_status()["haConnectionInfo"]
    for question, words in (
        (f"haStatus -b {pair.master.address}", ("#SlaveNum\t1", f"#MasterCommitLogMaxOffset\t{end}", slave["addr"])),
        (f"haStatus -b {pair.slave.address}", (f"#MasterAddr\t127.0.0.1:{pair.master.port + 1}",)),
        ("clusterList", (pair.master.address, pair.slave.address)),
    ):
        command = [*question.split(), "-n", pair.name_server]
        ours = printed_alike(java, *command)
        assert [word for word in words if word not in ours] == []
    shown = our_mqadmin("brokerStatus", "-b", pair.master.address, "-n", pair.name_server)
    (row,) = [line for line in shown.splitlines() if line.startswith(f"haSlave_{slave['addr']}")]
    assert (f"ackOffset : {end}, diff : 0," in row, "inSync : true" in row) == (True, True)


def our_mqadmin(*command: str) -> str:
    return subprocess.run([*OURS, *command], capture_output=True, text=True, check=True, timeout=60).stdout


def printed_alike(java: JavaPeer, *command: str) -> str:
    """Return the output of our tool; Apache's is the same if only masked numbers change between the two."""
    for _ in range(TRIES):
        apaches, ours = java.mqadmin(*command), our_mqadmin(*command)
        if figures_masked(ours) == figures_masked(apaches):
            return ours
    assert figures_masked(ours) == figures_masked(apaches)
    return ours


def figures_masked(printed: str) -> list[str]:
    """The lines without rates, times and the timer's progress, which move on between two commands."""
    return [MOVING.sub(" N", line) for line in printed.strip().splitlines()]


def test_slave_refuses_sends(running: Running, java: JavaPeer) -> None:
    fields = {"a": "G", "b": running.topic, "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "1", "h": "0", "j": "0"}
    answer = java.invoke(running.pair.slave.address, 310, fields, b"body")
    assert (answer["code"], answer["remark"]) == (2, "[REJECTREQUEST]system busy, start flow control for a while")


@pytest.mark.parametrize("kind", list(KINDS))
def test_synchronous_sends_wait_for_the_slave_through_a_link_that_is_cut(
    kind: str, java: JavaPeer, tmp_path: Path
) -> None:
    """A SYNC_MASTER with inSyncReplicas 2: the answer says whether the slave has the message."""
    require_java()
    settings = {"brokerRole": "SYNC_MASTER", "inSyncReplicas": 2, "slaveTimeout": 3000}
    pair = ReplicaPair.make(*KINDS[kind], tmp_path, through_proxy=True, **settings)
    clients = Clients(java, pair.name_server)
    try:
        pair.slave.start()
        topics = [unique("Sync"), unique("Sync")]
        make_topics(java, pair, *topics)
        producer = clients.producer(timeout_ms=30_000)
        pair.wait_caught_up()
        load = Load(producer, topics, LOAD, SEED)
        committed = send_transactions(clients, topics[0])
        assert set(load.finish()) <= {"SEND_OK", "BUSY"}
        assert pair.proxy is not None
        pair.proxy.cut()
        assert producer.send(topics[0], "cut off")["status"] == "FLUSH_SLAVE_TIMEOUT"
        pair.proxy.heal()
        assert_delivered(pair.master, topics, load, committed + 1)
        assert_equal_stores(pair)
        assert producer.send(topics[0], "healed")["status"] == "SEND_OK"
        pair.slave.kill()
        assert producer.send(topics[0], "nobody there")["status"] == "FLUSH_SLAVE_TIMEOUT"
    finally:
        clients.stop()
        pair.stop()


def topics_of(member: Member) -> set[str]:
    """None while Apache's broker writes the file: it is empty for a moment."""
    file = member.store / "config" / "topics.json"
    try:
        return set(json.loads(file.read_text())["topicConfigTable"])
    except (FileNotFoundError, json.JSONDecodeError):
        return set()


def test_consumer_goes_on_at_the_slave_when_the_master_is_gone(running: Running) -> None:
    pair, topic = running.pair, running.topic
    pair.wait_caught_up()
    wait_until(lambda: topic in topics_of(pair.slave), "the slave has copied the topics", METADATA_SECONDS)
    pair.master.kill()
    running.group = unique("Group")
    consumer = running.clients.push_consumer(running.group, topic)
    assert set(bodies(consumer.wait_bodies(running.sent))) >= running.sent
    consumer.stop()


def test_master_that_returns_knows_what_was_consumed_at_the_slave(pairs: dict[str, Running]) -> None:
    """Apache's slaves forget that; ours hand it back, so that nothing is consumed again."""
    running = pairs["our slave"]
    pair, topic, group = running.pair, running.topic, running.group
    held = {queue_id: pair.slave.consumer_offset(group, topic, queue_id) for queue_id in QUEUES}
    assert min(held.values()) > 0
    pair.master.start()
    wait_until(
        lambda: held == {queue_id: pair.master.consumer_offset(group, topic, queue_id) for queue_id in QUEUES},
        f"the master knows the offsets {held}",
    )
    consumer = running.clients.push_consumer(group, topic)
    fresh = {f"after the return {number}" for number in range(2 * len(QUEUES))}
    running.clients.producer().send_all(topic, sorted(fresh))
    again = [one for one in consumer.wait_bodies(fresh) if one["queue_offset"] < held[one["queue_id"]]]
    assert bodies(again) == []
