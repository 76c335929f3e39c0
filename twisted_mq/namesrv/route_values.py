"""What the route table holds and what it decides: plain values."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import attrs

from twisted_mq.protocol.bodies import DataVersion, TopicConfig, TopicQueueMappingInfo


@attrs.frozen
class BrokerAddress:
    """What one broker process is known by (Apache: BrokerAddrInfo)."""

    cluster_name: str
    address: str


@attrs.define
class LiveBroker:
    """A broker that has registered and not yet expired (Apache: BrokerLiveInfo). Times are in ms."""

    last_update_ms: int
    timeout_ms: int
    data_version: DataVersion
    connection: Hashable
    ha_server_address: str


@attrs.frozen(kw_only=True)
class Registration:
    """What a broker says about itself. `enable_acting_master` is None for brokers before 5.0, `filter_servers` where
    nothing was said about them, `timeout_ms` where the table's own expiry holds."""

    cluster_name: str
    broker_name: str
    broker_id: int
    address: str
    ha_server_address: str
    connection: Hashable
    topics: Mapping[str, TopicConfig]
    data_version: DataVersion
    topic_mappings: Mapping[str, TopicQueueMappingInfo] = attrs.field(factory=dict)
    filter_servers: list[str] | None = None
    zone_name: str | None = None
    timeout_ms: int | None = None
    enable_acting_master: bool | None = None

    @property
    def key(self) -> BrokerAddress:
        return BrokerAddress(self.cluster_name, self.address)


@attrs.frozen(kw_only=True)
class MinBrokerIdChange:
    """Brokers of one name to be told that their lowest id changed (Apache: NOTIFY_MIN_BROKER_ID_CHANGE)."""

    tell: tuple[str, ...]
    min_broker_id: int
    min_broker_address: str
    offline_address: str | None = None
    ha_address: str | None = None


@attrs.frozen(kw_only=True)
class Registered:
    """The answer to a registration. A slave is told its master; `accepted` is False for a single topic of a broker
    that has not registered yet."""

    accepted: bool = True
    ha_server_address: str | None = None
    master_address: str | None = None
    change: MinBrokerIdChange | None = None


@attrs.frozen
class Expired:
    """A broker that fell silent; its connection is to be closed."""

    key: BrokerAddress
    timeout_ms: int
    connection: Hashable
