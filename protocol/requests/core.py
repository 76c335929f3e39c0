"""Requests of clients, brokers and name servers that 4.x had already."""

from __future__ import annotations

from twisted_mq.protocol import bodies, headers
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.headers import declared
from twisted_mq.protocol.requests.spec import Payload, broker, client, namesrv, served_by

CORE = {
    RequestCode.SEND_MESSAGE: broker(
        headers.SendMessageRequestHeader, headers.SendMessageResponseHeader, Payload.MESSAGE_BODY
    ),
    RequestCode.PULL_MESSAGE: broker(
        headers.PullMessageRequestHeader, headers.PullMessageResponseHeader, response_body=Payload.MESSAGES
    ),
    RequestCode.QUERY_MESSAGE: broker(
        headers.QueryMessageRequestHeader, headers.QueryMessageResponseHeader, response_body=Payload.MESSAGES
    ),
    RequestCode.QUERY_CONSUMER_OFFSET: broker(
        headers.QueryConsumerOffsetRequestHeader, headers.QueryConsumerOffsetResponseHeader
    ),
    RequestCode.UPDATE_CONSUMER_OFFSET: broker(
        headers.UpdateConsumerOffsetRequestHeader, declared.UpdateConsumerOffsetResponseHeader, one_way=True
    ),
    RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: broker(
        headers.SearchOffsetRequestHeader, headers.SearchOffsetResponseHeader
    ),
    RequestCode.GET_MAX_OFFSET: broker(headers.GetMaxOffsetRequestHeader, headers.GetMaxOffsetResponseHeader),
    RequestCode.GET_MIN_OFFSET: broker(headers.GetMinOffsetRequestHeader, headers.GetMinOffsetResponseHeader),
    RequestCode.GET_EARLIEST_MSG_STORETIME: broker(
        headers.GetEarliestMsgStoretimeRequestHeader, headers.GetEarliestMsgStoretimeResponseHeader
    ),
    RequestCode.VIEW_MESSAGE_BY_ID: broker(headers.ViewMessageRequestHeader, response_body=Payload.MESSAGE),
    RequestCode.HEART_BEAT: broker(declared.HeartbeatRequestHeader, request_body=bodies.HeartbeatData),
    RequestCode.UNREGISTER_CLIENT: broker(
        headers.UnregisterClientRequestHeader, declared.UnregisterClientResponseHeader
    ),
    RequestCode.CONSUMER_SEND_MSG_BACK: broker(headers.ConsumerSendMsgBackRequestHeader),
    RequestCode.END_TRANSACTION: broker(headers.EndTransactionRequestHeader, one_way=True),
    RequestCode.GET_CONSUMER_LIST_BY_GROUP: broker(
        headers.GetConsumerListByGroupRequestHeader,
        declared.GetConsumerListByGroupResponseHeader,
        response_body=bodies.GetConsumerListByGroupResponseBody,
    ),
    RequestCode.CHECK_TRANSACTION_STATE: client(
        headers.CheckTransactionStateRequestHeader, request_body=Payload.MESSAGE, one_way=True
    ),
    RequestCode.NOTIFY_CONSUMER_IDS_CHANGED: client(headers.NotifyConsumerIdsChangedRequestHeader, one_way=True),
    RequestCode.LOCK_BATCH_MQ: broker(
        declared.LockBatchMqRequestHeader,
        request_body=bodies.LockBatchRequestBody,
        response_body=bodies.LockBatchResponseBody,
    ),
    RequestCode.UNLOCK_BATCH_MQ: broker(
        declared.UnlockBatchMqRequestHeader, request_body=bodies.UnlockBatchRequestBody
    ),
    RequestCode.CHECK_CLIENT_CONFIG: broker(request_body=bodies.CheckClientRequestBody),
    RequestCode.REGISTER_BROKER: namesrv(
        headers.RegisterBrokerRequestHeader,
        headers.RegisterBrokerResponseHeader,
        bodies.RegisterBrokerBody,
        bodies.KVTable,
    ),
    RequestCode.UNREGISTER_BROKER: namesrv(headers.UnRegisterBrokerRequestHeader),
    RequestCode.GET_ROUTEINFO_BY_TOPIC: namesrv(headers.GetRouteInfoRequestHeader, response_body=bodies.TopicRouteData),
    RequestCode.RESET_CONSUMER_CLIENT_OFFSET: client(
        headers.ResetOffsetRequestHeader, request_body=bodies.ResetOffsetBody, one_way=True
    ),
    RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT: client(
        headers.GetConsumerStatusRequestHeader, response_body=bodies.GetConsumerStatusBody
    ),
    RequestCode.GET_CONSUMER_RUNNING_INFO: served_by("broker", "client")(
        headers.GetConsumerRunningInfoRequestHeader, response_body=bodies.ConsumerRunningInfo
    ),
    RequestCode.CONSUME_MESSAGE_DIRECTLY: served_by("broker", "client")(
        headers.ConsumeMessageDirectlyResultRequestHeader,
        request_body=Payload.MESSAGE,
        response_body=bodies.ConsumeMessageDirectlyResult,
    ),
    RequestCode.SEND_MESSAGE_V2: broker(
        headers.SendMessageRequestHeaderV2, headers.SendMessageResponseHeader, Payload.MESSAGE_BODY
    ),
    RequestCode.SEND_BATCH_MESSAGE: broker(
        headers.SendMessageRequestHeaderV2, headers.SendMessageResponseHeader, Payload.BATCH
    ),
    RequestCode.QUERY_DATA_VERSION: namesrv(
        headers.QueryDataVersionRequestHeader,
        headers.QueryDataVersionResponseHeader,
        bodies.DataVersion,
        bodies.DataVersion,
    ),
    RequestCode.SEND_REPLY_MESSAGE: broker(
        headers.SendMessageRequestHeader, headers.SendMessageResponseHeader, Payload.MESSAGE_BODY
    ),
    RequestCode.SEND_REPLY_MESSAGE_V2: broker(
        headers.SendMessageRequestHeaderV2, headers.SendMessageResponseHeader, Payload.MESSAGE_BODY
    ),
    RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT: client(
        headers.ReplyMessageRequestHeader, request_body=Payload.MESSAGE_BODY
    ),
    RequestCode.LITE_PULL_MESSAGE: broker(
        headers.PullMessageRequestHeader, headers.PullMessageResponseHeader, response_body=Payload.MESSAGES
    ),
}
