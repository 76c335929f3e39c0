"""Apache's Java push consumer with clientRebalance=false against both brokers: it pops what the broker's queues hold."""

from __future__ import annotations

import base64
import json

import pytest

from interop.peers.clients import Clients, JavaPeer, PopConsumer, bodies
from interop.peers.process import wait_until
from interop.peers.servers import BROKER_NAME, Cluster
from interop.peers.waiting import ALL_QUEUES, has_committed_all, wait_split

pytestmark = pytest.mark.peer

INVISIBLE_MS = 5_000
"""The least that Apache's client takes."""

QUERY_ASSIGNMENT = 400


@pytest.fixture
def popping(java: JavaPeer, cluster: Cluster, topic: str, group: str) -> str:
    """A group that pops the topic."""
    set_mode(java, cluster, topic, group, "POP")
    return group


def set_mode(java: JavaPeer, cluster: Cluster, topic: str, group: str, mode: str) -> None:
    printed = java.mqadmin("setConsumeMode", *mode_arguments(cluster, topic, group, mode))
    assert "success" in printed, printed


def mode_arguments(cluster: Cluster, topic: str, group: str, mode: str) -> list[str]:
    return ["-n", cluster.name_server, "-b", cluster.broker, "-t", topic, "-g", group, "-m", mode, "-q", "0"]


def wait_popping(*consumers: PopConsumer) -> None:
    wait_until(lambda: all(one.popped() == [-1] for one in consumers), "the consumers pop all queues")


def test_two_consumers_share_what_they_pop(java_clients: Clients, topic: str, popping: str) -> None:
    """Messages of before their start and of later, all queues, each message once."""
    producer = java_clients.producer()
    sent = [f"early {number}" for number in range(40)]
    producer.send_all(topic, sent, tags="TagA", keys="k", properties={"colour": "red"})
    producer.send_all(topic, ["not wanted"], tags="TagB")
    consumers = [java_clients.pop_consumer(popping, topic, "TagA") for _ in range(2)]
    wait_popping(*consumers)

    def both_took_some() -> bool:
        late = [f"late {len(sent) + number}" for number in range(4)]
        producer.send_all(topic, late, tags="TagA")
        sent.extend(late)
        return all(one.messages for one in consumers)

    wait_until(both_took_some, "both consumers took messages")
    wait_until(lambda: set(sent) <= set(bodies(taken(consumers))), "all messages are taken")
    messages = taken(consumers)
    assert sorted(bodies(messages)) == sorted(sent)
    assert {message["queue_id"] for message in messages} == set(ALL_QUEUES)
    early = next(message for message in messages if message["body"] == "early 0")
    assert (early["topic"], early["tags"], early["keys"], early["reconsume_times"]) == (topic, "TagA", "k", 0)
    assert early["properties"]["colour"] == "red"


def taken(consumers: list[PopConsumer]) -> list[dict]:
    return [message for one in consumers for message in one.messages]


def test_what_is_not_acknowledged_comes_again(java_clients: Clients, topic: str, popping: str) -> None:
    """A refused message comes again after the time that its consumer requests, an unacknowledged one when it is visible again.

    A waiting pop is not notified of the group's retry topic, and every fifth one reads it: other messages end the waits.
    """
    consumer = java_clients.pop_consumer(popping, topic, invisible_ms=INVISIBLE_MS)
    wait_popping(consumer)
    producer = java_clients.producer()
    results = producer.send_all(topic, ["refuse", "hold"], tags="TagA", keys="k")
    sent = {"refuse": results[0], "hold": results[1]}

    def came_again() -> bool:
        producer.send(topic, "nudge")
        return sent.keys() <= set(bodies(consumer.messages))

    wait_until(came_again, "both messages came again")
    first = {message["body"]: message for message in [*consumer.refused, *consumer.held]}
    again = [message for message in consumer.messages if message["body"] != "nudge"]
    assert (bodies(consumer.refused), bodies(consumer.held), bodies(again)) == (
        ["refuse"],
        ["hold"],
        ["refuse", "hold"],
    )
    for message in again:
        assert (message["topic"], message["tags"], message["keys"]) == (topic, "TagA", "k")
        assert (message["reconsume_times"], [message["msg_id"]]) == (1, sent[message["body"]]["msg_ids"])
        assert message["born_timestamp"] <= int(message["properties"]["1ST_POP_TIME"]) < message["received_at_ms"]
        waited = message["received_at_ms"] - first[message["body"]]["received_at_ms"]
        assert waited >= (900 if message["body"] == "refuse" else INVISIBLE_MS - 1000)


def test_acknowledged_messages_do_not_come_to_the_next_consumer(
    java_clients: Clients, java: JavaPeer, cluster: Cluster, topic: str, popping: str
) -> None:
    """Nor when the group goes over to pulling, which begins where popping stopped."""
    producer = java_clients.producer()
    first = java_clients.pop_consumer(popping, topic)
    popped = [f"popped {number}" for number in range(12)]
    producer.send_all(topic, popped)
    first.wait_bodies(set(popped))

    wait_until(
        lambda: has_committed_all(java, cluster.name_server, popping, topic), "the broker has committed what was popped"
    )
    first.stop()
    set_mode(java, cluster, topic, popping, "PULL")
    puller = java_clients.pop_consumer(popping, topic)
    wait_split(puller)
    pulled = [f"pulled {number}" for number in range(8)]
    producer.send_all(topic, pulled)
    assert sorted(bodies(puller.wait_bodies(set(pulled)))) == sorted(pulled)


def test_assignments_are_answered_alike(
    java: JavaPeer, java_clients: Clients, cluster: Cluster, topic: str, group: str
) -> None:
    """To a client that the broker does not know, of a group that it knows."""
    java_clients.push_consumer(group, topic)
    queues = [{"brokerName": BROKER_NAME, "queueId": number, "topic": topic} for number in ALL_QUEUES]
    everything = [{"messageQueue": queue, "mode": "PULL"} for queue in queues]
    for changes, expected in [
        ({"strategyName": "AVG_BY_CIRCLE"}, []),
        ({"strategyName": "NONE"}, None),
        ({"topic": "NoSuchTopic"}, None),
        ({"consumerGroup": "NoSuchGroup"}, None),
        ({"messageModel": "BROADCASTING"}, everything),
        ({"topic": "%LMQ%light"}, []),
    ]:
        query = {"topic": topic, "consumerGroup": group, "clientId": "x", "strategyName": "AVG"}
        query |= {"messageModel": "CLUSTERING"} | changes
        answer = java.invoke(cluster.broker, QUERY_ASSIGNMENT, {}, json.dumps(query).encode())
        told = json.loads(base64.b64decode(answer["body"]))
        if expected is None:
            assert told == {}
        else:
            assert sorted(told["messageQueueAssignments"], key=str) == sorted(expected, key=str)
