"""The broker divides queues among consumers, and remembers which groups pop (400, 401)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.broker import BrokerInMemory
from tests.support.heartbeat import heartbeat
from twisted_mq.broker.clients.queue_assignment import Group, NothingToDivide, divide
from twisted_mq.protocol.bodies import (
    BrokerData,
    MessageQueue,
    QueueData,
    SetMessageRequestModeRequestBody,
    TopicConfig,
    TopicRouteData,
    encode_body,
)
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.routing.name_servers import NameServers
from twisted_mq.routing.route_cache import RouteCache
from twisted_mq.storage.tables.small_tables import MessageRequestModeTable

QUEUES = [MessageQueue("T", "broker-a", number) for number in range(4)]
PULL = SetMessageRequestModeRequestBody("T", "G")


def pop(share: int) -> SetMessageRequestModeRequestBody:
    return SetMessageRequestModeRequestBody("T", "G", "POP", share)


def ids(client_id: str, members: str, mode: SetMessageRequestModeRequestBody, strategy: str = "AVG") -> list[int]:
    return [queue.queue_id for queue in divide(strategy, QUEUES, Group(client_id, list(members)), mode)]


def test_pulled_queues_are_divided_by_the_strategy() -> None:
    assert [ids(member, "abc", PULL) for member in "abc"] == [[0, 1], [2], [3]]
    assert [ids(member, "abc", PULL, "AVG_BY_CIRCLE") for member in "abc"] == [[0, 3], [1], [2]]
    assert ids("x", "abc", PULL) == []


def test_popped_queues_are_shared_with_the_members_behind() -> None:
    assert [ids(member, "abc", pop(1)) for member in "abc"] == [[0, 1, 2], [2, 3], [0, 1, 3]]
    assert ids("x", "abc", pop(1)) == []


def test_more_members_than_queues_have_one_queue_each() -> None:
    assert [ids(member, "abcdef", pop(2)) for member in "abcdef"] == [[0], [1], [2], [3], [0], [1]]
    assert ids("x", "abcdef", pop(2)) == []


@pytest.mark.parametrize("share", [-1, 0, 2, 9])
def test_queues_shared_by_all_are_named_once_for_a_broker(share: int) -> None:
    assert ids("a", "abc", pop(share)) == [-1]
    assert ids("x", "abc", pop(share)) == [-1]


@pytest.mark.parametrize(
    ("strategy", "client_id", "queues"),
    [("AVG", "", QUEUES), ("AVG", "a", []), ("NO", "a", QUEUES), (None, "a", QUEUES)],
)
def test_what_cannot_be_divided_is_named(strategy: str | None, client_id: str, queues: list[MessageQueue]) -> None:
    with pytest.raises(NothingToDivide):
        divide(strategy, queues, Group(client_id, ["a"]), PULL)


def broker_with(**options: Any) -> BrokerInMemory:
    broker = BrokerInMemory(broker_name="broker-a", **options)
    broker.controller.topics.update([TopicConfig(topic_name="T", read_queue_nums=2, write_queue_nums=2)])
    heartbeat(broker.connect(), "G", "T", client_id="c1")
    heartbeat(broker.connect(), "G", "T", client_id="c2")
    return broker


def query(broker: BrokerInMemory, **changes: Any) -> Any:
    body = {"topic": "T", "consumerGroup": "G", "clientId": "c1", "strategyName": "AVG", "messageModel": "CLUSTERING"}
    answer = broker.connect().ask(RequestCode.QUERY_ASSIGNMENT, body=json.dumps(body | changes).encode())
    assert (answer.code, answer.remark) == (0, None)
    return json.loads(answer.body)


def assigned(mode: str, *queue_ids: int, topic: str = "T") -> dict[str, Any]:
    queues = [{"brokerName": "broker-a", "queueId": one, "topic": topic} for one in queue_ids]
    return {"messageQueueAssignments": [{"messageQueue": queue, "mode": mode} for queue in queues]}


def test_a_consumer_is_told_its_queues() -> None:
    broker = broker_with()
    assert query(broker) == assigned("PULL", 0)
    assert query(broker, clientId="c2") == assigned("PULL", 1)
    assert query(broker, clientId="c3") == assigned("PULL")
    assert query(broker, messageModel="BROADCASTING", consumerGroup="Nobody") == assigned("PULL", 0, 1)
    assert query(broker, topic="%LMQ%T") == assigned("PULL", 0, topic="%LMQ%T")


def test_each_consumer_has_all_queues_where_they_are_not_divided() -> None:
    assert query(broker_with(server_load_balancer_enable=False)) == assigned("PULL", 0, 1)


def test_a_default_of_pop_spares_the_retry_topics() -> None:
    broker = broker_with(default_message_request_mode="POP")
    assert query(broker) == assigned("POP", -1)
    assert query(broker, topic="%RETRY%G") == assigned("PULL", 0, topic="%RETRY%G")


@pytest.mark.parametrize(
    "changes", [{"topic": "Unknown"}, {"consumerGroup": "Nobody"}, {"strategyName": "NEAR"}, {"clientId": None}]
)
def test_without_a_sound_answer_the_consumer_keeps_what_it_has(changes: dict[str, Any]) -> None:
    assert query(broker_with(), **changes) == {}


@pytest.mark.parametrize("name", ["topic", "consumerGroup", "messageModel"])
def test_a_query_without_a_needed_member_is_refused(name: str) -> None:
    body = {"topic": "T", "consumerGroup": "G", "clientId": "c1", "messageModel": "CLUSTERING"} | {name: None}
    answer = broker_with().connect().ask(RequestCode.QUERY_ASSIGNMENT, body=json.dumps(body).encode())
    assert answer.code == 1
    assert name.lower() in (answer.remark or "").replace("_", "")


def set_mode(broker: BrokerInMemory, **fields: Any) -> tuple[int, str | None]:
    body = {"topic": "T", "consumerGroup": "G", "mode": "POP", "popShareQueueNum": 0} | fields
    answer = broker.connect().ask(RequestCode.SET_MESSAGE_REQUEST_MODE, body=json.dumps(body).encode())
    return answer.code, answer.remark


def test_a_mode_that_is_set_is_told_and_saved() -> None:
    broker = broker_with()
    assert set_mode(broker) == (0, None)
    assert query(broker) == assigned("POP", -1)
    assert query(broker, topic="%RETRY%G") == assigned("PULL", 0, topic="%RETRY%G")
    assert set_mode(broker, mode="PULL") == (0, None)
    assert query(broker) == assigned("PULL", 0)
    assert broker.tables["modes"].saved == 2


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"topic": "%RETRY%G"}, (16, "retry topic is not allowed to set mode")),
        ({"topic": "Unknown"}, (17, "topic[Unknown] not exist")),
        ({"consumerGroup": "H"}, (26, "subscription group does not exist")),
        ({"topic": None}, (1, "SetMessageRequestModeRequestBody has no topic")),
        ({"consumerGroup": None}, (1, "SetMessageRequestModeRequestBody has no consumer_group")),
    ],
    ids=["retry", "topic", "group", "no topic", "no group"],
)
def test_a_mode_that_cannot_be_set_changes_nothing(fields: dict[str, Any], refusal: tuple[int, str]) -> None:
    broker = broker_with()
    broker.controller.groups.auto_create = False
    assert set_mode(broker, **fields) == refusal
    assert (broker.tables["modes"].modes, broker.tables["modes"].saved) == ({}, 0)


def test_modes_outlive_a_restart(tmp_path: Any) -> None:
    path = str(tmp_path / "messageRequestMode.json")
    table = MessageRequestModeTable(path)
    table.load()
    table.modes = {"T": {"G": pop(3)}}
    table.save()
    again = MessageRequestModeTable(path)
    again.load()
    assert again.modes == table.modes


class NameServer:
    """Replacement of a connection to a name server that answers with its routes."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.routes: dict[str, TopicRouteData] = {}

    async def invoke(self, address: str, request: RemotingCommand, seconds: float) -> RemotingCommand:
        topic = (request.ext_fields or {})["topic"]
        self.asked.append(topic)
        route = self.routes.get(topic)
        return request.answer(17, "none") if route is None else request.answer(body=encode_body(route))


def route(**queues: int) -> TopicRouteData:
    return TopicRouteData(
        queue_datas=[QueueData(name, count, count, 6) for name, count in queues.items()],
        broker_datas=[BrokerData("C", name, {0: "10.0.0.1:1"}) for name in queues],
    )


def test_queues_of_all_brokers_are_asked_of_the_name_server_once_and_refreshed() -> None:
    server = NameServer()
    cache = RouteCache(NameServers(server, ["10.0.0.9:9876"]), lambda topic, route: None)  # type: ignore[arg-type]
    broker = broker_with(parts={"route_cache": cache})
    routes = broker.controller.routes
    assert query(broker) == {}
    server.routes["T"] = route(a=1, b=1)
    for _ in range(2):
        (mine,) = query(broker)["messageQueueAssignments"]
        assert mine["messageQueue"]["brokerName"] == "a"
    assert server.asked == ["T", "T"]
    server.routes["T"] = route(a=1, b=3)
    routes.refresh()
    assert len(query(broker)["messageQueueAssignments"]) == 2
    del server.routes["T"]
    routes.refresh()
    assert query(broker) == {}
