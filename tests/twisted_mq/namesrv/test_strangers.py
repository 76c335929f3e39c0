"""Registration needs no account: protection of a living broker's place from other hosts."""

from __future__ import annotations

import pytest

from tests.twisted_mq.namesrv.routes import (
    Link,
    T,
    U,
    address,
    broker_data,
    key,
    queue,
    register,
    registration,
    topics,
    version,
)
from twisted_mq.namesrv import route_table
from twisted_mq.namesrv.by_topic import run_all_slices
from twisted_mq.namesrv.route_table import BROKER_EXPIRY_MS, RouteTable
from twisted_mq.namesrv.route_values import BrokerAddress, Registered
from twisted_mq.protocol.bodies import TopicQueueMappingInfo
from twisted_mq.protocol.errors import BrokerError

EVIL = "6.6.6.6:10911"


@pytest.fixture
def owner() -> Link:
    return Link()


@pytest.fixture
def table(owner) -> RouteTable:
    table = RouteTable()
    register(table, connection=owner)
    register(table, "b1", 1)
    return table


@pytest.mark.parametrize(
    ("broker_id", "forged"),
    [
        (0, {"address": EVIL}),
        (0, {"address": EVIL, "data_version": version(state=9)}),
        (5, {"address": address("b1")}),
        (5, {"address": EVIL, "cluster_name": "other"}),
        (0, {"address": address("b1"), "broker_name": "b2"}),
    ],
    ids=[
        "id",
        "id in a later epoch",
        "address under another id",
        "name for another cluster",
        "address for another name",
    ],
)
def test_place_of_a_living_broker_is_not_taken(table, broker_id, forged):
    with pytest.raises(BrokerError, match="holds this place, and its connection is alive") as caught:
        register(table, "b1", broker_id, connection=Link(), **forged)
    assert f"brokerAddr={forged['address']}" in caught.value.remark
    assert table.brokers == {"b1": broker_data("b1", 0, 1)}
    assert table.topics == {T: {"b1": queue("b1")}, U: {"b1": queue("b1")}}
    assert table.live[key("b1")].data_version == version()


def test_place_is_free_when_its_connection_is_gone(table, owner):
    owner.close()
    register(table, address=EVIL, connection=Link())
    assert table.brokers["b1"].broker_addrs == {0: EVIL, 1: address("b1", 1)}


def test_place_is_free_when_its_broker_is_overdue_and_the_scan_has_yet_to_come(table):
    register(table, address=EVIL, connection=Link(), now_ms=BROKER_EXPIRY_MS + 1)
    assert table.brokers["b1"].broker_addrs == {0: EVIL, 1: address("b1", 1)}


def test_broker_that_comes_back_from_its_address_is_taken_while_its_old_connection_is_half_open(table, owner):
    again = Link()
    assert register(table, connection=again, data_version=version(2), topics=topics(T, perm=4)) == Registered()
    assert table.topics[T] == {"b1": queue("b1", perm=4)}
    owner.close()
    assert table.connection_lost(owner) == []
    assert sorted(table.brokers["b1"].broker_addrs) == [0, 1]
    again.close()
    table.connection_lost(again)
    assert sorted(table.brokers["b1"].broker_addrs) == [1]


def test_stranger_that_said_the_same_address_and_leaves_takes_nobody_with_him(table, owner):
    stranger = Link()
    register(table, connection=stranger)
    table.connection_lost(stranger)
    assert sorted(table.brokers["b1"].broker_addrs) == [0, 1]
    table.connection_lost(owner)
    assert sorted(table.brokers["b1"].broker_addrs) == [1]


def test_broker_changes_its_own_id_and_address_over_its_connection(table, owner):
    register(table, address="b1:2", connection=owner)
    register(table, "b1", 3, address="b1:2", connection=owner)
    assert table.brokers["b1"].broker_addrs == {1: address("b1", 1), 3: "b1:2"}


def test_next_master_of_a_controller_takes_the_id_by_its_epoch():
    table = RouteTable()
    register(table, data_version=version(state=1))
    register(table, address="b1:2", connection=Link(), data_version=version(state=2))
    assert table.brokers["b1"].broker_addrs == {0: "b1:2"}


def test_one_of_several_brokers_of_a_connection_leaves(owner):
    """Apache's brokers share the connection to a name server within a process."""
    table = RouteTable()
    register(table, connection=owner)
    register(table, "b2", connection=owner)
    table.check_leave(key("b2"), "b2", owner, 0)
    table.unregister(key("b2"), "b2", 0)
    assert sorted(table.brokers) == ["b1"]


