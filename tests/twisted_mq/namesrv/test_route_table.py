"""Registration, departure, expiry and permissions in the route table."""

from __future__ import annotations

import pytest

from tests.twisted_mq.namesrv.routes import (
    Link,
    T,
    U,
    address,
    broker_data,
    connection,
    ha_address,
    key,
    queue,
    register,
    topics,
    version,
)
from twisted_mq.namesrv.by_topic import run_all_slices
from twisted_mq.namesrv.route_table import BROKER_EXPIRY_MS, RouteTable
from twisted_mq.namesrv.route_values import BrokerAddress, Expired, MinBrokerIdChange, Registered
from twisted_mq.protocol.bodies import QueueData, TopicQueueMappingInfo


@pytest.fixture
def table() -> RouteTable:
    return RouteTable()


def snapshot(table: RouteTable):
    return table.topics, table.brokers, table.clusters, set(table.live)


def test_master_registers_with_its_topics(table):
    assert register(table) == Registered()
    assert snapshot(table) == (
        {T: {"b1": queue("b1")}, U: {"b1": queue("b1")}},
        {"b1": broker_data("b1", 0)},
        {"C": {"b1"}},
        {key("b1")},
    )


def test_slave_is_told_its_master_and_brings_no_topics(table):
    register(table)
    told = register(table, "b1", 1, topics=topics("V", "W"))
    assert told == Registered(master_address=address("b1"), ha_server_address=ha_address("b1"))
    assert table.brokers == {"b1": broker_data("b1", 0, 1)}
    assert sorted(table.topics) == [T, U]


def test_slave_without_a_living_master_is_told_none(table):
    assert register(table, "b1", 1) == Registered()
    register(table)
    table.live.pop(key("b1"))
    assert register(table, "b1", 1) == Registered()


@pytest.mark.parametrize(
    ("acting", "perms"),
    [(None, {}), (False, {T: 6, U: 6}), (True, {T: 4, U: 4})],
    ids=["before 5.0", "acting masters off", "acting masters on"],
)
def test_topics_of_the_lowest_slave_count_where_brokers_know_acting_masters(table, acting, perms):
    register(table, "b1", 1, enable_acting_master=acting)
    register(table, "b1", 2, enable_acting_master=acting, topics=topics("V", "W"))
    assert {topic: queues["b1"].perm for topic, queues in table.topics.items()} == perms


def test_same_version_changes_no_queues_but_adds_what_is_missing(table):
    register(table)
    register(table, topics=topics(T, "V", queues=9))
    assert table.topics == {T: {"b1": queue("b1")}, U: {"b1": queue("b1")}, "V": {"b1": queue("b1", queues=9)}}


def test_new_version_changes_queues(table):
    register(table)
    register(table, topics=topics(T, perm=4, queues=2), data_version=version(2))
    assert table.topics == {T: {"b1": queue("b1", perm=4, queues=2)}, U: {"b1": queue("b1")}}


def test_topics_missing_from_a_registration_go_only_where_that_is_wanted(table):
    register(table)
    register(table, "b2")
    register(table, topics=topics(T, "V"), data_version=version(2))
    assert sorted(table.topics[U]) == ["b1", "b2"]
    register(table, topics=topics(T, "V"), data_version=version(3), delete=True)
    assert sorted(table.topics[U]) == ["b2"]
    mapping = TopicQueueMappingInfo(topic=T, bname="b1", total_queues=4)
    register(table, "b2", topics=topics("V", "W"), topic_mappings={T: mapping}, delete=True)
    assert sorted(table.topics[U]) == ["b2"]


def test_single_topic_of_an_unregistered_broker_is_refused_and_leaves_no_trace(table):
    assert register(table, topics=topics(T)) == Registered(accepted=False)
    assert snapshot(table) == ({}, {}, {}, set())
    register(table)
    assert register(table, topics=topics("V"), data_version=version(2)) == Registered()
    assert sorted(table.topics) == [T, U, "V"]


