"""Plain lists and tables."""

from __future__ import annotations

import attrs
from attrs import field

from twisted_mq.protocol.bodies.types import Int32


@attrs.frozen
class KVTable:
    """Answer to GET_BROKER_RUNTIME_INFO, REGISTER_BROKER, GET_KVLIST_BY_NAMESPACE. Keys and values."""

    table: dict[str, str] = field(factory=dict)


@attrs.frozen
class TopicList:
    """Answer to GET_ALL_TOPIC_LIST_FROM_NAMESERVER, GET_TOPICS_BY_CLUSTER, GET_SYSTEM_TOPIC_LIST_FROM_NS,
    GET_SYSTEM_TOPIC_LIST_FROM_BROKER, GET_UNIT_TOPIC_LIST, GET_HAS_UNIT_SUB_TOPIC_LIST,
    GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST, QUERY_TOPICS_BY_CONSUMER. Topic names; `broker_addr` is set where a cluster
    was asked for.
    """

    topic_list: list[str] = field(factory=list)
    broker_addr: str | None = None


@attrs.frozen
class GroupList:
    """Answer to QUERY_TOPIC_CONSUME_BY_WHO."""

    group_list: list[str] = field(factory=list)


@attrs.frozen
class GetConsumerListByGroupResponseBody:
    """Answer to GET_CONSUMER_LIST_BY_GROUP."""

    consumer_id_list: list[str] = field(factory=list)


@attrs.frozen
class KVConfigSerializeWrapper:
    """The name server's file kvConfig.json: namespace to key to value."""

    config_table: dict[str, dict[str, str]] = field(factory=dict)


@attrs.frozen
class CheckRocksdbCqWriteResult:
    """Answer to CHECK_ROCKSDB_CQ_WRITE_PROGRESS."""

    check_result: str | None = None
    check_status: Int32 = 0
