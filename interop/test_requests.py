"""Requests and their replies through Apache's Java client, and its SQL92 subscriptions, against both brokers."""

from __future__ import annotations

import time

import pytest

from interop.peers.clients import Clients, JavaPeer, bodies
from interop.peers.line_peer import PeerError
from interop.peers.servers import CLUSTER_NAME, Cluster
from interop.peers.waiting import wait_split

pytestmark = pytest.mark.peer

SEND_REPLY_MESSAGE_V2 = 325
SUBSCRIPTION_PARSE_FAILED = 23


def test_a_reply_reaches_the_producer_that_asked(java_clients: Clients, topic: str, group: str) -> None:
    consumer = java_clients.answering_consumer(group, topic)
    producer = java_clients.producer()
    for text in ("ping", "large " + "x" * 8000):
        reply = producer.command("request", topic=topic, body=text, timeout_ms=20_000)
        assert (reply["body"], reply["topic"]) == (f"reply to {text}", f"{CLUSTER_NAME}_REPLY_TOPIC")
        assert reply["properties"]["MSG_TYPE"] == "reply"
    sends = consumer.peer.wait_events("reply", consumer.name, lambda events: len(events) == 2, 20)
    assert [one["status"] for one in sends] == ["SEND_OK", "SEND_OK"]


def test_a_request_without_a_reply_runs_out_of_time(java_clients: Clients, topic: str) -> None:
    failure = java_clients.producer().command("request", topic=topic, body="anyone?", timeout_ms=1000)
    assert failure["type"] == "RequestTimeoutException"


@pytest.mark.parametrize(
    ("properties", "remark"),
    [
        ("REPLY_TO_CLIENT\x01nobody\x02", "push reply message fail, channel of <nobody> not found."),
        ("TTL\x011000\x02", "reply message properties[REPLY_TO_CLIENT] is null"),
    ],
    ids=["gone", "nobody"],
)
def test_a_reply_that_reaches_nobody_is_refused(java: JavaPeer, cluster: Cluster, properties: str, remark: str) -> None:
    fields = {"a": "Group", "b": f"{CLUSTER_NAME}_REPLY_TOPIC", "c": "TBW102", "d": "4", "e": "0", "f": "0", "h": "0"}
    fields |= {"g": str(int(time.time() * 1000)), "i": properties, "j": "0", "k": "false", "m": "false"}
    answer = java.invoke(cluster.broker, SEND_REPLY_MESSAGE_V2, fields, b"reply")
    assert (answer["code"], answer["remark"]) == (1, remark)


def test_a_consumer_sees_only_what_its_expression_selects(java_clients: Clients, topic: str, group: str) -> None:
    """Before it came and while its pulls wait; tags are a property like others."""
    producer = java_clients.producer()
    rows = [
        {"body": f"{number}", "properties": {"price": str(number), "kind": "even" if number % 2 == 0 else "odd"}}
        for number in range(12)
    ]
    for row in rows[:8]:
        producer.send(topic, tags="fruit", **row)
    producer.send(topic, "other tag", tags="nut", properties={"price": "6", "kind": "even"})
    producer.send(topic, "no price", tags="fruit", properties={"kind": "even"})
    sql = "TAGS = 'fruit' AND price BETWEEN 3 AND 9.5 AND kind IN ('even')"
    consumer = java_clients.push_consumer(group, topic, sql=sql)
    consumer.wait_bodies({"4", "6"})
    wait_split(consumer)
    for row in rows[8:]:
        producer.send(topic, tags="fruit", **row)
    assert sorted(bodies(consumer.wait_bodies({"4", "6", "8"}))) == ["4", "6", "8"]


def test_a_bad_expression_is_refused_when_the_consumer_starts(
    java_clients: Clients, cluster: Cluster, java: JavaPeer, topic: str, group: str
) -> None:
    with pytest.raises(PeerError) as caught:
        java_clients.push_consumer(group, topic, sql="price > > 3")
    assert "line 1, column 9" in caught.value.message
    assert caught.value.code == SUBSCRIPTION_PARSE_FAILED