def test_slave_that_became_master_stands_under_one_id(table):
    register(table)
    register(table, "b1", 1)
    table.unregister(key("b1"), "b1", 0)
    register(table, "b1", 0, address=address("b1", 1), connection=connection("b1", 1))
    assert table.brokers["b1"].broker_addrs == {0: address("b1", 1)}


def test_holder_of_an_id_with_a_higher_state_version_stays(table):
    register(table, data_version=version(state=2))
    assert register(table, address="other:1", data_version=version(state=1)) == Registered()
    assert table.brokers["b1"].broker_addrs == {0: address("b1")}
    assert set(table.live) == {key("b1")}
    register(table, address="other:1", data_version=version(state=2))
    assert table.brokers["b1"].broker_addrs == {0: "other:1"}


def test_static_topic_mappings_are_kept_by_broker(table):
    mapping = TopicQueueMappingInfo(topic=T, bname="b1", total_queues=4)
    register(table, topic_mappings={T: mapping})
    register(table, topic_mappings={T: TopicQueueMappingInfo(topic=T, bname="b1", total_queues=8)})
    assert table.topic_mappings == {T: {"b1": mapping}}


def test_filter_servers_stay_until_an_empty_list_comes(table):
    register(table, filter_servers=["f:1"])
    register(table, filter_servers=None)
    assert table.filter_servers == {key("b1"): ["f:1"]}
    register(table, filter_servers=[])
    assert table.filter_servers == {}


def test_version_question(table):
    assert table.is_changed(key("b1"), version())
    assert table.data_version(key("b1")) is None
    register(table)
    assert not table.is_changed(key("b1"), version())
    assert table.is_changed(key("b1"), version(2))
    assert table.is_changed(key("b1"), version(state=1))
    assert table.is_changed(key("b1"), None)
    assert table.data_version(key("b1")) == version()


def test_last_address_of_a_name_takes_its_topics_along(table):
    register(table)
    register(table, "b2", topics=topics(T, "V"))
    assert table.unregister(key("b1"), "b1", 0) is None
    assert snapshot(table) == (
        {T: {"b2": queue("b2")}, "V": {"b2": queue("b2")}},
        {"b2": broker_data("b2", 0)},
        {"C": {"b2"}},
        {key("b2")},
    )
    table.unregister(key("b2"), "b2", 0)
    assert snapshot(table) == ({}, {}, {}, set())


def test_master_leaves_its_slave_with_its_topics(table):
    register(table)
    register(table, "b1", 1)
    assert table.unregister(key("b1"), "b1", 0) is None
    assert table.brokers == {"b1": broker_data("b1", 1)}
    assert table.topics[T] == {"b1": queue("b1")}


def test_acting_master_makes_queues_read_only_and_is_announced(table):
    register(table, enable_acting_master=True)
    register(table, "b1", 1, enable_acting_master=True)
    register(table, "b1", 2, enable_acting_master=True)
    change = table.unregister(key("b1"), "b1", 0)
    assert change == MinBrokerIdChange(
        tell=(address("b1", 1), address("b1", 2)),
        min_broker_id=1,
        min_broker_address=address("b1", 1),
        offline_address=address("b1"),
    )
    assert table.topics[T] == {"b1": queue("b1", perm=4)}
    assert table.unregister(key("b1", 2), "b1", 2) is None


def test_returning_master_is_announced_to_the_others(table):
    register(table, "b1", 1, enable_acting_master=True)
    assert register(table, "b1", 2, enable_acting_master=True).change is None
    assert register(table, enable_acting_master=True).change == MinBrokerIdChange(
        tell=(address("b1", 1), address("b1", 2)),
        min_broker_id=0,
        min_broker_address=address("b1"),
        ha_address=ha_address("b1"),
    )
    assert register(table, enable_acting_master=True).change is None


