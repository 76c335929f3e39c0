"""Routes, cluster and topic lists read from the table."""

from __future__ import annotations

import pytest

from tests.twisted_mq.namesrv.routes import T, U, address, broker_data, key, queue, register, topics
from twisted_mq.namesrv import route_query
from twisted_mq.namesrv.by_topic import run_all_slices
from twisted_mq.namesrv.route_table import RouteTable
from twisted_mq.protocol.bodies import BrokerMemberGroup, ClusterInfo, TopicList, TopicQueueMappingInfo, TopicRouteData


@pytest.fixture
def table() -> RouteTable:
    return RouteTable()


def test_unknown_topic_has_no_route(table):
    register(table)
    assert route_query.topic_route(table, "nothing") is None


def test_route_names_queues_and_all_addresses(table):
    register(table, "b2")
    register(table)
    register(table, "b1", 1)
    register(table, "b3", topics=topics("V", "W"))
    assert route_query.topic_route(table, T, order_topic_conf="b1:4") == TopicRouteData(
        order_topic_conf="b1:4",
        queue_datas=[queue("b1"), queue("b2")],
        broker_datas=[broker_data("b1", 0, 1), broker_data("b2", 0)],
    )


def test_route_carries_filter_servers_and_static_mappings(table):
    mapping = TopicQueueMappingInfo(topic=T, bname="b1", total_queues=8)
    register(table, filter_servers=["f:1"], topic_mappings={T: mapping})
    register(table, "b2", topics=topics("V", "W"), filter_servers=["f:2"])
    route = route_query.topic_route(table, T)
    assert route.filter_server_table == {address("b1"): ["f:1"]}
    assert route.topic_queue_mapping_by_broker == {"b1": mapping}


def orphans(table: RouteTable) -> None:
    """b1 lost its master and knows acting masters; b2 lost its master and does not."""
    for broker, acting in (("b1", True), ("b2", False)):
        for broker_id in (0, 1, 2):
            register(table, broker, broker_id, enable_acting_master=acting)
        table.unregister(key(broker), broker, 0)


def test_slave_stands_in_for_a_lost_master(table):
    orphans(table)
    route = route_query.topic_route(table, T, acting_master=True)
    assert [one.broker_addrs for one in route.broker_datas] == [
        {0: address("b1", 1), 2: address("b1", 2)},
        {1: address("b2", 1), 2: address("b2", 2)},
    ]
    assert table.brokers["b1"].broker_addrs == {1: address("b1", 1), 2: address("b1", 2)}


def test_slave_is_shown_as_slave_where_nobody_stands_in(table):
    orphans(table)
    plain = [{1: address("b1", 1), 2: address("b1", 2)}, {1: address("b2", 1), 2: address("b2", 2)}]
    route = route_query.topic_route(table, T, acting_master=False)
    assert [one.broker_addrs for one in route.broker_datas] == plain
    run_all_slices(table.set_writable("b1", True))
    route = route_query.topic_route(table, T, acting_master=True)
    assert [one.broker_addrs for one in route.broker_datas] == plain


def test_member_topic_shows_members_as_they_are(table):
    topic = "rmq_sys_SYNC_BROKER_MEMBER_b1"
    register(table, topics=topics(topic, T), enable_acting_master=True)
    register(table, "b1", 1, enable_acting_master=True)
    table.unregister(key("b1"), "b1", 0)
    route = route_query.topic_route(table, topic, acting_master=True)
    assert route.broker_datas == [broker_data("b1", 1, acting=True)]


def test_zone_keeps_its_own_brokers_and_those_without_master(table):
    register(table, zone_name="East", filter_servers=["f:1"])
    register(table, "b2", zone_name="west", filter_servers=["f:2"])
    register(table, "b3", 1, enable_acting_master=True)
    near = route_query.in_zone(route_query.topic_route(table, T), "EAST")
    assert near == TopicRouteData(
        queue_datas=[queue("b1"), queue("b3", perm=4)],
        broker_datas=[broker_data("b1", 0, zone="East"), broker_data("b3", 1, acting=True)],
        filter_server_table={address("b1"): ["f:1"]},
    )


def test_cluster_info_names_everything(table):
    assert route_query.cluster_info(table) == ClusterInfo()
    register(table, "b2")
    register(table)
    register(table, "b3", cluster_name="D")
    info = route_query.cluster_info(table)
    assert list(info.broker_addr_table) == ["b1", "b2", "b3"]
    assert info.broker_addr_table["b1"] == broker_data("b1", 0)
    assert info.cluster_addr_table == {"C": ["b1", "b2"], "D": ["b3"]}


def test_member_group(table):
    register(table)
    register(table, "b1", 1)
    group = BrokerMemberGroup("C", "b1", {0: address("b1"), 1: address("b1", 1)})
    assert route_query.broker_member_group(table, "C", "b1") == group
    assert route_query.broker_member_group(table, "C", "b9") == BrokerMemberGroup("C", "b9", {})


def test_topic_lists(table):
    assert route_query.system_topics(table) == TopicList()
    register(table)
    register(table, "b2", cluster_name="D", topics=topics("V", "W"))
    assert run_all_slices(route_query.all_topics(table)) == [T, U, "V", "W"]
    assert run_all_slices(route_query.topics_of_cluster(table, "D")) == ["V", "W"]
    assert run_all_slices(route_query.topics_of_cluster(table, "nowhere")) == []
    assert route_query.system_topics(table) == TopicList(["C", "D", "b1", "b2"], address("b1"))


def test_unit_lists_go_by_the_flag(table):
    flagged = {
        **topics("plain"),
        **topics("unit", sys_flag=1),
        **topics("sub", sys_flag=2),
        **topics("both", sys_flag=3),
    }
    register(table, topics=flagged)
    assert run_all_slices(route_query.unit_topics(table)) == ["both", "unit"]
    assert run_all_slices(route_query.unit_sub_topics(table)) == ["both", "sub"]
    assert run_all_slices(route_query.unit_sub_topics_outside_units(table)) == ["sub"]
