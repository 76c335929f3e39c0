"""Apache's dashboard at Apache's servers and at this project's: what its pages show, and what its forms change."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import attrs
import pytest

from interop.peers.clients import Clients, JavaPeer, unique
from interop.peers.dashboard import JAR, Dashboard, running_dashboard
from interop.peers.process import wait_until
from interop.peers.servers import BROKER_NAME, CLUSTER_NAME, Cluster

pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(JAR is None, reason="MQ_DASHBOARD_JAR names no jar: there is none but one's own build"),
]

TEXTS = {f"text {number}" for number in range(5)}
QUEUES = [0, 1, 2, 3]
A_DAY_MS = 86_400_000


@attrs.frozen
class Stage:
    """A topic with messages, a group that took them and is connected, one that gave them up, and a connected producer."""

    topic: str
    group: str
    gave_up: str
    producers: str
    sent: list[dict[str, Any]]


@pytest.fixture(scope="module")
def dashboard(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    with running_dashboard(cluster.name_server, tmp_path_factory.mktemp("dashboard") / "home") as running:
        yield running


@pytest.fixture(scope="module")
def stage(dashboard: Dashboard, java: JavaPeer, cluster: Cluster) -> Iterator[Stage]:
    clients = Clients(java, cluster.name_server)
    topic, group, gave_up, producers = unique("Shown"), unique("Reader"), unique("GaveUp"), unique("shop")
    make_topic(dashboard, topic)
    cluster.wait_route(topic)
    try:
        producer = clients.producer(producers)
        sent = producer.send_all(topic, sorted(TEXTS), keys="a-key", tags="TagA")
        clients.push_consumer(group, topic).wait_bodies(TEXTS)
        refusing = clients.push_consumer(gave_up, topic, refuse=1_000, retry_level=-1)
        wait_until(lambda: len(refusing.refused) >= len(TEXTS), "all are given up")
        cluster.wait_route(f"%DLQ%{gave_up}")
        yield Stage(topic, group, gave_up, producers, sent)
    finally:
        clients.stop()


def make_topic(dashboard: Dashboard, name: str, **changed: object) -> None:
    fields = {"topicName": name, "readQueueNums": 4, "writeQueueNums": 4, "perm": 6, "order": False}
    where = {"brokerNameList": [BROKER_NAME], "clusterNameList": []}
    dashboard.post("/topic/createOrUpdate.do", fields | where | changed)


def texts_of(views: list[dict[str, Any]]) -> set[str]:
    return {one["messageBody"] for one in views}


def test_clusters_with_their_brokers_figures_and_settings(dashboard: Dashboard, cluster: Cluster) -> None:
    shown = dashboard.get("/cluster/list.query")
    assert shown["clusterInfo"]["clusterAddrTable"] == {CLUSTER_NAME: [BROKER_NAME]}
    assert shown["clusterInfo"]["brokerAddrTable"][BROKER_NAME]["brokerAddrs"] == {"0": cluster.broker}
    figures = shown["brokerServer"][BROKER_NAME]["0"]
    day = ("msgPutTotalTodayNow", "msgPutTotalTodayMorning", "msgGetTotalTodayNow", "msgGetTotalTodayMorning")
    assert all(int(figures[name]) >= 0 for name in day)
    assert {"putTps", "getTransferredTps", "commitLogDiskRatio"} <= figures.keys()
    assert figures["brokerVersionDesc"].startswith("V5_")
    assert dashboard.get("/cluster/brokerConfig.query", brokerAddr=cluster.broker)["brokerName"] == BROKER_NAME


def test_name_servers_and_their_state(dashboard: Dashboard, cluster: Cluster) -> None:
    assert dashboard.get("/ops/homePage.query")["currentNamesrv"] == cluster.name_server
    assert dashboard.get("/ops/rocketMqStatus.query") is not None


def test_topics_with_their_routes_queues_settings_and_groups(
    dashboard: Dashboard, cluster: Cluster, stage: Stage
) -> None:
    topic = stage.topic
    assert topic in dashboard.get("/topic/list.query", skipSysProcess="true", skipRetryAndDlq="true")["topicList"]
    kinds = dashboard.get("/topic/list.queryTopicType")
    assert dict(zip(kinds["topicNameList"], kinds["messageTypeList"], strict=True))[topic] == "NORMAL"
    queues = dashboard.get("/topic/stats.query", topic=topic)["offsetTable"].values()
    assert (len(queues), sum(one["maxOffset"] - one["minOffset"] for one in queues)) == (4, len(TEXTS))
    (data,) = dashboard.get("/topic/route.query", topic=topic)["queueDatas"]
    assert (data["brokerName"], data["readQueueNums"], data["writeQueueNums"], data["perm"]) == (BROKER_NAME, 4, 4, 6)
    (config,) = dashboard.get("/topic/examineTopicConfig.query", topic=topic)
    assert (config["topicName"], config["messageType"]) == (topic, "NORMAL")
    groups = {stage.group, stage.gave_up}  # Apache's broker names them once they have committed
    asked = "/topic/queryTopicConsumerInfo.query"
    wait_until(lambda: groups <= set(dashboard.get(asked, topic=topic)["groupList"]), "the topic's groups")
    assert dashboard.get("/topic/queryConsumerByTopic.query", topic=topic)[stage.group]["diffTotal"] >= 0


def test_a_topic_is_made_sent_to_changed_and_deleted(dashboard: Dashboard, cluster: Cluster) -> None:
    topic = unique("Made")
    make_topic(dashboard, topic, messageType="NORMAL")
    cluster.wait_route(topic)
    message = {"topic": topic, "key": "k", "tag": "t", "messageBody": "from the form", "traceEnabled": False}
    assert dashboard.post("/topic/sendTopicMessage.do", message)["sendStatus"] == "SEND_OK"
    make_topic(dashboard, topic, readQueueNums=8, writeQueueNums=8)
    (config,) = dashboard.get("/topic/examineTopicConfig.query", topic=topic)
    assert config["readQueueNums"] == 8
    assert dashboard.post("/topic/deleteTopic.do", topic=topic) is True
    wait_until(lambda: topic not in dashboard.get("/topic/list.query")["topicList"], "the topic is gone")


def test_a_group_with_its_lag_clients_and_a_clients_state(dashboard: Dashboard, cluster: Cluster, stage: Stage) -> None:
    group = stage.group
    row = dashboard.get("/consumer/group.query", consumerGroup=group)
    assert (row["count"], row["messageModel"], row["consumeType"]) == (1, "CLUSTERING", "CONSUME_PASSIVELY")

    def lag() -> list[Any]:
        shown = dashboard.get("/consumer/queryTopicByConsumer.query", consumerGroup=group, address=cluster.broker)
        return [one for one in shown if one["topic"] == stage.topic]

    wait_until(lambda: [one["diffTotal"] for one in lag()] == [0], "the group has committed all")
    queues = lag()[0]["queueStatInfoList"]
    assert (len(queues), sum(one["consumerOffset"] for one in queues)) == (4, len(TEXTS))
    connection = dashboard.get("/consumer/consumerConnection.query", consumerGroup=group, address=cluster.broker)
    assert stage.topic in connection["subscriptionTable"]
    (member,) = connection["connectionSet"]
    asked = {"consumerGroup": group, "clientId": member["clientId"], "jstack": "true"}
    running = dashboard.get("/consumer/consumerRunningInfo.query", **asked)
    assert [one["topic"] for one in running["subscriptionSet"] if one["topic"] == stage.topic] == [stage.topic]
    assert len([one for one in running["mqTable"] if stage.topic in one]) == 4
    assert "java.lang.Thread" in running["jstack"] or "TID" in running["jstack"]
    assert group in {one["group"] for one in dashboard.get("/consumer/groupList.query", skipSysGroup="false")}


def test_a_group_is_made_configured_and_deleted(dashboard: Dashboard, stage: Stage) -> None:
    group = unique("made")
    config = {"groupName": group, "retryMaxTimes": 5, "retryQueueNums": 2, "consumeEnable": True, "brokerId": 0}
    where = {"brokerNameList": [BROKER_NAME], "clusterNameList": []}
    assert dashboard.post("/consumer/createOrUpdate.do", {**where, "subscriptionGroupConfig": config}) is True
    (shown,) = dashboard.get("/consumer/examineSubscriptionGroupConfig.query", consumerGroup=group)
    assert {name: shown["subscriptionGroupConfig"][name] for name in config} == config
    asked = {"groupName": group, "brokerNameList": [BROKER_NAME]}
    assert dashboard.post("/consumer/deleteSubGroup.do", asked) is True


def test_offsets_go_back_and_on_to_the_end(dashboard: Dashboard, stage: Stage) -> None:
    """Both groups are connected."""
    asked = {"topic": stage.topic, "force": True}
    for group in (stage.group, stage.gave_up):
        back = {**asked, "consumerGroupList": [group], "resetTime": int(time.time() * 1000) - A_DAY_MS}
        assert dashboard.post("/consumer/resetOffset.do", back)[group]["status"] is True
        on = {**asked, "consumerGroupList": [group], "resetTime": -1}
        moved = dashboard.post("/consumer/skipAccumulate.do", on)[group]
        assert moved["status"] is True
        assert sum(one["rollbackOffset"] for one in moved["rollbackStatsList"]) == len(TEXTS)


def test_connected_producers(dashboard: Dashboard, stage: Stage) -> None:
    shown = dashboard.get("/producer/producerConnection.query", producerGroup=stage.producers, topic=stage.topic)
    assert [one["language"] for one in shown["connectionSet"]] == ["JAVA"]


def test_messages_by_key_time_and_id(dashboard: Dashboard, stage: Stage) -> None:
    topic = stage.topic
    assert texts_of(dashboard.get("/message/queryMessageByTopicAndKey.query", topic=topic, key="a-key")) == TEXTS
    now = int(time.time() * 1000)
    span = {"begin": now - A_DAY_MS, "end": now + A_DAY_MS}
    assert len(dashboard.get("/message/queryMessageByTopic.query", topic=topic, **span)) == len(TEXTS)
    page = {"topic": topic, "pageNum": 1, "pageSize": 20, "taskId": "", **span}
    found = dashboard.post("/message/queryMessagePageByTopic.query", page)["page"]
    assert (found["totalElements"], len(found["content"])) == (len(TEXTS), len(TEXTS))
    shown = dashboard.get("/message/viewMessage.query", topic=topic, msgId=stage.sent[0]["msg_ids"][0])
    assert (shown["messageView"]["messageBody"], shown["messageView"]["properties"]["TAGS"]) == ("text 0", "TagA")
    tracks = {one["consumerGroup"]: one["trackType"] for one in shown["messageTrackList"]}
    assert tracks[stage.group] == "CONSUMED"


def test_a_message_is_consumed_directly_by_a_client_that_is_named(
    dashboard: Dashboard, cluster: Cluster, stage: Stage
) -> None:
    where = {"consumerGroup": stage.group, "address": cluster.broker}
    (member,) = dashboard.get("/consumer/consumerConnection.query", **where)["connectionSet"]
    asked = {"topic": stage.topic, "consumerGroup": stage.group, "msgId": stage.sent[0]["msg_ids"][0]}
    done = dashboard.post("/message/consumeMessageDirectly.do", clientId=member["clientId"], **asked)
    assert done["consumeResult"] == "CR_SUCCESS"


def test_dead_letters_are_listed_and_handed_to_a_client_again(dashboard: Dashboard, stage: Stage) -> None:
    topic, now = f"%DLQ%{stage.gave_up}", int(time.time() * 1000)
    asked = {"topic": topic, "begin": now - A_DAY_MS, "end": now + A_DAY_MS, "pageNum": 1, "pageSize": 20, "taskId": ""}

    def letters() -> list[Any]:
        return dashboard.post("/dlqMessage/queryDlqMessageByConsumerGroup.query", asked)["page"]["content"]

    wait_until(lambda: len(letters()) == len(TEXTS), "all dead letters")
    one = letters()[0]
    again = [{"topicName": topic, "consumerGroup": stage.gave_up, "msgId": one["msgId"], "clientId": None}]
    (done,) = dashboard.post("/dlqMessage/batchResendDlqMessage.do", again)
    assert done["msgId"] == one["msgId"]
    assert done["consumeResult"] == "CR_LATER"  # its listener refuses everything


def test_rates_of_the_day(dashboard: Dashboard, stage: Stage) -> None:
    """The dashboard asks brokers and topics once a minute."""
    today = time.strftime("%Y-%m-%d")
    wait_until(lambda: dashboard.get("/dashboard/broker.query", date=today).get(f"{BROKER_NAME}:0"), "brokers' rates")
    wait_until(lambda: stage.topic in dashboard.get("/dashboard/topic.query", date=today), "topics' rates")
