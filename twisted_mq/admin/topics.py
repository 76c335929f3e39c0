"""Requests that read and change topics: their kind, brokers and settings."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

import attrs

from twisted_mq.admin.calls import AdminCalls
from twisted_mq.protocol.bodies import ClusterInfo, TopicConfig, TopicRouteData, decode_body
from twisted_mq.protocol.bodies.topic_config import TopicConfigAndQueueMapping
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.headers import CreateTopicRequestHeader, GetTopicConfigRequestHeader
from twisted_mq.protocol.names.routes import MASTER_ID
from twisted_mq.protocol.names.system_topics import AUTO_CREATE_TOPIC, DLQ_PREFIX, RETRY_PREFIX, is_system_topic


class TopicKind(enum.StrEnum):
    """The kinds of topics, by purpose."""

    NORMAL = "normal"
    RETRY = "retry"
    DEAD_LETTERS = "dead letters"
    SYSTEM = "system"


def kind_of(topic: str, brokers_own: frozenset[str] = frozenset()) -> TopicKind:
    """Return the kind of a topic. `brokers_own` has the names of clusters and brokers, which have topics of these names."""
    if topic.startswith(RETRY_PREFIX):
        return TopicKind.RETRY
    if topic.startswith(DLQ_PREFIX):
        return TopicKind.DEAD_LETTERS
    if is_system_topic(topic) or topic in brokers_own or topic.endswith("_REPLY_TOPIC"):
        return TopicKind.SYSTEM
    return TopicKind.NORMAL


async def brokers_own_topics(admin: AdminCalls) -> frozenset[str]:
    """Return the names of clusters and brokers, which are also names of topics."""
    return own_topics_of(await admin.cluster_info())


def own_topics_of(cluster: ClusterInfo) -> frozenset[str]:
    """Return the names as `brokers_own_topics` does, from cluster data already read."""
    return frozenset({*(cluster.cluster_addr_table or {}), *(cluster.broker_addr_table or {})})


def masters_of(route: TopicRouteData) -> dict[str, str]:
    """Return broker name -> its master's address, sorted. Brokers without a master are left out."""
    held = {one.broker_name: (one.broker_addrs or {}).get(MASTER_ID) for one in route.broker_datas or ()}
    return {name: address for name, address in sorted(held.items()) if address}


async def topic_config(admin: AdminCalls, address: str, topic: str) -> TopicConfig:
    """Return the settings of a topic at a broker. Raises BrokerError if the broker does not have the topic."""
    header = GetTopicConfigRequestHeader(topic=topic)
    answer = await admin.invoke(address, RequestCode.GET_TOPIC_CONFIG, header)
    return decode_body(TopicConfigAndQueueMapping, answer.body)


async def put_topic(
    admin: AdminCalls, address: str, config: TopicConfig, attributes: Mapping[str, str] | None = None
) -> None:
    """Create or change a topic at a broker. `attributes` has changes: "+name" -> value, or "-name" -> "" to remove."""
    text = ",".join(f"{name}={value}" if value else name for name, value in (attributes or {}).items())
    await admin.invoke(address, RequestCode.UPDATE_AND_CREATE_TOPIC, creation(config, attributes=text))


def creation(config: TopicConfig, **more: Any) -> CreateTopicRequestHeader:
    """Return the header of a request to create a topic. `more` has the fields that are not in the configuration."""
    return CreateTopicRequestHeader(
        topic=config.topic_name,
        default_topic=AUTO_CREATE_TOPIC,
        read_queue_nums=config.read_queue_nums,
        write_queue_nums=config.write_queue_nums,
        perm=config.perm,
        topic_filter_type=config.topic_filter_type,
        topic_sys_flag=config.topic_sys_flag,
        order=config.order,
        **more,
    )


def changed(config: TopicConfig, read_queues: int, write_queues: int, perm: int) -> TopicConfig:
    """Return the configuration with other numbers of queues and another permission."""
    return TopicConfig(
        **{
            **{field.name: getattr(config, field.name) for field in attrs.fields(TopicConfig)},
            "read_queue_nums": read_queues,
            "write_queue_nums": write_queues,
            "perm": perm,
        }
    )
