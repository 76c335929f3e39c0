"""The controller."""

from __future__ import annotations

import attrs
from attrs import field

from twisted_mq.protocol.bodies.route import BrokerMemberGroup
from twisted_mq.protocol.bodies.types import Int32, Int64


@attrs.frozen
class SyncStateSet:
    """Request body of CONTROLLER_ALTER_SYNC_STATE_SET, NOTIFY_BROKER_ROLE_CHANGED. Answer to
    CONTROLLER_ALTER_SYNC_STATE_SET, CONTROLLER_REGISTER_BROKER, CONTROLLER_GET_REPLICA_INFO.
    """

    sync_state_set: list[Int64] = field(factory=list)
    sync_state_set_epoch: Int32 = 0


@attrs.frozen
class ElectMasterResponseBody:
    """Answer to CONTROLLER_ELECT_MASTER."""

    broker_member_group: BrokerMemberGroup | None = None
    sync_state_set: list[Int64] = field(factory=list)


@attrs.frozen
class ReplicaIdentity:
    """A broker of a replica set."""

    broker_name: str | None = None
    broker_id: Int64 | None = None
    broker_address: str | None = None
    alive: bool | None = None


@attrs.frozen
class ReplicasInfo:
    """A replica set; `alive` in its members is what the controller thinks."""

    master_broker_id: Int64 | None = None
    master_address: str | None = None
    master_epoch: Int32 | None = None
    sync_state_set_epoch: Int32 | None = None
    in_sync_replicas: list[ReplicaIdentity] = field(factory=list)
    not_in_sync_replicas: list[ReplicaIdentity] = field(factory=list)


@attrs.frozen
class BrokerReplicasInfo:
    """Answer to CONTROLLER_GET_SYNC_STATE_DATA."""

    replicas_info_table: dict[str, ReplicasInfo] = field(factory=dict)


@attrs.frozen
class RoleChangeNotifyEntry:
    """An election: its receivers and its content."""

    broker_member_group: BrokerMemberGroup | None = None
    master_address: str | None = None
    master_broker_id: Int64 | None = None
    master_epoch: Int32 = 0
    sync_state_set_epoch: Int32 = 0
    sync_state_set: list[Int64] = field(factory=list)
