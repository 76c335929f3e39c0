"""Replication between master and slaves."""

from __future__ import annotations

import attrs
from attrs import field

from twisted_mq.protocol.bodies.types import Int32, Int64


@attrs.frozen
class HAConnectionRuntimeInfo:
    """A connected slave."""

    addr: str | None = None
    slave_ack_offset: Int64 = 0
    diff: Int64 = 0
    in_sync: bool = False
    transferred_byte_in_second: Int64 = 0
    transfer_from_where: Int64 = 0


@attrs.frozen
class HAClientRuntimeInfo:
    """A slave's own view. Apache's isActivated never crosses the wire."""

    master_addr: str | None = None
    transferred_byte_in_second: Int64 = 0
    max_offset: Int64 = 0
    last_read_timestamp: Int64 = 0
    last_write_timestamp: Int64 = 0
    master_flush_offset: Int64 = 0


@attrs.frozen
class HARuntimeInfo:
    """Answer to GET_BROKER_HA_STATUS."""

    master: bool = False
    master_commit_log_max_offset: Int64 = 0
    in_sync_slave_nums: Int32 = 0
    ha_connection_info: list[HAConnectionRuntimeInfo] = field(factory=list)
    ha_client_runtime_info: HAClientRuntimeInfo = field(factory=HAClientRuntimeInfo)


@attrs.frozen
class BrokerSyncInfo:
    """The facts about a master that its slave needs."""

    master_ha_address: str | None = None
    master_flush_offset: Int64 = 0
    master_address: str | None = None


@attrs.frozen
class EpochEntry:
    """The offsets that one master wrote in its term."""

    epoch: Int32 = 0
    start_offset: Int64 = 0
    end_offset: Int64 = 0


@attrs.frozen
class EpochEntryCache:
    """Answer to GET_BROKER_EPOCH_CACHE."""

    cluster_name: str | None = None
    broker_name: str | None = None
    broker_id: Int64 = 0
    epoch_list: list[EpochEntry] = field(factory=list)
    max_offset: Int64 = 0
