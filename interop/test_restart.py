"""Data that must survive a restart of a consumer or of the broker: offsets, messages, topics."""

from __future__ import annotations

import pytest

from interop.peers.clients import Clients, JavaPeer, Producer, bodies
from interop.peers.line_peer import PeerError
from interop.peers.process import wait_until
from interop.peers.servers import Cluster
from interop.peers.waiting import consume_for_good, stored

pytestmark = pytest.mark.peer


def texts(word: str, count: int = 12) -> list[str]:
    return [f"{word} {number}" for number in range(count)]


def accepted(producer: Producer, topic: str, text: str) -> bool:
    """Return True if the broker accepts a message; a client may need a moment to notice a lost connection."""
    try:
        return producer.send(topic, text)["status"] == "SEND_OK"
    except PeerError:
        return False


def test_a_consumer_that_comes_back_goes_on_where_it_stopped(
    java: JavaPeer, java_clients: Clients, topic: str, group: str
) -> None:
    producer = java_clients.producer()
    producer.send_all(topic, texts("first"))
    assert consume_for_good(java_clients, java, group, topic, texts("first")) == sorted(texts("first"))
    producer.send_all(topic, texts("second"))
    assert consume_for_good(java_clients, java, group, topic, texts("second")) == sorted(texts("second"))


def test_offsets_messages_and_topics_survive_a_restart_of_the_broker(
    java: JavaPeer, java_clients: Clients, cluster: Cluster, topic: str, group: str
) -> None:
    """A stopped broker leaves no abort file; started again it serves what it had, and the group goes on."""
    producer = java_clients.producer(retries=5)
    producer.send_all(topic, texts("before"))
    assert consume_for_good(java_clients, java, group, topic, texts("before")) == sorted(texts("before"))
    producer.send_all(topic, texts("unseen"))

    cluster.stop_broker()
    assert not (cluster.store / "abort").exists()
    cluster.start_broker()
    cluster.wait_route(topic)

    wait_until(lambda: accepted(producer, topic, "after"), "the producer reaches the broker again")
    expected = [*texts("unseen"), "after"]
    # a send that failed may have been stored before its repetition was
    assert set(consume_for_good(java_clients, java, group, topic, expected)) == set(expected)


def test_a_killed_broker_keeps_every_acknowledged_message_and_its_consumer_comes_back(
    java_clients: Clients, cluster: Cluster, topic: str, group: str
) -> None:
    """The consumer stays connected through the kill: it must find the broker again by itself."""
    producer = java_clients.producer(retries=5)
    consumer = java_clients.push_consumer(group, topic)
    producer.send_all(topic, texts("before"))
    consumer.wait_bodies(set(texts("before")))

    cluster.kill_broker()
    assert (cluster.store / "abort").exists()
    cluster.start_broker()
    cluster.wait_route(topic)

    wait_until(lambda: accepted(producer, topic, "after"), "the producer reaches the broker again")
    consumer.wait_bodies({"after"})
    kept = stored(java_clients.pull_consumer(group), topic, 13)
    assert set(bodies(kept)) == {*texts("before"), "after"}
