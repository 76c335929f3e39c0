"""A static topic on two brokers: the cluster's own, Apache's or this project's, and one more of this project's.

Apache's mqadmin lays it out and moves its logical queues there and back; Apache's client and this project's send and read
through it all.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from interop.peers.clients import Clients, JavaPeer, unique
from interop.peers.process import wait_until
from interop.peers.replicas import Member
from interop.peers.servers import BROKER_NAME, GET_ROUTEINFO_BY_TOPIC, Cluster, ask
from twisted_mq.protocol.bodies import TopicRouteData, decode_body

pytestmark = pytest.mark.peer

OTHER = "broker-b"
LOGICAL = "__syslo__global__"
"""The broker name that clients give the queues of static topics."""
BLOCK = 10_000
"""A moved queue goes on at a multiple of it."""


@pytest.fixture
def other(cluster: Cluster, tmp_path: Path) -> Iterator[Member]:
    member = Member("ours", 0, tmp_path / "other", cluster.name_server_port, {"brokerName": OTHER})
    member.start()
    try:
        yield member
    finally:
        member.stop()


class StaticTopic:
    """A static topic of two logical queues, as its clients see it."""

    def __init__(self, java: JavaPeer, clients: Clients, cluster: Cluster) -> None:
        self.name = unique("Static")
        self._java, self._clients, self._cluster = java, clients, cluster
        self.bodies: dict[int, list[str]] = {0: [], 1: []}

    def lay_out(self, command: str, brokers: str, *more: str) -> None:
        printed = self._java.mqadmin(command, "-n", self._cluster.name_server, "-b", brokers, "-t", self.name, *more)
        assert ("mapping data is written to file" in printed, "Exception" in printed) == (True, False), printed

    def wait_leaders(self, *leaders: str) -> None:
        """Until the name server tells that these brokers take the writes of the queues."""
        wait_until(lambda: self._leaders() == dict(enumerate(leaders)), f"queues of {self.name} on {leaders}")

    def _leaders(self) -> dict[int, str]:
        answer = ask(
            self._cluster.name_server_port,
            GET_ROUTEINFO_BY_TOPIC,
            {"topic": self.name, "acceptStandardJsonOnly": "true"},
        )
        route = decode_body(TopicRouteData, answer[4 + int.from_bytes(answer[1:4], "big") :])
        mappings = route.topic_queue_mapping_by_broker or {}
        return {queue_id: name for name, mapping in mappings.items() for queue_id in mapping.curr_id_map}

    def send(self, word: str) -> list[int]:
        """Three messages to each queue by a new producer, which asks for the route; returns their offsets in order."""
        producer = self._clients.producer()
        offsets = []
        for number in range(6):
            queue_id, body = number % 2, f"{word} {number}"
            sent = producer.command("send_to_queue", topic=self.name, body=body, broker_name=LOGICAL, queue_id=queue_id)
            assert (sent["status"], sent["queue_id"]) == ("SEND_OK", queue_id)
            self.bodies[queue_id].append(body)
            offsets.append(sent["queue_offset"])
        producer.stop()
        return offsets

    def read(self) -> dict[int, list[str]]:
        """Return the messages that a new group gets from each queue, by offsets."""
        wanted = {body for bodies in self.bodies.values() for body in bodies}
        consumer = self._clients.push_consumer(unique("Group"), self.name)
        found = consumer.wait_bodies(wanted)
        consumer.stop()
        in_order = sorted(found, key=lambda message: message["queue_offset"])
        numbers = {body: queue_id for queue_id, bodies in self.bodies.items() for body in bodies}
        return {queue_id: [one["body"] for one in in_order if numbers[one["body"]] == queue_id] for queue_id in (0, 1)}


@pytest.mark.parametrize("clients", ["java_clients", "our_clients"])
def test_a_static_topic_is_read_whole_wherever_its_queues_were_moved(
    java: JavaPeer, clients: str, cluster: Cluster, other: Member, request: pytest.FixtureRequest
) -> None:
    topic = StaticTopic(java, request.getfixturevalue(clients), cluster)
    topic.lay_out("updateStaticTopic", f"{BROKER_NAME},{OTHER}", "-qn", "2")
    wait_until(lambda: sorted(topic._leaders().values()) == [BROKER_NAME, OTHER], "both brokers lead a queue")
    moved = {name: queue_id for queue_id, name in topic._leaders().items()}
    assert topic.send("first") == [0, 0, 1, 1, 2, 2]

    topic.lay_out("remappingStaticTopic", OTHER)
    topic.wait_leaders(OTHER, OTHER)
    offsets = topic.send("second")
    assert offsets[moved[BROKER_NAME] :: 2] == [BLOCK, BLOCK + 1, BLOCK + 2]
    assert offsets[moved[OTHER] :: 2] == [3, 4, 5]
    assert topic.read() == topic.bodies

    topic.lay_out("remappingStaticTopic", BROKER_NAME)
    topic.wait_leaders(BROKER_NAME, BROKER_NAME)
    assert min(topic.send("third")) >= BLOCK
    assert topic.read() == topic.bodies
