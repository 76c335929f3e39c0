"""Entries of the controller's raft log (Apache: org.apache.rocketmq.controller.impl.task)."""

from __future__ import annotations

import attrs
from attrs import field

from twisted_mq.protocol.headers.fields import int32, int64, text


@attrs.frozen(kw_only=True)
class BrokerCloseChannelRequest:
    """Request of BROKER_CLOSE_CHANNEL_REQUEST."""

    cluster_name: str | None = field(default=None, metadata=text("clusterName"))
    broker_name: str | None = field(default=None, metadata=text("brokerName"))
    broker_id: int | None = field(default=None, metadata=int64("brokerId"))


@attrs.frozen(kw_only=True)
class BrokerCloseChannelResponse:
    """Answer to BROKER_CLOSE_CHANNEL_REQUEST, without fields of its own."""


@attrs.frozen(kw_only=True)
class CheckNotActiveBrokerRequest:
    """Request of CHECK_NOT_ACTIVE_BROKER_REQUEST."""

    check_time_millis: int | None = field(default=None, metadata=int64("checkTimeMillis"))


@attrs.frozen(kw_only=True)
class CheckNotActiveBrokerResponse:
    """Answer to CHECK_NOT_ACTIVE_BROKER_REQUEST, without fields of its own."""


@attrs.frozen(kw_only=True)
class GetBrokerLiveInfoRequest:
    """Request of GET_BROKER_LIVE_INFO_REQUEST."""

    cluster_name: str | None = field(default=None, metadata=text("clusterName"))
    broker_name: str | None = field(default=None, metadata=text("brokerName"))
    broker_id: int | None = field(default=None, metadata=int64("brokerId"))


@attrs.frozen(kw_only=True)
class GetBrokerLiveInfoResponse:
    """Answer to GET_BROKER_LIVE_INFO_REQUEST, without fields of its own."""


@attrs.frozen(kw_only=True)
class GetSyncStateDataRequest:
    """Request of GET_SYNC_STATE_DATA_REQUEST."""

    invoke_time: int | None = field(default=None, metadata=int64("invokeTime"))


@attrs.frozen(kw_only=True)
class RaftBrokerHeartBeatEventRequest:
    """Request of RAFT_BROKER_HEART_BEAT_EVENT_REQUEST."""

    cluster_name_identity_info: str | None = field(default=None, metadata=text("clusterNameIdentityInfo"))
    broker_name_identity_info: str | None = field(default=None, metadata=text("brokerNameIdentityInfo"))
    broker_id_identity_info: int | None = field(default=None, metadata=int64("brokerIdIdentityInfo"))
    broker_name: str | None = field(default=None, metadata=text("brokerName"))
    broker_addr: str | None = field(default=None, metadata=text("brokerAddr"))
    heartbeat_timeout_millis: int | None = field(default=None, metadata=int64("heartbeatTimeoutMillis"))
    broker_id: int | None = field(default=None, metadata=int64("brokerId"))
    last_update_timestamp: int | None = field(default=None, metadata=int64("lastUpdateTimestamp"))
    epoch: int | None = field(default=None, metadata=int32("epoch"))
    max_offset: int | None = field(default=None, metadata=int64("maxOffset"))
    confirm_offset: int | None = field(default=None, metadata=int64("confirmOffset"))
    election_priority: int | None = field(default=None, metadata=int32("electionPriority"))


@attrs.frozen(kw_only=True)
class RaftBrokerHeartBeatEventResponse:
    """Answer to RAFT_BROKER_HEART_BEAT_EVENT_REQUEST, without fields of its own."""
