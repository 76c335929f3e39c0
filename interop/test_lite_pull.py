"""Apache's lite pull consumer against both brokers: queues by rebalance and by choice, seeks, pauses, commits."""

from __future__ import annotations

import pytest

from interop.peers.clients import Clients, bodies
from interop.peers.process import wait_until
from interop.peers.servers import BROKER_NAME, Cluster, consumer_offset
from interop.peers.waiting import ALL_QUEUES

pytestmark = pytest.mark.peer

MORE_MS = 700
"""Duration of a poll for messages that must not come."""


def fill(java_clients: Clients, topic: str, queue_id: int, count: int) -> list[str]:
    texts = [f"queue {queue_id} number {number}" for number in range(count)]
    queue = {"broker_name": BROKER_NAME, "queue_id": queue_id}
    producer = java_clients.producer()
    for number, text in enumerate(texts):
        tags = "even" if number % 2 == 0 else "odd"
        producer.command("send_to_queue", topic=topic, body=text, tags=tags, **queue)
    return texts


def test_a_subscriber_takes_what_it_subscribed_and_its_group_goes_on_behind_its_commit(
    java_clients: Clients, cluster: Cluster, topic: str, group: str
) -> None:
    texts = [text for queue_id in (0, 3) for text in fill(java_clients, topic, queue_id, 6)]
    even = {text for text in texts if int(text.split()[-1]) % 2 == 0}
    first = java_clients.lite_pull_consumer(group, topic, tags="even")
    assert sorted(bodies(first.poll_bodies(even))) == sorted(even)
    assert first.command("lite_assigned") == ALL_QUEUES
    first.command("commit")
    for queue_id in (0, 3):
        wait_until(lambda one=queue_id: first.command("lite_offsets", one)["committed"] == 5, "it knows its commit")
    for queue_id in (0, 3):
        wait_until(
            lambda one=queue_id: consumer_offset(cluster.broker_port, group, topic, one) == 5, "the commit arrived"
        )
    first.stop()
    new = fill(java_clients, topic, 1, 2)[0]
    second = java_clients.lite_pull_consumer(group, topic, tags="even")
    assert bodies(second.poll_bodies({new})) == [new]
    assert second.command("poll", timeout_ms=MORE_MS) == []


def test_a_subscriber_by_expression(java_clients: Clients, topic: str, group: str) -> None:
    texts = fill(java_clients, topic, 2, 4)
    consumer = java_clients.lite_pull_consumer(group, topic, sql="TAGS = 'odd'")
    assert bodies(consumer.poll_bodies({texts[1], texts[3]})) == [texts[1], texts[3]]


def test_chosen_queues_are_read_from_where_it_seeks(java_clients: Clients, topic: str, group: str) -> None:
    fill(java_clients, topic, 0, 2)
    texts = fill(java_clients, topic, 1, 6)
    consumer = java_clients.lite_pull_consumer(group, topic, queue_ids=[1])
    messages = consumer.poll_bodies(set(texts))
    assert bodies(messages) == texts
    consumer.command("seek", 1, offset=4)
    assert bodies(consumer.poll_bodies({texts[5]})) == texts[4:]
    consumer.command("seek_to_begin", 1)
    assert bodies(consumer.poll_bodies({texts[5]})) == texts
    consumer.command("seek_to_end", 1)
    assert consumer.command("poll", timeout_ms=MORE_MS) == []
    at_time = consumer.command("lite_offsets", 1, timestamp_ms=messages[-1]["store_timestamp"] + 60_000)["at_time"]
    assert at_time == 6


def test_a_paused_queue_gives_nothing_until_it_is_resumed(java_clients: Clients, topic: str, group: str) -> None:
    """Messages of a pull that waits on the broker during the pause may still come."""
    consumer = java_clients.lite_pull_consumer(group, topic, queue_ids=[1])
    first = fill(java_clients, topic, 1, 1)
    consumer.poll_bodies(set(first))
    consumer.command("pause", 1)
    producer, queue = java_clients.producer(), {"broker_name": BROKER_NAME, "queue_id": 1}
    producer.command("send_to_queue", topic=topic, body="ends a pull", **queue)
    came = bodies(consumer.command("poll", timeout_ms=MORE_MS))
    producer.command("send_to_queue", topic=topic, body="late", **queue)
    assert consumer.command("poll", timeout_ms=MORE_MS) == []
    consumer.command("resume", 1)
    assert came + bodies(consumer.poll_bodies({"late"})) == ["ends a pull", "late"]
