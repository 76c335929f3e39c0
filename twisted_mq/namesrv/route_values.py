"""Defines the values that the route table holds and decides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import attrs

from twisted_mq.protocol.bodies import DataVersion, TopicConfig, TopicQueueMappingInfo


class BrokerConnection(Protocol):
    """The part that the table uses of the connections over which brokers register."""

    @property
    def connected_now(self) -> bool: ...

    @property
    def share_address(self) -> str:
        """Return the address whose share of the table the connection uses."""

    def close(self) -> None: ...


@attrs.frozen
class BrokerAddress:
    """The identity of one broker process (Apache: BrokerAddrInfo)."""

    cluster_name: str
    address: str


@attrs.define
class LiveBroker:
    """A broker that has registered and not yet expired (Apache: BrokerLiveInfo). Times are in ms.

    `connection` is the first living connection over which it registered, `newest` the last of the others.
    """

    broker_name: str
    broker_id: int
    last_update_ms: int
    timeout_ms: int
    data_version: DataVersion
    connection: BrokerConnection
    ha_server_address: str
    newest: BrokerConnection | None = None

    def is_held_by_another(self, connection: BrokerConnection, now_ms: int) -> bool:
        """Return True if it lives over another connection, unless it is overdue and only waits for the scan."""
        if connection is self.connection or connection is self.newest:
            return False
        return self.connection.connected_now and self.last_update_ms + self.timeout_ms >= now_ms


@attrs.frozen(kw_only=True)
class BrokerRegistration:
    """The content of a registration. `enable_acting_master` is None for brokers before 5.0, `filter_servers` if
    the registration does not name any, `timeout_ms` if the table's own expiry applies.
    """

    cluster_name: str
    broker_name: str
    broker_id: int
    address: str
    ha_server_address: str
    connection: BrokerConnection
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
    """Brokers of one name to notify that their lowest id changed (Apache: NOTIFY_MIN_BROKER_ID_CHANGE)."""

    tell: tuple[str, ...]
    min_broker_id: int
    min_broker_address: str
    offline_address: str | None = None
    ha_address: str | None = None


@attrs.frozen(kw_only=True)
class Registered:
    """The answer to a registration. It names a slave's master; `accepted` is False for a single topic of a broker
    that has not registered yet.
    """

    accepted: bool = True
    ha_server_address: str | None = None
    master_address: str | None = None
    change: MinBrokerIdChange | None = None


@attrs.frozen
class Expired:
    """A broker that became silent; its connection has to be closed."""

    key: BrokerAddress
    timeout_ms: int
    connection: BrokerConnection
