"""Requests that came with 5.x: popping, users, other parts."""

from __future__ import annotations

from twisted_mq.protocol import bodies, headers
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.headers import declared
from twisted_mq.protocol.requests.spec import Payload, broker, container, namesrv

POP = {
    RequestCode.QUERY_ASSIGNMENT: broker(
        request_body=bodies.QueryAssignmentRequestBody, response_body=bodies.QueryAssignmentResponseBody
    ),
    RequestCode.SET_MESSAGE_REQUEST_MODE: broker(request_body=bodies.SetMessageRequestModeRequestBody),
    RequestCode.POP_MESSAGE: broker(
        headers.PopMessageRequestHeader, headers.PopMessageResponseHeader, response_body=Payload.MESSAGES
    ),
    RequestCode.ACK_MESSAGE: broker(headers.AckMessageRequestHeader),
    RequestCode.PEEK_MESSAGE: broker(
        headers.PeekMessageRequestHeader, headers.PopMessageResponseHeader, response_body=Payload.MESSAGES
    ),
    RequestCode.CHANGE_MESSAGE_INVISIBLETIME: broker(
        headers.ChangeInvisibleTimeRequestHeader, headers.ChangeInvisibleTimeResponseHeader
    ),
    RequestCode.NOTIFICATION: broker(headers.NotificationRequestHeader, headers.NotificationResponseHeader),
    RequestCode.POLLING_INFO: broker(headers.PollingInfoRequestHeader, headers.PollingInfoResponseHeader),
    RequestCode.POP_ROLLBACK: broker(),
    RequestCode.BATCH_ACK_MESSAGE: broker(request_body=bodies.BatchAckMessageRequestBody),
}

AUTH = {
    RequestCode.AUTH_CREATE_USER: broker(headers.CreateUserRequestHeader, request_body=bodies.UserInfo),
    RequestCode.AUTH_UPDATE_USER: broker(headers.UpdateUserRequestHeader, request_body=bodies.UserInfo),
    RequestCode.AUTH_DELETE_USER: broker(headers.DeleteUserRequestHeader),
    RequestCode.AUTH_GET_USER: broker(headers.GetUserRequestHeader, response_body=bodies.UserInfo),
    RequestCode.AUTH_LIST_USER: broker(headers.ListUsersRequestHeader, response_body=list[bodies.UserInfo]),
    RequestCode.AUTH_CREATE_ACL: broker(headers.CreateAclRequestHeader, request_body=bodies.AclInfo),
    RequestCode.AUTH_UPDATE_ACL: broker(headers.UpdateAclRequestHeader, request_body=bodies.AclInfo),
    RequestCode.AUTH_DELETE_ACL: broker(headers.DeleteAclRequestHeader),
    RequestCode.AUTH_GET_ACL: broker(headers.GetAclRequestHeader, response_body=bodies.AclInfo),
    RequestCode.AUTH_LIST_ACL: broker(headers.ListAclsRequestHeader, response_body=list[bodies.AclInfo]),
}

OTHER = {
    RequestCode.UPDATE_AND_CREATE_TOPIC_LIST: broker(
        headers.CreateTopicListRequestHeader, request_body=bodies.CreateTopicListRequestBody
    ),
    RequestCode.REGISTER_TOPIC_IN_NAMESRV: namesrv(
        headers.RegisterTopicRequestHeader, request_body=bodies.TopicRouteData
    ),
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: broker(request_body=bodies.SubscriptionGroupList),
    RequestCode.QUERY_TOPICS_BY_CONSUMER: broker(
        headers.QueryTopicsByConsumerRequestHeader, response_body=bodies.TopicList
    ),
    RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER: broker(
        headers.QuerySubscriptionByConsumerRequestHeader, response_body=bodies.QuerySubscriptionResponseBody
    ),
    RequestCode.UPDATE_AND_GET_GROUP_FORBIDDEN: broker(
        headers.UpdateGroupForbiddenRequestHeader, response_body=bodies.GroupForbidden
    ),
    RequestCode.CHECK_ROCKSDB_CQ_WRITE_PROGRESS: broker(
        headers.CheckRocksdbCqWriteProgressRequestHeader, response_body=bodies.CheckRocksdbCqWriteResult
    ),
    RequestCode.EXPORT_ROCKSDB_CONFIG_TO_JSON: broker(headers.ExportRocksDBConfigToJsonRequestHeader),
    RequestCode.RECALL_MESSAGE: broker(headers.RecallMessageRequestHeader, headers.RecallMessageResponseHeader),
    RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC: broker(
        headers.CreateTopicRequestHeader, request_body=bodies.TopicQueueMappingDetail
    ),
    RequestCode.ADD_BROKER: container(declared.AddBrokerRequestHeader),
    RequestCode.REMOVE_BROKER: container(declared.RemoveBrokerRequestHeader),
    RequestCode.UPDATE_COLD_DATA_FLOW_CTR_CONFIG: broker(request_body=Payload.PROPERTIES),
    RequestCode.REMOVE_COLD_DATA_FLOW_CTR_CONFIG: broker(request_body=Payload.GROUP_NAME),
    RequestCode.GET_COLD_DATA_FLOW_CTR_INFO: broker(response_body=Payload.JSON_OBJECT),
    RequestCode.SET_COMMITLOG_READ_MODE: broker(),
}
