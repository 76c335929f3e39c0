"""Clients and consumer groups of a broker."""

from __future__ import annotations

import attrs
from attrs import field

from twisted_mq.protocol.headers.base import RpcRequestHeader, TopicRequestHeader
from twisted_mq.protocol.headers.fields import boolean, int32, text


@attrs.frozen(kw_only=True)
class UnregisterClientRequestHeader(RpcRequestHeader):
    """Request of UNREGISTER_CLIENT."""

    client_id: str = field(metadata=text("clientID"))
    producer_group: str | None = field(default=None, metadata=text("producerGroup"))
    consumer_group: str | None = field(default=None, metadata=text("consumerGroup"))


@attrs.frozen(kw_only=True)
class GetConsumerListByGroupRequestHeader(RpcRequestHeader):
    """Request of GET_CONSUMER_LIST_BY_GROUP."""

    consumer_group: str = field(metadata=text("consumerGroup"))


@attrs.frozen(kw_only=True)
class NotifyConsumerIdsChangedRequestHeader(RpcRequestHeader):
    """Request of NOTIFY_CONSUMER_IDS_CHANGED."""

    consumer_group: str = field(metadata=text("consumerGroup"))


@attrs.frozen(kw_only=True)
class GetConsumerConnectionListRequestHeader(RpcRequestHeader):
    """Request of GET_CONSUMER_CONNECTION_LIST."""

    consumer_group: str = field(metadata=text("consumerGroup"))


@attrs.frozen(kw_only=True)
class GetProducerConnectionListRequestHeader(RpcRequestHeader):
    """Request of GET_PRODUCER_CONNECTION_LIST."""

    producer_group: str = field(metadata=text("producerGroup"))


@attrs.frozen(kw_only=True)
class GetAllProducerInfoRequestHeader:
    """Request of GET_ALL_PRODUCER_INFO, without fields of its own."""


@attrs.frozen(kw_only=True)
class GetConsumerRunningInfoRequestHeader(RpcRequestHeader):
    """Request of GET_CONSUMER_RUNNING_INFO."""

    consumer_group: str = field(metadata=text("consumerGroup"))
    client_id: str = field(metadata=text("clientId"))
    jstack_enable: bool = field(default=False, metadata=boolean("jstackEnable"))


@attrs.frozen(kw_only=True)
class GetConsumerStatusRequestHeader(TopicRequestHeader):
    """Request of GET_CONSUMER_STATUS_FROM_CLIENT, INVOKE_BROKER_TO_GET_CONSUMER_STATUS."""

    topic: str = field(metadata=text("topic"))
    group: str = field(metadata=text("group"))
    client_addr: str | None = field(default=None, metadata=text("clientAddr"))


@attrs.frozen(kw_only=True)
class ConsumeMessageDirectlyResultRequestHeader(TopicRequestHeader):
    """Request of CONSUME_MESSAGE_DIRECTLY."""

    consumer_group: str = field(metadata=text("consumerGroup"))
    client_id: str | None = field(default=None, metadata=text("clientId"))
    msg_id: str | None = field(default=None, metadata=text("msgId"))
    broker_name: str | None = field(default=None, metadata=text("brokerName"))
    topic: str | None = field(default=None, metadata=text("topic"))
    topic_sys_flag: int | None = field(default=None, metadata=int32("topicSysFlag"))
    group_sys_flag: int | None = field(default=None, metadata=int32("groupSysFlag"))


@attrs.frozen(kw_only=True)
class GetConsumeStatsRequestHeader(TopicRequestHeader):
    """Request of GET_CONSUME_STATS."""

    consumer_group: str = field(metadata=text("consumerGroup"))
    topic: str | None = field(default=None, metadata=text("topic"))
    topic_list: str | None = field(default=None, metadata=text("topicList"))


@attrs.frozen(kw_only=True)
class GetConsumeStatsInBrokerHeader:
    """Request of GET_BROKER_CONSUME_STATS."""

    is_order: bool = field(metadata=boolean("isOrder"))


@attrs.frozen(kw_only=True)
class GetSubscriptionGroupConfigRequestHeader(RpcRequestHeader):
    """Request of GET_SUBSCRIPTIONGROUP_CONFIG."""

    group: str = field(metadata=text("group"))


@attrs.frozen(kw_only=True)
class DeleteSubscriptionGroupRequestHeader(RpcRequestHeader):
    """Request of DELETE_SUBSCRIPTIONGROUP."""

    group_name: str = field(metadata=text("groupName"))
    clean_offset: bool = field(default=False, metadata=boolean("cleanOffset"))


@attrs.frozen(kw_only=True)
class UpdateGroupForbiddenRequestHeader(TopicRequestHeader):
    """Request of UPDATE_AND_GET_GROUP_FORBIDDEN."""

    group: str = field(metadata=text("group"))
    topic: str = field(metadata=text("topic"))
    readable: bool | None = field(default=None, metadata=boolean("readable"))


@attrs.frozen(kw_only=True)
class QuerySubscriptionByConsumerRequestHeader(TopicRequestHeader):
    """Request of QUERY_SUBSCRIPTION_BY_CONSUMER."""

    group: str = field(metadata=text("group"))
    topic: str | None = field(default=None, metadata=text("topic"))
