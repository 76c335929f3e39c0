"""Apache's mqadmin against both clusters prints the same columns and keys."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from interop.peers.clients import Clients, JavaPeer, unique
from interop.peers.process import wait_until
from interop.peers.servers import BROKER_NAME, CLUSTER_NAME, Cluster

pytestmark = pytest.mark.peer

CLUSTER_COLUMNS = (
    "#Cluster Name #Broker Name #BID #Addr #Version #InTPS(LOAD) #OutTPS(LOAD) "
    "#Timer(Progress) #PCWait(ms) #Hour #SPACE #ACTIVATED"
)
STATUS_COLUMNS = "#Broker Name #QID #Min Offset #Max Offset #Last Updated"
TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}"
SYSTEM_TOPICS = {"TBW102", "SELF_TEST_TOPIC", "SCHEDULE_TOPIC_XXXX", "OFFSET_MOVED_EVENT", CLUSTER_NAME, BROKER_NAME}


def route_of(admin: Any, topic: str) -> Any:
    """The topic's route as mqadmin prints it, with the broker ids quoted to make it JSON."""
    printed = "".join(admin("topicRoute", "-t", topic))
    return json.loads(re.sub(r"(?<=[{,])(\d+):", r'"\1":', printed))


@pytest.fixture
def admin(java: JavaPeer, cluster: Cluster) -> Any:
    """Runs one command against the cluster's name server; lines of its output with spaces made single."""

    def run(*arguments: str) -> list[str]:
        printed = java.mqadmin(arguments[0], "-n", cluster.name_server, *arguments[1:])
        return [" ".join(line.split()) for line in printed.splitlines()]

    return run


def test_cluster_list_shows_the_broker(admin: Any, cluster: Cluster) -> None:
    header, row = [line for line in admin("clusterList") if line]
    assert header == CLUSTER_COLUMNS
    assert row.startswith(f"{CLUSTER_NAME} {BROKER_NAME} 0 {cluster.broker} V5_3_3 ")
    load = (
        r"\d+\.\d\d\(\d+,\d+ms\) \d+\.\d\d\(\d+,\d+ms\|\d+,\d+ms\) \S+\(\S+, \S+, \S+\) \d+ -?\d+\.\d\d \d\.\d{4} true"
    )
    assert re.fullmatch(load, row.split(" V5_3_3 ")[1])


def test_cluster_list_with_more_statistics(admin: Any) -> None:
    header, row = [line for line in admin("clusterList", "-m") if line]
    assert header == "#Cluster Name #Broker Name #InTotalYest #OutTotalYest #InTotalToday #OutTotalToday"
    assert re.fullmatch(rf"{CLUSTER_NAME} {BROKER_NAME} \d+ \d+ \d+ \d+", row)


def test_topic_list_names_system_and_user_topics(admin: Any, topic: str) -> None:
    assert {topic, *SYSTEM_TOPICS} <= set(admin("topicList"))


def test_topic_list_of_clusters_shows_the_consumer_groups(
    admin: Any, java_clients: Clients, topic: str, group: str
) -> None:
    consumer = java_clients.push_consumer(group, topic)
    java_clients.producer().send(topic, "something to consume")
    consumer.wait_bodies({"something to consume"})
    consumer.stop()
    header, *rows = admin("topicList", "-c")
    assert header == "#Cluster Name #Topic #Consumer Group"
    assert f"{CLUSTER_NAME} {topic} {group}" in rows


def test_topic_route_has_the_keys_and_values_of_the_topic(admin: Any, cluster: Cluster, topic: str) -> None:
    assert route_of(admin, topic) == {
        "brokerDatas": [
            {
                "brokerAddrs": {"0": cluster.broker},
                "brokerName": BROKER_NAME,
                "cluster": CLUSTER_NAME,
                "enableActingMaster": False,
            }
        ],
        "filterServerTable": {},
        "queueDatas": [
            {"brokerName": BROKER_NAME, "perm": 6, "readQueueNums": 4, "topicSysFlag": 0, "writeQueueNums": 4}
        ],
    }


def test_topic_route_as_a_list(admin: Any, cluster: Cluster, topic: str) -> None:
    lines = [line for line in admin("topicRoute", "-t", topic, "-l") if line and not set(line) <= {"-"}]
    assert lines[0] == "#ClusterName #BrokerName #BrokerAddrs #ReadQueue #WriteQueue #Perm"
    assert lines[1] == f"{CLUSTER_NAME} {BROKER_NAME} {{0={cluster.broker}}} 4 4 6"
    assert lines[2] == "Total: 1 4 4"


