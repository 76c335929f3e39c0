"""The name server: brokers, routes, topics, key-value configuration."""

from __future__ import annotations

import attrs
from attrs import field

from twisted_mq.protocol.headers.base import TopicRequestHeader
from twisted_mq.protocol.headers.fields import boolean, int32, int64, text


@attrs.frozen(kw_only=True)
class RegisterBrokerRequestHeader:
    """Request of REGISTER_BROKER.

    `body_crc32` is over the body as sent, 0 for unchecked; `compressed` says that it is the deflated binary form.
    """

    broker_name: str = field(metadata=text("brokerName"))
    broker_addr: str = field(metadata=text("brokerAddr"))
    cluster_name: str = field(metadata=text("clusterName"))
    ha_server_addr: str = field(metadata=text("haServerAddr"))
    broker_id: int = field(metadata=int64("brokerId"))
    heartbeat_timeout_millis: int | None = field(default=None, metadata=int64("heartbeatTimeoutMillis"))
    enable_acting_master: bool | None = field(default=None, metadata=boolean("enableActingMaster"))
    compressed: bool = field(default=False, metadata=boolean("compressed"))
    body_crc32: int = field(default=0, metadata=int32("bodyCrc32"))


@attrs.frozen(kw_only=True)
class RegisterBrokerResponseHeader:
    """Answer to REGISTER_BROKER."""

    ha_server_addr: str | None = field(default=None, metadata=text("haServerAddr"))
    master_addr: str | None = field(default=None, metadata=text("masterAddr"))


@attrs.frozen(kw_only=True)
class UnRegisterBrokerRequestHeader:
    """Request of UNREGISTER_BROKER."""

    broker_name: str = field(metadata=text("brokerName"))
    broker_addr: str = field(metadata=text("brokerAddr"))
    cluster_name: str = field(metadata=text("clusterName"))
    broker_id: int = field(metadata=int64("brokerId"))


@attrs.frozen(kw_only=True)
class BrokerHeartbeatRequestHeader:
    """Request of BROKER_HEARTBEAT."""

    cluster_name: str = field(metadata=text("clusterName"))
    broker_addr: str = field(metadata=text("brokerAddr"))
    broker_name: str = field(metadata=text("brokerName"))
    broker_id: int | None = field(default=None, metadata=int64("brokerId"))
    epoch: int | None = field(default=None, metadata=int32("epoch"))
    max_offset: int | None = field(default=None, metadata=int64("maxOffset"))
    confirm_offset: int | None = field(default=None, metadata=int64("confirmOffset"))
    heartbeat_timeout_mills: int | None = field(default=None, metadata=int64("heartbeatTimeoutMills"))
    election_priority: int | None = field(default=None, metadata=int32("electionPriority"))


@attrs.frozen(kw_only=True)
class QueryDataVersionRequestHeader:
    """Request of QUERY_DATA_VERSION."""

    broker_name: str = field(metadata=text("brokerName"))
    broker_addr: str = field(metadata=text("brokerAddr"))
    cluster_name: str = field(metadata=text("clusterName"))
    broker_id: int = field(metadata=int64("brokerId"))


@attrs.frozen(kw_only=True)
class QueryDataVersionResponseHeader:
    """Answer to QUERY_DATA_VERSION."""

    changed: bool = field(metadata=boolean("changed"))


@attrs.frozen(kw_only=True)
class GetBrokerMemberGroupRequestHeader:
    """Request of GET_BROKER_MEMBER_GROUP."""

    cluster_name: str = field(metadata=text("clusterName"))
    broker_name: str = field(metadata=text("brokerName"))


@attrs.frozen(kw_only=True)
class GetRouteInfoRequestHeader(TopicRequestHeader):
    """Request of GET_ROUTEINFO_BY_TOPIC.

    `accept_standard_json_only`: integer keys of the answer must be quoted.
    """

    topic: str = field(metadata=text("topic"))
    accept_standard_json_only: bool | None = field(default=None, metadata=boolean("acceptStandardJsonOnly"))


@attrs.frozen(kw_only=True)
class RegisterTopicRequestHeader(TopicRequestHeader):
    """Request of REGISTER_TOPIC_IN_NAMESRV."""

    topic: str = field(metadata=text("topic"))


@attrs.frozen(kw_only=True)
class DeleteTopicFromNamesrvRequestHeader(TopicRequestHeader):
    """Request of DELETE_TOPIC_IN_NAMESRV.

    Without a cluster the topic goes from all brokers.
    """

    topic: str = field(metadata=text("topic"))
    cluster_name: str | None = field(default=None, metadata=text("clusterName"))


@attrs.frozen(kw_only=True)
class GetTopicsByClusterRequestHeader:
    """Request of GET_TOPICS_BY_CLUSTER."""

    cluster: str = field(metadata=text("cluster"))


@attrs.frozen(kw_only=True)
class WipeWritePermOfBrokerRequestHeader:
    """Request of WIPE_WRITE_PERM_OF_BROKER."""

    broker_name: str = field(metadata=text("brokerName"))


@attrs.frozen(kw_only=True)
class WipeWritePermOfBrokerResponseHeader:
    """Answer to WIPE_WRITE_PERM_OF_BROKER."""

    wipe_topic_count: int = field(metadata=int32("wipeTopicCount"))


@attrs.frozen(kw_only=True)
class AddWritePermOfBrokerRequestHeader:
    """Request of ADD_WRITE_PERM_OF_BROKER."""

    broker_name: str = field(metadata=text("brokerName"))


@attrs.frozen(kw_only=True)
class AddWritePermOfBrokerResponseHeader:
    """Answer to ADD_WRITE_PERM_OF_BROKER."""

    add_topic_count: int = field(metadata=int32("addTopicCount"))


@attrs.frozen(kw_only=True)
class PutKVConfigRequestHeader:
    """Request of PUT_KV_CONFIG."""

    namespace: str = field(metadata=text("namespace"))
    key: str = field(metadata=text("key"))
    value: str = field(metadata=text("value"))


@attrs.frozen(kw_only=True)
class GetKVConfigRequestHeader:
    """Request of GET_KV_CONFIG."""

    namespace: str = field(metadata=text("namespace"))
    key: str = field(metadata=text("key"))


@attrs.frozen(kw_only=True)
class GetKVConfigResponseHeader:
    """Answer to GET_KV_CONFIG."""

    value: str | None = field(default=None, metadata=text("value"))


@attrs.frozen(kw_only=True)
class DeleteKVConfigRequestHeader:
    """Request of DELETE_KV_CONFIG."""

    namespace: str = field(metadata=text("namespace"))
    key: str = field(metadata=text("key"))


@attrs.frozen(kw_only=True)
class GetKVListByNamespaceRequestHeader:
    """Request of GET_KVLIST_BY_NAMESPACE."""

    namespace: str = field(metadata=text("namespace"))