@pytest.mark.parametrize("cluster", ["C", "other"])
def test_only_a_brokers_own_connection_unregisters_it(table, owner, cluster):
    forged = BrokerAddress(cluster, address("b1"))
    with pytest.raises(
        BrokerError, match=r"brokerName=b1 brokerAddr=b1-0:10911: its connection is alive, and this is another one"
    ):
        table.check_leave(forged, "b1", Link(), 0)
    table.check_leave(key("b1"), "b1", owner, 0)
    owner.close()
    table.check_leave(key("b1"), "b1", Link(), 0)


def test_lowest_slave_below_zero_does_not_speak_for_topics(table):
    register(table, "b1", -1, enable_acting_master=True, topics=topics(T, "V", perm=0))
    assert table.topics == {T: {"b1": queue("b1")}, U: {"b1": queue("b1")}}


def test_mapping_of_another_broker_is_passed_over_and_ones_own_goes_with_its_name():
    table = RouteTable()
    own = TopicQueueMappingInfo(topic="S", bname="b1")
    register(table, topic_mappings={"S": own, "R": TopicQueueMappingInfo(topic="R", bname="b2")})
    assert table.topic_mappings == {"S": {"b1": own}}
    table.unregister(key("b1"), "b1", 0)
    assert table.topic_mappings == {}


@pytest.mark.parametrize("member", ["broker_name", "cluster_name", "address", "ha_server_address", "zone_name"])
def test_name_without_end_is_refused(member):
    with pytest.raises(BrokerError, match="256 characters, the limit is 255"):
        register(RouteTable(), **{member: "x" * 256})


def test_brokers_and_their_topics_are_bounded(monkeypatch):
    monkeypatch.setattr(route_table, "MAX_BROKERS", 2)
    monkeypatch.setattr(route_table, "MAX_QUEUES", 6)
    table = RouteTable()
    register(table)
    register(table, "b2", topics=topics(T, "V"))
    with pytest.raises(BrokerError, match="2 brokers are registered, which is the limit"):
        register(table, "b3")
    with pytest.raises(BrokerError, match="brokerName=b2: 4 topics of brokers are registered, the limit is 6"):
        register(table, "b2", topics=topics(T, "V", "W", "X", "Y"), data_version=version(2))
    table.register_topic("X", [queue("b1"), queue("b2")])
    with pytest.raises(BrokerError, match="topic=W: 6 topics of brokers are registered"):
        table.register_topic("W", [queue("b1")])
    assert sorted(table.topics) == sorted([T, U, "V", "X"])


def test_one_address_leaves_half_of_the_table_to_others(monkeypatch):
    """A stranger that registers as many brokers as there may be would keep the honest one out."""
    monkeypatch.setattr(route_table, "MAX_BROKERS", 10)
    monkeypatch.setattr(route_table, "MAX_QUEUES", 40)
    table = RouteTable()
    for number in range(5):
        register(table, f"b{number}", connection=Link(share_address="10.0.0.9"), topics=topics(f"t{number}", T))
    with pytest.raises(BrokerError, match="5 of 5 brokers are registered from"):
        register(table, "b5", connection=Link(share_address="10.0.0.9"))
    many = topics(*(f"u{number}" for number in range(17)))
    with pytest.raises(BrokerError, match="17 more exceed the limit for one address"):
        register(table, "b0", connection=table.live[key("b0")].connection, topics=many, data_version=version(2))
    register(table, "honest", connection=Link(share_address="10.0.0.1"), topics=topics("h1", "h2"))
    assert len(table.live) == 6


def test_registration_whose_connection_was_lost_before_its_turn_is_refused(owner):
    table = RouteTable()
    owner.close()
    with pytest.raises(BrokerError, match="the connection was lost"):
        register(table, connection=owner)
    assert table.brokers == {}


def test_broker_that_leaves_while_its_topics_are_put_leaves_none(owner):
    table = RouteTable()
    many = topics(*(f"t{number}" for number in range(5000)))
    work = table.register(registration(connection=owner, topics=many), 0)
    next(work)
    assert 0 < len(table.topics) < len(many)
    table.connection_lost(owner)
    with pytest.raises(BrokerError, match="brokerName=b1 left while it was registered"):
        run_all_slices(work)
    assert (dict(table.topics), table.brokers, table.queues.count) == ({}, {}, 0)
