"""Queues of a route for producers and consumers."""

from __future__ import annotations

import attrs
import pytest

from twisted_mq.protocol.bodies import BrokerData, MessageQueue, QueueData, TopicRouteData
from twisted_mq.protocol.names.topic_route import (
    TopicPublishInfo,
    publish_info,
    pull_address,
    queues_of,
    route_for_new_topic,
    subscribe_queues,
)


def broker(name: str, *ids: int) -> BrokerData:
    return BrokerData("c", name, {one: f"{name}-{one}:10911" for one in ids})


def queue_data(name: str, read: int, write: int, perm: int = 6) -> QueueData:
    return QueueData(broker_name=name, read_queue_nums=read, write_queue_nums=write, perm=perm)


ROUTE = TopicRouteData(
    queue_datas=[queue_data("b", 3, 2), queue_data("a", 1, 2), queue_data("c", 2, 2, perm=4), queue_data("d", 1, 1)],
    broker_datas=[broker("a", 0), broker("b", 0, 1), broker("c", 0), broker("d", 1)],
)


def test_publish_queues_are_writable_ones_of_brokers_with_a_master_by_broker_name() -> None:
    assert publish_info("T", ROUTE).queues == (*queues_of("T", "a", 2), *queues_of("T", "b", 2))


def test_order_configuration_decides_the_queues() -> None:
    route = attrs.evolve(ROUTE, order_topic_conf="b:1;a:2;")
    info = publish_info("T", route)
    assert info.queues == (MessageQueue("T", "b", 0), *queues_of("T", "a", 2))
    assert info.has_order_conf


def test_subscribe_queues_are_readable_ones_sorted_masters_or_not() -> None:
    assert subscribe_queues("T", ROUTE) == [
        *queues_of("T", "a", 1), *queues_of("T", "b", 3), *queues_of("T", "c", 2), *queues_of("T", "d", 1),
    ]  # fmt: skip


def test_broker_without_an_address_takes_no_messages() -> None:
    route = TopicRouteData(queue_datas=[queue_data("gone", 4, 4)])
    assert publish_info("T", route).queues == ()


def test_new_topic_has_at_most_the_wanted_queues_on_each_broker() -> None:
    route = route_for_new_topic(TopicRouteData(queue_datas=[queue_data("a", 8, 8), queue_data("b", 2, 8)]), 4)
    assert [(one.read_queue_nums, one.write_queue_nums) for one in route.queue_datas] == [(4, 4), (2, 2)]


def test_select_goes_round_and_past_what_is_filtered() -> None:
    info = TopicPublishInfo("T", tuple(queues_of("T", "a", 1) + queues_of("T", "b", 2)), turn=2)
    taken = [info.select(), info.select(), info.select(lambda queue: queue.broker_name == "b")]
    assert taken == [MessageQueue("T", "b", 1), MessageQueue("T", "a", 0), MessageQueue("T", "b", 0)]
    assert info.select(lambda queue: False) is None
    assert TopicPublishInfo("T", ()).select() is None


@pytest.mark.parametrize(
    ("ids", "suggested", "expected"),
    [
        pytest.param((0, 1), 0, 0, id="master"),
        pytest.param((0, 1), 1, 1, id="slave"),
        pytest.param((0, 2), 1, 2, id="next slave"),
        pytest.param((0, 1), 5, 0, id="unknown slave: master"),
        pytest.param((1,), 0, 1, id="no master: slave"),
        pytest.param((), 0, None, id="nobody"),
    ],
)
def test_pull_address(ids: tuple[int, ...], suggested: int, expected: int | None) -> None:
    found = pull_address(broker("a", *ids), suggested)
    assert found == (None if expected is None else (f"a-{expected}:10911", expected))
