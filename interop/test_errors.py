"""Requests that are refused: both brokers answer with the same code and say the same."""

from __future__ import annotations

import time

import pytest

from interop.peers.clients import Clients, JavaPeer, unique
from interop.peers.line_peer import PeerError, Record
from interop.peers.servers import MAX_MESSAGE_BYTES, Cluster

pytestmark = pytest.mark.peer

SEND_MESSAGE_V2 = 310
PULL_MESSAGE = 11
GET_CONSUMER_LIST_BY_GROUP = 38
UNKNOWN_CODE = 9999

ILLEGAL_CHARACTERS = "The specified topic contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"


def send_fields(topic: str, **changed: str) -> dict[str, str]:
    """A send header under its one-letter names (Apache: SendMessageRequestHeaderV2)."""
    born = str(int(time.time() * 1000))
    fields = {"a": "Group", "b": topic, "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": born, "h": "0", "i": ""}
    return {**fields, "j": "0", "k": "false", "m": "false", **changed}


@pytest.mark.parametrize(
    ("name", "code", "remark"),
    [
        ("bad topic!", 29, ILLEGAL_CHARACTERS),
        ("../x", 29, ILLEGAL_CHARACTERS),
        ("x" * 128, 29, "The specified topic is longer than topic max length."),
        ("", 29, "The specified topic is blank."),
        ("SCHEDULE_TOPIC_XXXX", 16, "Sending message to topic[SCHEDULE_TOPIC_XXXX] is forbidden."),
    ],
    ids=["characters", "path", "length", "blank", "system"],
)
def test_a_send_to_an_illegal_topic_is_refused(
    java: JavaPeer, cluster: Cluster, name: str, code: int, remark: str
) -> None:
    answer = java.invoke(cluster.broker, SEND_MESSAGE_V2, send_fields(name), b"body")
    assert (answer["code"], answer["remark"]) == (code, remark)


def test_a_send_to_an_absent_topic_without_a_default_is_refused(java: JavaPeer, cluster: Cluster) -> None:
    topic = unique("Absent")
    answer = java.invoke(cluster.broker, SEND_MESSAGE_V2, send_fields(topic, c="NoSuchDefault"), b"body")
    assert (answer["code"], answer["remark"][: len(topic) + 7]) == (17, f"topic[{topic}]")


def test_a_queue_that_the_topic_does_not_have_is_refused(java: JavaPeer, cluster: Cluster, topic: str) -> None:
    answer = java.invoke(cluster.broker, SEND_MESSAGE_V2, send_fields(topic, e="77"), b"body")
    assert (answer["code"], answer["remark"][:32]) == (29, "request queueId[77] is illegal, ")


def test_a_too_large_body_is_refused_and_the_next_message_is_not(java_clients: Clients, topic: str) -> None:
    producer = java_clients.producer(large_bodies=True)
    with pytest.raises(PeerError) as refused:
        producer.send(topic, "x" * (MAX_MESSAGE_BYTES + 1))
    assert refused.value.code == 13
    assert f"msg body length limit {MAX_MESSAGE_BYTES}B" in refused.value.message
    assert producer.send(topic, "small")["status"] == "SEND_OK"


def test_too_long_properties_are_refused(java: JavaPeer, cluster: Cluster, topic: str) -> None:
    fields = send_fields(topic, i="key\u0001" + "v" * 33_000 + "\u0002")
    assert java.invoke(cluster.broker, SEND_MESSAGE_V2, fields, b"body")["code"] == 13


def test_the_client_names_a_topic_that_the_name_server_does_not_know(java_clients: Clients) -> None:
    """A route query for an unknown topic answers TOPIC_NOT_EXIST, which the consumer's queue fetch reports."""
    name = unique("Nowhere")
    with pytest.raises(PeerError) as failure:
        java_clients.pull_consumer(unique("Group")).command("queues", name)
    assert (failure.value.type, name in failure.value.message) == ("MQClientException", True)


def refusals(cluster: Cluster, topic: str) -> dict[str, tuple[str, int, dict[str, str], int]]:
    """Requests by name: address, code, fields, expected response code."""
    pull = {
        "consumerGroup": unique("Group"), "topic": topic, "queueId": "0", "queueOffset": "0", "maxMsgNums": "32",
        "sysFlag": "0", "commitOffset": "0", "suspendTimeoutMillis": "0", "subscription": "*", "subVersion": "0",
    }  # fmt: skip
    group = {"consumerGroup": unique("NoGroup")}
    return {
        "unknown code at the broker": (cluster.broker, UNKNOWN_CODE, {}, 3),
        "unknown code at the name server": (cluster.name_server, UNKNOWN_CODE, {}, 3),
        "pull of an absent topic": (cluster.broker, PULL_MESSAGE, {**pull, "topic": unique("Absent")}, 17),
        "pull of a queue out of range": (cluster.broker, PULL_MESSAGE, {**pull, "queueId": "55"}, 29),
        "pull without subscription by an unknown group": (cluster.broker, PULL_MESSAGE, pull, 24),
        "consumers of an unknown group": (cluster.broker, GET_CONSUMER_LIST_BY_GROUP, group, 1),
        "send without fields": (cluster.broker, SEND_MESSAGE_V2, {}, 1),
        "send with words for numbers": (cluster.broker, SEND_MESSAGE_V2, send_fields(topic, e="zero"), 1),
    }


def test_refused_requests_have_apaches_codes(java: JavaPeer, cluster: Cluster, topic: str) -> None:
    answers: dict[str, Record] = {}
    table = refusals(cluster, topic)
    for name, (address, code, fields, _) in table.items():
        answers[name] = java.invoke(address, code, fields, b"body")
    assert {name: answer["code"] for name, answer in answers.items()} == {
        name: expected for name, (_, _, _, expected) in table.items()
    }
    assert answers["unknown code at the broker"]["remark"] == " request type 9999 not supported"
