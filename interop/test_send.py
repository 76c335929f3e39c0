"""Apache's Java producer against both brokers: every form of sending, and what the broker makes of the messages."""

from __future__ import annotations

import pytest

from interop.peers.clients import Clients, bodies, unique
from interop.peers.servers import BROKER_NAME, Cluster
from interop.peers.waiting import stored

pytestmark = pytest.mark.peer


def test_sync_sends_go_round_the_queues_and_carry_their_fields(java_clients: Clients, topic: str, group: str) -> None:
    producer = java_clients.producer()
    fields = {"tags": "TagA", "keys": "key1 key2", "properties": {"colour": "grün"}}
    results = producer.send_all(topic, [f"sync {number}" for number in range(8)], **fields)
    assert {result["status"] for result in results} == {"SEND_OK"}
    assert {result["broker_name"] for result in results} == {BROKER_NAME}
    assert {result["region"] for result in results} == {"DefaultRegion"}
    assert sorted((result["queue_id"], result["queue_offset"]) for result in results) == [
        (queue_id, offset) for queue_id in range(4) for offset in range(2)
    ]
    messages = {message["body"]: message for message in stored(java_clients.pull_consumer(group), topic, 8)}
    for number, result in enumerate(results):
        message = messages[f"sync {number}"]
        assert (message["tags"], message["keys"]) == ("TagA", "key1 key2")
        assert message["properties"]["colour"] == "grün"
        assert (message["queue_id"], message["queue_offset"]) == (result["queue_id"], result["queue_offset"])
        assert [message["msg_id"]] == result["msg_ids"]
        assert [message["offset_msg_id"]] == result["offset_msg_ids"]
        assert message["store_timestamp"] > 0


def test_async_sends_in_flight_together_are_all_stored(java_clients: Clients, topic: str, group: str) -> None:
    texts = [f"async {number}" for number in range(50)]
    results = java_clients.producer().command("send_async", messages=[{"topic": topic, "body": text} for text in texts])
    assert {result["status"] for result in results} == {"SEND_OK"}
    assert len({(result["queue_id"], result["queue_offset"]) for result in results}) == 50
    assert sorted(bodies(stored(java_clients.pull_consumer(group), topic, 50))) == sorted(texts)


def test_one_way_sends_are_stored(java_clients: Clients, topic: str, group: str) -> None:
    texts = [f"one-way {number}" for number in range(12)]
    consumer = java_clients.push_consumer(group, topic)
    java_clients.producer().command("send_one_way", messages=[{"topic": topic, "body": text} for text in texts])
    assert sorted(bodies(consumer.wait_bodies(set(texts)))) == sorted(texts)


def test_a_batch_lands_in_one_queue_in_order(java_clients: Clients, cluster: Cluster, topic: str, group: str) -> None:
    batch = [
        {"topic": topic, "body": f"batch {number}", "tags": f"Tag{number}", "keys": f"key{number}"}
        for number in range(10)
    ]
    result = java_clients.producer().command("send_batch", messages=batch)
    assert (result["status"], result["queue_offset"]) == ("SEND_OK", 0)
    assert (len(result["msg_ids"]), len(result["offset_msg_ids"])) == (10, 10)
    messages = stored(java_clients.pull_consumer(group), topic, 10)
    assert [(message["body"], message["tags"], message["keys"]) for message in messages] == [
        (item["body"], item["tags"], item["keys"]) for item in batch
    ]
    assert [message["offset_msg_id"] for message in messages] == result["offset_msg_ids"]
    keys = [message["msg_id"] for message in messages]
    if cluster.kind == "apache":  # appends the batch's own unique key to every message, which then counts
        assert len(set(keys)) == 1
    else:  # a known difference: every message keeps the key that its producer reported
        assert keys == result["msg_ids"]
    assert {message["queue_id"] for message in messages} == {result["queue_id"]}
    assert [message["queue_offset"] for message in messages] == list(range(10))


def test_an_unknown_topic_is_created_by_the_first_send(java_clients: Clients, cluster: Cluster, group: str) -> None:
    """The producer takes the default topic's route and asks for its own four queues."""
    topic = unique("Auto")
    assert java_clients.producer().send(topic, "first")["status"] == "SEND_OK"
    cluster.wait_route(topic)
    consumer = java_clients.pull_consumer(group)
    assert consumer.command("queues", topic) == [0, 1, 2, 3]
    assert bodies(stored(consumer, topic, 1)) == ["first"]


def test_a_body_the_client_compressed_arrives_whole(java_clients: Clients, topic: str, group: str) -> None:
    body = "compressed " * 2000
    java_clients.producer().send(topic, body)
    (message,) = stored(java_clients.pull_consumer(group), topic, 1)
    assert message["body"] == body
    assert message["store_size"] < len(body) // 10


def test_the_fast_port_takes_sends(java_clients: Clients, topic: str) -> None:
    """Clients with the VIP channel use the listen port minus two."""
    assert java_clients.producer(vip_channel=True).send(topic, "fast")["status"] == "SEND_OK"
