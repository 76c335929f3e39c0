"""Reads the route table: a topic's route, the cluster, lists of topics. Pure; lists are sorted."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping

import attrs

from twisted_mq.namesrv.by_topic import TOPICS_OF_SLICE
from twisted_mq.namesrv.route_table import RouteTable
from twisted_mq.namesrv.route_values import BrokerAddress
from twisted_mq.protocol.bodies import BrokerData, BrokerMemberGroup, ClusterInfo, QueueData, TopicList, TopicRouteData
from twisted_mq.protocol.flags import TopicSysFlag, is_writeable
from twisted_mq.protocol.names.routes import MASTER_ID
from twisted_mq.protocol.names.system_topics import SYNC_BROKER_MEMBER_PREFIX


def topic_route(
    table: RouteTable, topic: str, *, order_topic_conf: str | None = None, acting_master: bool = False
) -> TopicRouteData | None:
    """Return the route of a topic; None if no living broker has it (Apache: pickupTopicRouteData).

    With `acting_master`, a slave is shown under id 0 if its name lost its master and its queues are read-only.
    """
    queues = table.topics.get(topic, {})
    brokers = [table.brokers[name] for name in sorted(queues) if name in table.brokers]
    if not brokers:
        return None
    if acting_master and not topic.startswith(SYNC_BROKER_MEMBER_PREFIX):
        brokers = [_with_acting_master(one, queues[one.broker_name]) for one in brokers]
    return TopicRouteData(
        order_topic_conf=order_topic_conf,
        queue_datas=[queues[one.broker_name] for one in brokers],
        broker_datas=brokers,
        filter_server_table=_filter_servers(table, brokers),
        topic_queue_mapping_by_broker=table.topic_mappings.get(topic),
    )


def _with_acting_master(broker: BrokerData, queues: QueueData) -> BrokerData:
    addresses = broker.broker_addrs
    if not addresses or MASTER_ID in addresses or not broker.enable_acting_master or is_writeable(queues.perm):
        return broker
    lowest = min(addresses)
    shown = {MASTER_ID if one == lowest else one: address for one, address in addresses.items()}
    return attrs.evolve(broker, broker_addrs=shown)


def _filter_servers(table: RouteTable, brokers: list[BrokerData]) -> dict[str, list[str]]:
    if not table.filter_servers:
        return {}
    keys = [BrokerAddress(one.cluster, address) for one in brokers for address in one.broker_addrs.values()]
    return {key.address: table.filter_servers[key] for key in keys if key in table.filter_servers}


def in_zone(route: TopicRouteData, zone_name: str) -> TopicRouteData:
    """Return the part of a route in a zone. Brokers without master stay, because they are read from any zone
    (Apache: ZoneRouteRPCHook).
    """
    near = zone_name.lower()
    kept = [
        one for one in route.broker_datas if MASTER_ID not in one.broker_addrs or (one.zone_name or "").lower() == near
    ]
    far = [one for one in route.broker_datas if one not in kept]
    far_names = {one.broker_name for one in far}
    far_addresses = {address for one in far for address in one.broker_addrs.values()}
    return attrs.evolve(
        route,
        broker_datas=kept,
        queue_datas=[one for one in route.queue_datas if one.broker_name not in far_names],
        filter_server_table={
            address: servers for address, servers in route.filter_server_table.items() if address not in far_addresses
        },
    )


def cluster_info(table: RouteTable) -> ClusterInfo:
    """Return all brokers and clusters."""
    return ClusterInfo(
        broker_addr_table=dict(sorted(table.brokers.items())),
        cluster_addr_table={name: sorted(brokers) for name, brokers in sorted(table.clusters.items())},
    )


def broker_member_group(table: RouteTable, cluster_name: str, broker_name: str) -> BrokerMemberGroup:
    """Return the living brokers of a name; empty for an unknown one."""
    held = table.brokers.get(broker_name)
    addresses = {} if held is None else held.broker_addrs
    return BrokerMemberGroup(cluster=cluster_name, broker_name=broker_name, broker_addrs=addresses)


Names = Generator[None, None, list[str]]
"""Work in slices that returns names of topics, in order."""


def all_topics(table: RouteTable) -> Names:
    """Return every topic that has a queue somewhere."""
    return _topics_where(table, lambda queues: True)


def topics_of_cluster(table: RouteTable, cluster_name: str) -> Names:
    """Return the topics with queues in a cluster; none for an unknown cluster."""
    names = table.clusters.get(cluster_name, set())
    return _topics_where(table, lambda queues: not names.isdisjoint(queues))


def system_topics(table: RouteTable) -> TopicList:
    """Return the names of clusters and brokers, which are topics too, and a broker to ask for the other system topics."""
    names = set(table.clusters).union(*table.clusters.values())
    addresses = (address for _, one in sorted(table.brokers.items()) for _, address in sorted(one.broker_addrs.items()))
    return TopicList(topic_list=sorted(names), broker_addr=next(addresses, None))


def unit_topics(table: RouteTable) -> Names:
    """Return the topics of a unit (FLAG_UNIT)."""
    return _topics_where(table, lambda queues: bool(_flag(queues) & TopicSysFlag.FLAG_UNIT))


def unit_sub_topics(table: RouteTable) -> Names:
    """Return the topics that a unit subscribes to (FLAG_UNIT_SUB)."""
    return _topics_where(table, lambda queues: bool(_flag(queues) & TopicSysFlag.FLAG_UNIT_SUB))


def unit_sub_topics_outside_units(table: RouteTable) -> Names:
    """Return the topics that a unit subscribes to and that are in no unit themselves."""
    both = TopicSysFlag.FLAG_UNIT | TopicSysFlag.FLAG_UNIT_SUB
    return _topics_where(table, lambda queues: _flag(queues) & both == TopicSysFlag.FLAG_UNIT_SUB)


def _flag(queues: Mapping[str, QueueData]) -> int:
    """Return the flag of one of the topic's brokers, as Apache's lists do."""
    return next(iter(queues.values())).topic_sys_flag


def _topics_where(table: RouteTable, holds: Callable[[Mapping[str, QueueData]], bool]) -> Names:
    chosen: list[str] = []
    for number, topic in enumerate(list(table.topics), 1):
        queues = table.topics.get(topic)
        if queues is not None and holds(queues):
            chosen.append(topic)
        if not number % TOPICS_OF_SLICE:
            yield
    return chosen
