"""Routes and the cluster: what the name server answers."""

from __future__ import annotations

import attrs
from attrs import field

from twisted_mq.protocol.bodies.static_topic import TopicQueueMappingInfo
from twisted_mq.protocol.bodies.types import Int32, Int64


@attrs.frozen
class QueueData:
    """The numbers of a topic's queues on a broker, and their permissions."""

    broker_name: str = ""
    read_queue_nums: Int32 = 0
    write_queue_nums: Int32 = 0
    perm: Int32 = 0
    topic_sys_flag: Int32 = 0


@attrs.frozen
class BrokerData:
    """The brokers of one name: broker id (0 is the master) to address."""

    cluster: str = ""
    broker_name: str = ""
    broker_addrs: dict[Int64, str] = field(factory=dict)
    zone_name: str | None = None
    enable_acting_master: bool = False


@attrs.frozen
class TopicRouteData:
    """Request body of REGISTER_TOPIC_IN_NAMESRV. Answer to GET_ROUTEINFO_BY_TOPIC."""

    order_topic_conf: str | None = None
    queue_datas: list[QueueData] = field(factory=list)
    broker_datas: list[BrokerData] = field(factory=list)
    filter_server_table: dict[str, list[str]] = field(factory=dict)
    topic_queue_mapping_by_broker: dict[str, TopicQueueMappingInfo] | None = None


@attrs.frozen
class ClusterInfo:
    """Answer to GET_BROKER_CLUSTER_INFO."""

    broker_addr_table: dict[str, BrokerData] = field(factory=dict)
    cluster_addr_table: dict[str, list[str]] = field(factory=dict)


@attrs.frozen
class BrokerMemberGroup:
    """The brokers of one name that are alive, by broker id."""

    cluster: str = ""
    broker_name: str = ""
    broker_addrs: dict[Int64, str] = field(factory=dict)


@attrs.frozen
class GetBrokerMemberGroupResponseBody:
    """Answer to GET_BROKER_MEMBER_GROUP."""

    broker_member_group: BrokerMemberGroup | None = None