def test_topic_status_counts_what_was_sent(admin: Any, java_clients: Clients, topic: str) -> None:
    java_clients.producer().send_all(topic, [f"status {number}" for number in range(8)])

    def rows() -> list[str]:
        return [line for line in admin("topicStatus", "-t", topic) if line]

    wait_until(lambda: all(f"{queue_id} 0 2 " in rows()[queue_id + 1] for queue_id in range(4)), "all is dispatched")
    header, *queues, throughput = rows()
    assert header == STATUS_COLUMNS
    assert [re.sub(TIME, "TIME", queue) for queue in queues] == [
        f"{BROKER_NAME} {queue_id} 0 2 TIME" for queue_id in range(4)
    ]
    assert re.fullmatch(r"Topic Put TPS: \d+\.\d+", throughput)


def test_topic_status_of_an_empty_topic_lists_its_queues(admin: Any, topic: str) -> None:
    lines = [line for line in admin("topicStatus", "-t", topic) if line]
    assert lines[1:5] == [f"{BROKER_NAME} {queue_id} 0 0" for queue_id in range(4)]


def test_update_topic_changes_queues_and_permission(admin: Any, cluster: Cluster, topic: str) -> None:
    printed = admin("updateTopic", "-b", cluster.broker, "-t", topic, "-r", "6", "-w", "5", "-p", "4")
    assert printed == [
        f"create topic to {cluster.broker} success.",
        f"TopicConfig [topicName={topic}, readQueueNums=6, writeQueueNums=5, perm=R--, topicFilterType=SINGLE_TAG, "
        "topicSysFlag=0, order=false, attributes={}]",
    ]

    changed = {"brokerName": BROKER_NAME, "perm": 4, "readQueueNums": 6, "topicSysFlag": 0, "writeQueueNums": 5}
    wait_until(lambda: route_of(admin, topic)["queueDatas"] == [changed], "the name server learns the change")


def test_delete_topic_removes_it_from_broker_and_name_server(admin: Any, topic: str) -> None:
    printed = admin("deleteTopic", "-c", CLUSTER_NAME, "-t", topic)
    assert printed == [
        f"delete topic [{topic}] from cluster [{CLUSTER_NAME}] success.",
        f"delete topic [{topic}] from NameServer success.",
    ]
    wait_until(lambda: topic not in admin("topicList"), "the topic is gone")
    assert any("CODE: 17" in line for line in admin("topicRoute", "-t", topic))


def test_an_illegal_topic_name_is_refused(admin: Any, cluster: Cluster) -> None:
    name = unique("Bad") + "!topic"
    printed = admin("updateTopic", "-b", cluster.broker, "-t", name)
    assert any("illegal characters" in line for line in printed)
    assert name not in admin("topicList")


@pytest.mark.parametrize("clients", ["java_clients", "our_clients"])
def test_consumer_status_has_either_clients_subscription_offsets_and_rates(
    admin: Any, request: pytest.FixtureRequest, clients: str, topic: str, group: str
) -> None:
    of_one_kind: Clients = request.getfixturevalue(clients)
    consumer = of_one_kind.push_consumer(group, topic)
    bodies = [f"status {number}" for number in range(8)]
    of_one_kind.producer().send_all(topic, bodies)
    consumer.wait_bodies(set(bodies))
    (client,) = re.findall(r"\d+\.\d+\.\d+\.\d+@\S+", "\n".join(admin("consumerConnection", "-g", group)))

    listed = admin("consumerStatus", "-g", group)
    assert listed[0] == "#Index #ClientId #Version #ConsumerRunningInfoFile"
    assert re.fullmatch(rf"1 {re.escape(client)} V5_3_3 \d+/{re.escape(client)}", listed[1])
    assert {"Same subscription in the same group of consumer", "Rebalance OK"} <= set(listed)

    def sections() -> dict[str, str]:
        printed = "\n".join(admin("consumerStatus", "-g", group, "-i", client))
        parts = re.split(r"^#(Consumer [^#]+)#\n", printed, flags=re.MULTILINE)
        return dict(zip(parts[1::2], parts[2::2], strict=True))

    def offsets() -> list[tuple[str, str]]:
        found = re.findall(rf"^{topic} {BROKER_NAME} (\d) (\d+)$", sections()["Consumer Offset"], re.MULTILINE)
        return sorted(found)

    wait_until(lambda: offsets() == [(str(queue_id), "2") for queue_id in range(4)], "all is consumed")
    told = sections()
    assert rf" Topic: {topic} ClassFilter: false SubExpression: *" in told["Consumer Subscription"]
    rates = rf"^{topic} \d+\.\d\d \d+\.\d\d \d+\.\d\d \d+\.\d\d 0\.00 0$"
    assert re.search(rates, told["Consumer RT&TPS"], re.MULTILINE), told["Consumer RT&TPS"]