def test_unknown_broker_may_be_unregistered(table):
    register(table)
    assert table.unregister(BrokerAddress("C", "nowhere:1"), "b9", 0) is None
    assert table.unregister(BrokerAddress("C", "nowhere:1"), "b1", 0) is None
    assert table.brokers == {"b1": broker_data("b1", 0)}


def test_lost_connection_forgets_all_that_registered_over_it(table):
    register(table)
    register(table, "b2", connection=connection("b1"))
    register(table, "b3")
    table.connection_lost(connection("b1"))
    assert sorted(table.brokers) == ["b3"]


def test_old_connection_of_a_broker_that_came_back_means_nothing(table):
    old, new = Link(), Link()
    register(table, connection=old)
    register(table, connection=new)
    assert table.connection_lost(old) == []
    assert sorted(table.brokers) == ["b1"]


def test_connection_lost_announces_a_new_lowest_id(table):
    register(table, enable_acting_master=True)
    register(table, "b1", 1, enable_acting_master=True)
    assert [one.min_broker_id for one in table.connection_lost(connection("b1"))] == [1]


def test_silent_broker_expires_after_the_tables_time(table):
    register(table, now_ms=1000)
    assert table.expire(1000 + BROKER_EXPIRY_MS) == ([], [])
    table.heard_from(key("b1"), 5000)
    assert table.expire(1001 + BROKER_EXPIRY_MS) == ([], [])
    expired = Expired(key("b1"), BROKER_EXPIRY_MS, connection("b1"))
    assert table.expire(5001 + BROKER_EXPIRY_MS) == ([expired], [])
    assert snapshot(table) == ({}, {}, {}, set())
    assert table.expire(10**9) == ([], [])


def test_broker_names_its_own_time_and_the_table_another():
    table = RouteTable(broker_expiry_ms=10)
    register(table, "b1")
    register(table, "b2", timeout_ms=100)
    assert [one.key for one in table.expire(50)[0]] == [key("b1")]
    assert [one.key for one in table.expire(101)[0]] == [key("b2")]


def test_sign_of_life_of_an_unknown_broker_counts_nothing(table):
    table.heard_from(key("b1"), 5)
    assert table.live == {}


def test_rejected_holder_does_not_keep_a_live_entry_for_ever(table):
    register(table, data_version=version(state=1))
    register(table, address="other:1", data_version=version(state=1))
    assert set(table.live) == {key("b1"), BrokerAddress("C", "other:1")}
    table.expire(10**9)
    assert snapshot(table) == ({}, {}, {}, set())


def test_write_permission_is_taken_and_given(table):
    register(table, topics={**topics(T, perm=7), **topics(U)})
    register(table, "b2")
    assert run_all_slices(table.set_writable("b1", False)) == 2
    assert table.topics[T] == {"b1": queue("b1", perm=5), "b2": queue("b2")}
    assert run_all_slices(table.set_writable("b1", True)) == 2
    assert table.topics[T]["b1"] == queue("b1", perm=6)
    assert run_all_slices(table.set_writable("b9", True)) == 0


def test_wiped_permission_survives_a_registration_that_changed_nothing(table):
    register(table)
    run_all_slices(table.set_writable("b1", False))
    register(table)
    assert table.topics[T]["b1"].perm == 4


def test_topic_registered_by_hand_needs_known_brokers(table):
    register(table)
    assert not table.register_topic("V", [queue("b1"), QueueData("b9", 1, 1, 6, 0)])
    assert "V" not in table.topics
    assert table.register_topic("V", [queue("b1", queues=2)])
    assert table.topics["V"] == {"b1": queue("b1", queues=2)}


def test_topic_is_deleted_everywhere_or_in_one_cluster(table):
    register(table)
    register(table, "b2", cluster_name="D")
    table.delete_topic(T, "D")
    assert sorted(table.topics[T]) == ["b1"]
    table.delete_topic(T, "nowhere")
    table.delete_topic("nothing", "C")
    table.delete_topic(T, "C")
    assert T not in table.topics
    table.delete_topic(U)
    table.delete_topic(U)
    assert table.topics == {}
