"""Requests of the admin tool that 4.x had already."""

from __future__ import annotations

from twisted_mq.protocol import bodies, headers
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.headers import declared
from twisted_mq.protocol.requests.spec import Payload, broker, namesrv, served_by, unserved

ADMIN = {
    RequestCode.QUERY_BROKER_OFFSET: unserved(),
    RequestCode.UPDATE_AND_CREATE_TOPIC: broker(headers.CreateTopicRequestHeader),
    RequestCode.GET_ALL_TOPIC_CONFIG: broker(
        response_header=declared.GetAllTopicConfigResponseHeader,
        response_body=bodies.TopicConfigAndMappingSerializeWrapper,
    ),
    RequestCode.GET_TOPIC_CONFIG_LIST: unserved(),
    RequestCode.GET_TOPIC_NAME_LIST: unserved(),
    RequestCode.UPDATE_BROKER_CONFIG: served_by("broker", "container")(request_body=Payload.PROPERTIES),
    RequestCode.GET_BROKER_CONFIG: served_by("broker", "container")(
        response_header=headers.GetBrokerConfigResponseHeader, response_body=Payload.PROPERTIES
    ),
    RequestCode.TRIGGER_DELETE_FILES: unserved(),
    RequestCode.GET_BROKER_RUNTIME_INFO: broker(response_body=bodies.KVTable),
    RequestCode.GET_CLIENT_CONFIG: unserved(),
    RequestCode.PUT_KV_CONFIG: namesrv(headers.PutKVConfigRequestHeader),
    RequestCode.GET_KV_CONFIG: namesrv(headers.GetKVConfigRequestHeader, headers.GetKVConfigResponseHeader),
    RequestCode.DELETE_KV_CONFIG: namesrv(headers.DeleteKVConfigRequestHeader),
    RequestCode.GET_BROKER_CLUSTER_INFO: namesrv(response_body=bodies.ClusterInfo),
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: broker(request_body=bodies.SubscriptionGroupConfig),
    RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: broker(response_body=bodies.SubscriptionGroupWrapper),
    RequestCode.GET_TOPIC_STATS_INFO: broker(
        headers.GetTopicStatsInfoRequestHeader, response_body=bodies.TopicStatsTable
    ),
    RequestCode.GET_CONSUMER_CONNECTION_LIST: broker(
        headers.GetConsumerConnectionListRequestHeader, response_body=bodies.ConsumerConnection
    ),
    RequestCode.GET_PRODUCER_CONNECTION_LIST: broker(
        headers.GetProducerConnectionListRequestHeader, response_body=bodies.ProducerConnection
    ),
    RequestCode.WIPE_WRITE_PERM_OF_BROKER: namesrv(
        headers.WipeWritePermOfBrokerRequestHeader, headers.WipeWritePermOfBrokerResponseHeader
    ),
    RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: namesrv(response_body=bodies.TopicList),
    RequestCode.DELETE_SUBSCRIPTIONGROUP: broker(headers.DeleteSubscriptionGroupRequestHeader),
    RequestCode.GET_CONSUME_STATS: broker(headers.GetConsumeStatsRequestHeader, response_body=bodies.ConsumeStats),
    RequestCode.SUSPEND_CONSUMER: unserved(),
    RequestCode.RESUME_CONSUMER: unserved(),
    RequestCode.RESET_CONSUMER_OFFSET_IN_CONSUMER: unserved(),
    RequestCode.RESET_CONSUMER_OFFSET_IN_BROKER: unserved(),
    RequestCode.ADJUST_CONSUMER_THREAD_POOL: unserved(),
    RequestCode.WHO_CONSUME_THE_MESSAGE: unserved(),
    RequestCode.DELETE_TOPIC_IN_BROKER: broker(headers.DeleteTopicRequestHeader),
    RequestCode.DELETE_TOPIC_IN_NAMESRV: namesrv(headers.DeleteTopicFromNamesrvRequestHeader),
    RequestCode.GET_KVLIST_BY_NAMESPACE: namesrv(
        headers.GetKVListByNamespaceRequestHeader, response_body=bodies.KVTable
    ),
    RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: broker(
        headers.ResetOffsetRequestHeader, response_body=bodies.ResetOffsetBody
    ),
    RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: broker(
        headers.GetConsumerStatusRequestHeader, response_body=bodies.GetConsumerStatusBody
    ),
    RequestCode.GET_TOPICS_BY_CLUSTER: namesrv(headers.GetTopicsByClusterRequestHeader, response_body=bodies.TopicList),
    RequestCode.QUERY_TOPIC_CONSUME_BY_WHO: broker(
        headers.QueryTopicConsumeByWhoRequestHeader, response_body=bodies.GroupList
    ),
    RequestCode.REGISTER_FILTER_SERVER: unserved(),
    RequestCode.REGISTER_MESSAGE_FILTER_CLASS: unserved(),
    RequestCode.QUERY_CONSUME_TIME_SPAN: broker(
        headers.QueryConsumeTimeSpanRequestHeader, response_body=bodies.QueryConsumeTimeSpanBody
    ),
    RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS: namesrv(response_body=bodies.TopicList),
    RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER: broker(response_body=bodies.TopicList),
    RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE: broker(),
    RequestCode.QUERY_CORRECTION_OFFSET: broker(
        headers.QueryCorrectionOffsetHeader, response_body=bodies.QueryCorrectionOffsetBody
    ),
    RequestCode.GET_UNIT_TOPIC_LIST: namesrv(response_body=bodies.TopicList),
    RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST: namesrv(response_body=bodies.TopicList),
    RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST: namesrv(response_body=bodies.TopicList),
    RequestCode.CLONE_GROUP_OFFSET: broker(headers.CloneGroupOffsetRequestHeader),
    RequestCode.VIEW_BROKER_STATS_DATA: broker(
        headers.ViewBrokerStatsDataRequestHeader, response_body=bodies.BrokerStatsData
    ),
    RequestCode.CLEAN_UNUSED_TOPIC: broker(),
    RequestCode.GET_BROKER_CONSUME_STATS: broker(
        headers.GetConsumeStatsInBrokerHeader, response_body=bodies.ConsumeStatsList
    ),
    RequestCode.UPDATE_NAMESRV_CONFIG: namesrv(request_body=Payload.PROPERTIES),
    RequestCode.GET_NAMESRV_CONFIG: namesrv(response_body=Payload.PROPERTIES),
    RequestCode.QUERY_CONSUME_QUEUE: broker(
        headers.QueryConsumeQueueRequestHeader, response_body=bodies.QueryConsumeQueueResponseBody
    ),
    RequestCode.RESUME_CHECK_HALF_MESSAGE: broker(headers.ResumeCheckHalfMessageRequestHeader),
    RequestCode.ADD_WRITE_PERM_OF_BROKER: namesrv(
        headers.AddWritePermOfBrokerRequestHeader, headers.AddWritePermOfBrokerResponseHeader
    ),
    RequestCode.GET_ALL_PRODUCER_INFO: broker(
        headers.GetAllProducerInfoRequestHeader, response_body=bodies.ProducerTableInfo
    ),
    RequestCode.DELETE_EXPIRED_COMMITLOG: broker(),
    RequestCode.GET_TOPIC_CONFIG: broker(
        headers.GetTopicConfigRequestHeader, response_body=bodies.TopicConfigAndQueueMapping
    ),
    RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG: broker(
        headers.GetSubscriptionGroupConfigRequestHeader, response_body=bodies.SubscriptionGroupConfig
    ),
}
