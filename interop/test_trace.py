"""Message traces, namespaces and units of Apache's Java clients, against both brokers."""

from __future__ import annotations

import pytest

from interop.peers.clients import Clients, bodies, unique
from interop.peers.process import wait_until
from interop.peers.servers import Cluster, ask

pytestmark = pytest.mark.peer

GET_CONSUMER_CONNECTION_LIST = 203
UNIT_TOPICS, UNIT_SUB_TOPICS, UNIT_SUB_TOPICS_OUTSIDE = 311, 312, 313
TRACE_TOPIC = "RMQ_SYS_TRACE_TOPIC"


def test_traces_of_a_message_are_sent_and_read(java_clients: Clients, cluster: Cluster, topic: str, group: str) -> None:
    """The send, and begin and end of its consumption, each under the message's id as key."""
    producer = java_clients.producer(trace=TRACE_TOPIC)
    (key,) = producer.send(topic, "traced", tags="TagA")["msg_ids"]
    consumer = java_clients.push_consumer(group, topic, trace=TRACE_TOPIC)
    consumer.wait_bodies({"traced"})
    cluster.wait_route(TRACE_TOPIC)
    reader = java_clients.push_consumer(unique("Reader"), TRACE_TOPIC)

    def kinds() -> set[str]:
        records = [record for text in bodies(reader.messages) for record in text.split("\x02")]
        return {record.split("\x01")[0] for record in records if key in record.split("\x01")}

    wait_until(lambda: kinds() == {"Pub", "SubBefore", "SubAfter"}, "the three traces of the message")
    traced = [message for message in reader.messages if key in message["keys"].split()]
    assert traced and {message["topic"] for message in traced} == {TRACE_TOPIC}


def test_namespaces_keep_topics_and_groups_apart(java_clients: Clients, cluster: Cluster, group: str) -> None:
    """The broker sees names with the namespace, the clients without it."""
    topic, space = unique("Topic"), unique("space")
    inside = java_clients.producer(namespace=space)
    outside = java_clients.producer()
    inside.send(topic, "inside")
    outside.send(topic, "outside")
    cluster.wait_route(f"{space}%{topic}")
    cluster.wait_route(topic)
    consumer = java_clients.push_consumer(group, topic, namespace=space)
    other = java_clients.push_consumer(group, topic)
    (message,) = consumer.wait_bodies({"inside"})
    assert message["topic"] == topic
    connected = ask(cluster.broker_port, GET_CONSUMER_CONNECTION_LIST, {"consumerGroup": f"{space}%{group}"})
    assert f'"{space}%{topic}"'.encode() in connected
    assert bodies(other.wait_bodies({"outside"})) == ["outside"]


def test_topics_that_clients_of_a_unit_make_are_listed(java_clients: Clients, cluster: Cluster, group: str) -> None:
    """A message makes a topic of the unit, a consumer's heartbeat a retry topic that is subscribed by it."""
    topic = unique("UnitTopic")
    java_clients.producer(unit=True, timeout_ms=20_000).send(topic, "of a unit")
    cluster.wait_route(topic)
    java_clients.push_consumer(group, topic, unit=True).wait_bodies({"of a unit"})
    cluster.wait_route(f"%RETRY%{group}")

    def lists(name: str) -> set[int]:
        """The codes of the lists that have a topic."""
        codes = (UNIT_TOPICS, UNIT_SUB_TOPICS, UNIT_SUB_TOPICS_OUTSIDE)
        return {code for code in codes if f'"{name}"'.encode() in ask(cluster.name_server_port, code)}

    assert lists(topic) == {UNIT_TOPICS}
    assert lists(f"%RETRY%{group}") == {UNIT_SUB_TOPICS, UNIT_SUB_TOPICS_OUTSIDE}
