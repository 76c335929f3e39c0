"""The controller, which elects masters."""

from __future__ import annotations

import attrs
from attrs import field

from twisted_mq.protocol.headers.fields import boolean, int32, int64, text


@attrs.frozen(kw_only=True)
class AlterSyncStateSetRequestHeader:
    """Request of CONTROLLER_ALTER_SYNC_STATE_SET."""

    broker_name: str | None = field(default=None, metadata=text("brokerName"))
    master_broker_id: int | None = field(default=None, metadata=int64("masterBrokerId"))
    master_epoch: int | None = field(default=None, metadata=int32("masterEpoch"))
    invoke_time: int = field(default=0, metadata=int64("invokeTime"))


@attrs.frozen(kw_only=True)
class AlterSyncStateSetResponseHeader:
    """Answer to CONTROLLER_ALTER_SYNC_STATE_SET."""

    new_sync_state_set_epoch: int = field(default=0, metadata=int32("newSyncStateSetEpoch"))


@attrs.frozen(kw_only=True)
class ElectMasterRequestHeader:
    """Request of CONTROLLER_ELECT_MASTER."""

    cluster_name: str = field(metadata=text("clusterName"))
    broker_name: str = field(metadata=text("brokerName"))
    broker_id: int = field(metadata=int64("brokerId"))
    designate_elect: bool = field(metadata=boolean("designateElect"))
    invoke_time: int | None = field(default=None, metadata=int64("invokeTime"))


@attrs.frozen(kw_only=True)
class ElectMasterResponseHeader:
    """Answer to CONTROLLER_ELECT_MASTER."""

    master_broker_id: int | None = field(default=None, metadata=int64("masterBrokerId"))
    master_address: str | None = field(default=None, metadata=text("masterAddress"))
    master_epoch: int | None = field(default=None, metadata=int32("masterEpoch"))
    sync_state_set_epoch: int | None = field(default=None, metadata=int32("syncStateSetEpoch"))


@attrs.frozen(kw_only=True)
class GetMetaDataResponseHeader:
    """Answer to CONTROLLER_GET_METADATA_INFO."""

    group: str | None = field(default=None, metadata=text("group"))
    controller_leader_id: str | None = field(default=None, metadata=text("controllerLeaderId"))
    controller_leader_address: str | None = field(default=None, metadata=text("controllerLeaderAddress"))
    is_leader: bool = field(default=False, metadata=boolean("isLeader"))
    peers: str | None = field(default=None, metadata=text("peers"))


@attrs.frozen(kw_only=True)
class GetReplicaInfoRequestHeader:
    """Request of CONTROLLER_GET_REPLICA_INFO."""

    broker_name: str | None = field(default=None, metadata=text("brokerName"))


@attrs.frozen(kw_only=True)
class GetReplicaInfoResponseHeader:
    """Answer to CONTROLLER_GET_REPLICA_INFO."""

    master_broker_id: int | None = field(default=None, metadata=int64("masterBrokerId"))
    master_address: str | None = field(default=None, metadata=text("masterAddress"))
    master_epoch: int | None = field(default=None, metadata=int32("masterEpoch"))


@attrs.frozen(kw_only=True)
class CleanControllerBrokerDataRequestHeader:
    """Request of CLEAN_BROKER_DATA."""

    cluster_name: str | None = field(default=None, metadata=text("clusterName"))
    broker_name: str = field(metadata=text("brokerName"))
    broker_controller_ids_to_clean: str | None = field(default=None, metadata=text("brokerControllerIdsToClean"))
    is_clean_living_broker: bool = field(default=False, metadata=boolean("isCleanLivingBroker"))
    invoke_time: int = field(default=0, metadata=int64("invokeTime"))


@attrs.frozen(kw_only=True)
class ApplyBrokerIdRequestHeader:
    """Request of CONTROLLER_APPLY_BROKER_ID."""

    cluster_name: str | None = field(default=None, metadata=text("clusterName"))
    broker_name: str | None = field(default=None, metadata=text("brokerName"))
    applied_broker_id: int | None = field(default=None, metadata=int64("appliedBrokerId"))
    register_check_code: str | None = field(default=None, metadata=text("registerCheckCode"))


@attrs.frozen(kw_only=True)
class ApplyBrokerIdResponseHeader:
    """Answer to CONTROLLER_APPLY_BROKER_ID."""

    cluster_name: str | None = field(default=None, metadata=text("clusterName"))
    broker_name: str | None = field(default=None, metadata=text("brokerName"))


@attrs.frozen(kw_only=True)
class GetNextBrokerIdRequestHeader:
    """Request of CONTROLLER_GET_NEXT_BROKER_ID."""

    cluster_name: str | None = field(default=None, metadata=text("clusterName"))
    broker_name: str | None = field(default=None, metadata=text("brokerName"))


@attrs.frozen(kw_only=True)
class GetNextBrokerIdResponseHeader:
    """Answer to CONTROLLER_GET_NEXT_BROKER_ID."""

    cluster_name: str | None = field(default=None, metadata=text("clusterName"))
    broker_name: str | None = field(default=None, metadata=text("brokerName"))
    next_broker_id: int | None = field(default=None, metadata=int64("nextBrokerId"))


@attrs.frozen(kw_only=True)
class RegisterBrokerToControllerRequestHeader:
    """Request of CONTROLLER_REGISTER_BROKER."""

    cluster_name: str | None = field(default=None, metadata=text("clusterName"))
    broker_name: str | None = field(default=None, metadata=text("brokerName"))
    broker_id: int | None = field(default=None, metadata=int64("brokerId"))
    broker_address: str | None = field(default=None, metadata=text("brokerAddress"))
    invoke_time: int = field(default=0, metadata=int64("invokeTime"))


@attrs.frozen(kw_only=True)
class RegisterBrokerToControllerResponseHeader:
    """Answer to CONTROLLER_REGISTER_BROKER."""

    cluster_name: str | None = field(default=None, metadata=text("clusterName"))
    broker_name: str | None = field(default=None, metadata=text("brokerName"))
    master_broker_id: int | None = field(default=None, metadata=int64("masterBrokerId"))
    master_address: str | None = field(default=None, metadata=text("masterAddress"))
    master_epoch: int | None = field(default=None, metadata=int32("masterEpoch"))
    sync_state_set_epoch: int | None = field(default=None, metadata=int32("syncStateSetEpoch"))
