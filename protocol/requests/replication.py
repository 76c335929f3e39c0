"""Requests of brokers among each other and of the controller, and the entries of its raft log."""

from __future__ import annotations

from twisted_mq.protocol import bodies, headers
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.headers import declared
from twisted_mq.protocol.requests.spec import Payload, broker, controller, namesrv, served_by, unserved

HA = {
    RequestCode.GET_ALL_CONSUMER_OFFSET: broker(response_body=bodies.ConsumerOffsetSerializeWrapper),
    RequestCode.GET_ALL_DELAY_OFFSET: broker(response_body=bodies.DelayOffsetSerializeWrapper),
    RequestCode.GET_TIMER_CHECK_POINT: broker(response_body=Payload.TIMER_CHECKPOINT),
    RequestCode.GET_TIMER_METRICS: broker(response_body=bodies.TimerMetricsSerializeWrapper),
    RequestCode.GET_ALL_MESSAGE_REQUEST_MODE: broker(response_body=bodies.MessageRequestModeSerializeWrapper),
    RequestCode.GET_BROKER_MEMBER_GROUP: namesrv(
        headers.GetBrokerMemberGroupRequestHeader, response_body=bodies.GetBrokerMemberGroupResponseBody
    ),
    RequestCode.BROKER_HEARTBEAT: served_by("namesrv", "controller")(
        headers.BrokerHeartbeatRequestHeader, one_way=True
    ),
    RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE: broker(headers.NotifyMinBrokerIdChangeRequestHeader, one_way=True),
    RequestCode.EXCHANGE_BROKER_HA_INFO: broker(
        headers.ExchangeHAInfoRequestHeader, headers.ExchangeHAInfoResponseHeader
    ),
    RequestCode.GET_BROKER_HA_STATUS: broker(response_body=bodies.HARuntimeInfo),
    RequestCode.RESET_MASTER_FLUSH_OFFSET: broker(headers.ResetMasterFlushOffsetHeader),
}

CONTROLLER = {
    RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET: controller(
        declared.AlterSyncStateSetRequestHeader,
        declared.AlterSyncStateSetResponseHeader,
        bodies.SyncStateSet,
        bodies.SyncStateSet,
    ),
    RequestCode.CONTROLLER_ELECT_MASTER: controller(
        declared.ElectMasterRequestHeader,
        declared.ElectMasterResponseHeader,
        response_body=bodies.ElectMasterResponseBody,
    ),
    RequestCode.CONTROLLER_REGISTER_BROKER: controller(
        declared.RegisterBrokerToControllerRequestHeader,
        declared.RegisterBrokerToControllerResponseHeader,
        response_body=bodies.SyncStateSet,
    ),
    RequestCode.CONTROLLER_GET_REPLICA_INFO: controller(
        declared.GetReplicaInfoRequestHeader, declared.GetReplicaInfoResponseHeader, response_body=bodies.SyncStateSet
    ),
    RequestCode.CONTROLLER_GET_METADATA_INFO: controller(response_header=declared.GetMetaDataResponseHeader),
    RequestCode.CONTROLLER_GET_SYNC_STATE_DATA: controller(
        request_body=list[str], response_body=bodies.BrokerReplicasInfo
    ),
    RequestCode.GET_BROKER_EPOCH_CACHE: broker(response_body=bodies.EpochEntryCache),
    RequestCode.NOTIFY_BROKER_ROLE_CHANGED: broker(
        declared.NotifyBrokerRoleChangedRequestHeader, request_body=bodies.SyncStateSet, one_way=True
    ),
    RequestCode.UPDATE_CONTROLLER_CONFIG: controller(request_body=Payload.PROPERTIES),
    RequestCode.GET_CONTROLLER_CONFIG: controller(response_body=Payload.PROPERTIES),
    RequestCode.CLEAN_BROKER_DATA: controller(declared.CleanControllerBrokerDataRequestHeader),
    RequestCode.CONTROLLER_GET_NEXT_BROKER_ID: controller(
        declared.GetNextBrokerIdRequestHeader, declared.GetNextBrokerIdResponseHeader
    ),
    RequestCode.CONTROLLER_APPLY_BROKER_ID: controller(
        declared.ApplyBrokerIdRequestHeader, declared.ApplyBrokerIdResponseHeader
    ),
    RequestCode.BROKER_CLOSE_CHANNEL_REQUEST: served_by("controller-internal")(
        declared.BrokerCloseChannelRequest, declared.BrokerCloseChannelResponse
    ),
    RequestCode.CHECK_NOT_ACTIVE_BROKER_REQUEST: served_by("controller-internal")(
        declared.CheckNotActiveBrokerRequest, declared.CheckNotActiveBrokerResponse
    ),
    RequestCode.GET_BROKER_LIVE_INFO_REQUEST: served_by("controller-internal")(
        declared.GetBrokerLiveInfoRequest, declared.GetBrokerLiveInfoResponse
    ),
    RequestCode.GET_SYNC_STATE_DATA_REQUEST: unserved(declared.GetSyncStateDataRequest),
    RequestCode.RAFT_BROKER_HEART_BEAT_EVENT_REQUEST: served_by("controller-internal")(
        declared.RaftBrokerHeartBeatEventRequest, declared.RaftBrokerHeartBeatEventResponse
    ),
}
