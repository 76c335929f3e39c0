"""Apache's Java clients that leave the division of queues to the broker, against both brokers."""

from __future__ import annotations

import base64
import json

import pytest

from interop.peers.clients import Clients, JavaPeer
from interop.peers.servers import BROKER_NAME, Cluster
from interop.peers.waiting import ALL_QUEUES

pytestmark = pytest.mark.peer

QUERY_ASSIGNMENT = 400


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
