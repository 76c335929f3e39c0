"""The way from Apache's servers to this project's and back, as docs/how-to/migrate.md tells it, under a Java application.

One step after the other, with the same producer and the same consumer group all the time.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from interop.peers.clients import Clients, JavaPeer, unique
from interop.peers.process import wait_until
from interop.peers.replicas import Member
from interop.peers.requirements import require_java
from interop.peers.servers import BROKER_NAME, CLUSTER_NAME, GET_ROUTEINFO_BY_TOPIC, Cluster, ask
from interop.peers.waiting import consume_for_good

pytestmark = pytest.mark.peer

OTHER = "broker-b"


@attrs.define(eq=False)
class Application:
    """Sends to a topic, and a group of it takes each message."""

    java: JavaPeer
    clients: Clients
    cluster: Cluster
    topic: str = attrs.field(factory=lambda: unique("Migrated"))
    group: str = attrs.field(factory=lambda: unique("Migrating"))
    sent: set[str] = attrs.field(factory=set)
    brokers: int = 1

    def make_topic(self) -> None:
        """On all brokers of the cluster."""
        words = ("-n", self.cluster.name_server, "-c", CLUSTER_NAME, "-t", self.topic, "-r", "2", "-w", "2")
        assert "success" in self.java.mqadmin("updateTopic", *words)

    def wait_brokers(self, *names: str) -> None:
        """Until the route names these brokers, and no other."""

        def known() -> bool:
            route = ask(self.cluster.name_server_port, GET_ROUTEINFO_BY_TOPIC, {"topic": self.topic})
            return [name for name in (BROKER_NAME, OTHER) if f'"{name}"'.encode() in route] == sorted(names)

        wait_until(known, f"{self.topic} on {names}")
        self.brokers = len(names)

    def send(self, word: str, brokers: tuple[str, ...] = (BROKER_NAME,)) -> set[str]:
        """Send two messages to each queue, with a producer that looks up the brokers again."""
        producer = self.clients.producer(retries=5)
        texts = {f"{word} {broker} {number}": (broker, number % 2) for broker in brokers for number in range(4)}
        for text, (broker, queue_id) in texts.items():
            sent = producer.command("send_to_queue", topic=self.topic, body=text, broker_name=broker, queue_id=queue_id)
            assert sent["status"] == "SEND_OK"
        producer.stop()
        self.sent |= texts.keys()
        return set(texts)

    def take(self, expected: set[str]) -> None:
        """The group comes, takes what is new for it and nothing else, and leaves."""
        taken = consume_for_good(self.clients, self.java, self.group, self.topic, expected, 2 * self.brokers)
        assert taken == sorted(expected)

    def read_all(self) -> None:
        """A new group gets everything that was ever sent."""
        consumer = self.clients.push_consumer(unique("Reader"), self.topic)
        consumer.wait_bodies(self.sent)
        consumer.stop()


@pytest.fixture
def apache(tmp_path: Path) -> Iterator[Cluster]:
    require_java()
    cluster = Cluster("apache", tmp_path / "cluster")
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def hand_over(cluster: Cluster, kind: str) -> None:
    """Stop the broker and start the other kind on its configuration and its store."""
    cluster.stop_broker()
    assert not (cluster.store / "abort").exists()
    cluster.kind = kind
    cluster.start_broker()


def test_an_application_goes_on_from_apaches_servers_to_ours_and_back(
    java: JavaPeer, apache: Cluster, tmp_path: Path
) -> None:
    clients = Clients(java, apache.name_server)
    application = Application(java, clients, apache)
    other = Member("ours", 0, tmp_path / "other", apache.name_server_port, {"brokerName": OTHER})
    try:
        # before: Apache's alone
        application.make_topic()
        application.wait_brokers(BROKER_NAME)
        application.take(application.send("before"))

        # beside: a broker of ours in the same cluster
        other.start()
        application.make_topic()
        application.wait_brokers(BROKER_NAME, OTHER)
        application.take(application.send("beside", (BROKER_NAME, OTHER)))

        # instead: ours on the store of Apache's, which held messages that the group has not taken
        unseen = application.send("unseen")
        hand_over(apache, "ours")
        application.wait_brokers(BROKER_NAME, OTHER)
        application.take(unseen | application.send("instead", (BROKER_NAME, OTHER)))
        application.read_all()

        # back: Apache's on the store that ours has written to
        unseen = application.send("written by ours")
        hand_over(apache, "apache")
        application.wait_brokers(BROKER_NAME, OTHER)
        application.take(unseen | application.send("back", (BROKER_NAME, OTHER)))
        application.read_all()
    finally:
        clients.stop()
        other.stop()
