"""Requests of the controller, and the entries of its raft log."""

from __future__ import annotations

from twisted_mq.protocol import bodies, headers
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.requests.spec import Payload, broker, controller, served_by, unserved

CONTROLLER = {
    RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET: controller(
        headers.AlterSyncStateSetRequestHeader,
        headers.AlterSyncStateSetResponseHeader,
        bodies.SyncStateSet,
        bodies.SyncStateSet,
    ),
    RequestCode.CONTROLLER_ELECT_MASTER: controller(
        headers.ElectMasterRequestHeader,
        headers.ElectMasterResponseHeader,
        response_body=bodies.ElectMasterResponseBody,
    ),
    RequestCode.CONTROLLER_REGISTER_BROKER: controller(
        headers.RegisterBrokerToControllerRequestHeader,
        headers.RegisterBrokerToControllerResponseHeader,
        response_body=bodies.SyncStateSet,
    ),
    RequestCode.CONTROLLER_GET_REPLICA_INFO: controller(
        headers.GetReplicaInfoRequestHeader, headers.GetReplicaInfoResponseHeader, response_body=bodies.SyncStateSet
    ),
    RequestCode.CONTROLLER_GET_METADATA_INFO: controller(response_header=headers.GetMetaDataResponseHeader),
    RequestCode.CONTROLLER_GET_SYNC_STATE_DATA: controller(
        request_body=list[str], response_body=bodies.BrokerReplicasInfo
    ),
    RequestCode.GET_BROKER_EPOCH_CACHE: broker(response_body=bodies.EpochEntryCache),
    RequestCode.NOTIFY_BROKER_ROLE_CHANGED: broker(
        headers.NotifyBrokerRoleChangedRequestHeader, request_body=bodies.SyncStateSet, one_way=True
    ),
    RequestCode.UPDATE_CONTROLLER_CONFIG: controller(request_body=Payload.PROPERTIES),
    RequestCode.GET_CONTROLLER_CONFIG: controller(response_body=Payload.PROPERTIES),
    RequestCode.CLEAN_BROKER_DATA: controller(headers.CleanControllerBrokerDataRequestHeader),
    RequestCode.CONTROLLER_GET_NEXT_BROKER_ID: controller(
        headers.GetNextBrokerIdRequestHeader, headers.GetNextBrokerIdResponseHeader
    ),
    RequestCode.CONTROLLER_APPLY_BROKER_ID: controller(
        headers.ApplyBrokerIdRequestHeader, headers.ApplyBrokerIdResponseHeader
    ),
    RequestCode.BROKER_CLOSE_CHANNEL_REQUEST: served_by("controller-internal")(
        headers.BrokerCloseChannelRequest, headers.BrokerCloseChannelResponse
    ),
    RequestCode.CHECK_NOT_ACTIVE_BROKER_REQUEST: served_by("controller-internal")(
        headers.CheckNotActiveBrokerRequest, headers.CheckNotActiveBrokerResponse
    ),
    RequestCode.GET_BROKER_LIVE_INFO_REQUEST: served_by("controller-internal")(
        headers.GetBrokerLiveInfoRequest, headers.GetBrokerLiveInfoResponse
    ),
    RequestCode.GET_SYNC_STATE_DATA_REQUEST: unserved(headers.GetSyncStateDataRequest),
    RequestCode.RAFT_BROKER_HEART_BEAT_EVENT_REQUEST: served_by("controller-internal")(
        headers.RaftBrokerHeartBeatEventRequest, headers.RaftBrokerHeartBeatEventResponse
    ),
}
