"""What the route table holds and what it decides: plain values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import attrs

from twisted_mq.protocol.bodies import DataVersion, TopicConfig, TopicQueueMappingInfo


class Connection(Protocol):
    """What the table knows of the connections over which brokers register."""

    @property
    def connected_now(self) -> bool: ...

    @property
    def share_address(self) -> str:
        """Return the address whose share of the table the connection uses."""

    def close(self) -> None: ...


@attrs.frozen
class BrokerAddress:
    """What one broker process is known by (Apache: BrokerAddrInfo)."""

    cluster_name: str
    address: str


@attrs.define
class LiveBroker:
    """A broker that has registered and not yet expired (Apache: BrokerLiveInfo). Times are in ms.

    `connection` is the first of those over which it registered that lives, `newest` the last of the others.
    """

    broker_name: str
    broker_id: int
    last_update_ms: int
    timeout_ms: int
    data_version: DataVersion
    connection: Connection
    ha_server_address: str
    newest: Connection | None = None

    def is_held_by_another(self, connection: Connection, now_ms: int) -> bool:
        """Whether it lives over another connection; not, where it is overdue and only the scan has yet to come."""
        if connection is self.connection or connection is self.newest:
            return False
        return self.connection.connected_now and self.last_update_ms + self.timeout_ms >= now_ms


@attrs.frozen(kw_only=True)
class Registration:
    """What a broker says about itself. `enable_acting_master` is None for brokers before 5.0, `filter_servers` where
    nothing was said about them, `timeout_ms` where the table's own expiry holds."""

    cluster_name: str
    broker_name: str
    broker_id: int
    address: str
    ha_server_address: str
    connection: Connection
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
    connection: Connection
