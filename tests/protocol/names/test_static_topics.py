"""Logical queues of static topics: whose they are, and what producers and consumers see of them."""

from __future__ import annotations

from twisted_mq.protocol.bodies import BrokerData, MessageQueue, QueueData, TopicQueueMappingInfo, TopicRouteData
from twisted_mq.protocol.names.static_topics import is_logical, logical_broker_name, logical_queues
from twisted_mq.protocol.names.topic_route import publish_info, subscribe_queues

GLOBAL = "__syslo__global__"


def info(broker: str, epoch: int, total: int, *global_ids: int, scope: str = "__global__") -> TopicQueueMappingInfo:
    held = {global_id: number for number, global_id in enumerate(global_ids)}
    return TopicQueueMappingInfo("T", scope, total, broker, epoch, curr_id_map=held)


def route(*infos: TopicQueueMappingInfo) -> TopicRouteData:
    brokers = [one.bname or "" for one in infos]
    return TopicRouteData(
        queue_datas=[QueueData(name, 8, 8, 6) for name in brokers],
        broker_datas=[BrokerData("c", name, {0: f"{name}:1"}) for name in brokers],
        topic_queue_mapping_by_broker=dict(zip(brokers, infos, strict=True)),
    )


def queue(global_id: int, name: str = GLOBAL) -> MessageQueue:
    return MessageQueue("T", name, global_id)


def test_names_are_those_of_apaches_clients() -> None:
    assert (logical_broker_name("__global__"), logical_broker_name("east")) == (GLOBAL, "__syslo__east")
    assert is_logical(GLOBAL) and not is_logical("broker-a")


def test_each_queue_is_with_the_broker_of_the_latest_epoch() -> None:
    moving = route(info("b", 20, 3, 1), info("a", 10, 3, 0, 1))
    assert logical_queues("T", moving) == {
        queue(0): "a",
        queue(1): "b",
        queue(2): "__syslo__none__",
    }


def test_scopes_have_queues_of_their_own() -> None:
    both = route(info("a", 1, 1, 0), info("b", 1, 1, 0, scope="east"))
    assert logical_queues("T", both) == {queue(0): "a", queue(0, "__syslo__east"): "b"}


def test_other_topics_have_none() -> None:
    plain = TopicRouteData(queue_datas=[QueueData("a", 1, 1, 6)], topic_queue_mapping_by_broker={})
    assert logical_queues("T", plain) == {}
    assert subscribe_queues("T", plain) == [queue(0, "a")]


def test_clients_see_the_logical_queues_and_no_others() -> None:
    static = route(info("a", 1, 3, 2, 0), info("b", 1, 3, 1))
    assert publish_info("T", static).queues == (queue(0), queue(1), queue(2))
    assert subscribe_queues("T", static) == [queue(0), queue(1), queue(2)]
