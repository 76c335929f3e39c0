"""The JSON bodies of commands, named as Apache's classes, and their codec."""

from typing import TYPE_CHECKING

from twisted_mq.protocol.lazy_names import homes, on_first_use

if TYPE_CHECKING:
    from twisted_mq.protocol.bodies.auth import *
    from twisted_mq.protocol.bodies.codec import decode_body as decode_body
    from twisted_mq.protocol.bodies.codec import decode_value as decode_value
    from twisted_mq.protocol.bodies.codec import encode_body as encode_body
    from twisted_mq.protocol.bodies.codec import encode_row as encode_row
    from twisted_mq.protocol.bodies.codec import encode_with_rows as encode_with_rows
    from twisted_mq.protocol.bodies.codec import to_value as to_value
    from twisted_mq.protocol.bodies.codec import with_rows as with_rows
    from twisted_mq.protocol.bodies.connections import *
    from twisted_mq.protocol.bodies.consumer_running import *
    from twisted_mq.protocol.bodies.controller import *
    from twisted_mq.protocol.bodies.ha import *
    from twisted_mq.protocol.bodies.heartbeat import *
    from twisted_mq.protocol.bodies.lists import *
    from twisted_mq.protocol.bodies.metrics import *
    from twisted_mq.protocol.bodies.offsets import *
    from twisted_mq.protocol.bodies.pop import *
    from twisted_mq.protocol.bodies.queues import *
    from twisted_mq.protocol.bodies.register_broker import RegisterBrokerBody as RegisterBrokerBody
    from twisted_mq.protocol.bodies.register_broker import encode_register_broker as encode_register_broker
    from twisted_mq.protocol.bodies.register_broker_reader import decode_register_broker as decode_register_broker
    from twisted_mq.protocol.bodies.route import *
    from twisted_mq.protocol.bodies.static_topic import *
    from twisted_mq.protocol.bodies.stats import *
    from twisted_mq.protocol.bodies.subscription_group import *
    from twisted_mq.protocol.bodies.topic_config import *
    from twisted_mq.protocol.bodies.versions import *

HOMES = homes(
    {
        "twisted_mq.protocol.bodies.auth": ("AccessWrapper AclInfo PolicyEntryInfo PolicyInfo UserInfo"),
        "twisted_mq.protocol.bodies.codec": (
            "decode_body decode_value encode_body encode_row encode_with_rows to_value with_rows"
        ),
        "twisted_mq.protocol.bodies.connections": (
            "Connection ConsumerConnection ProducerConnection ProducerInfo ProducerTableInfo"
        ),
        "twisted_mq.protocol.bodies.consumer_running": (
            "ConsumeByWho ConsumeMessageDirectlyResult ConsumerRunningInfo ConsumeStatus PopProcessQueueInfo "
            "ProcessQueueInfo"
        ),
        "twisted_mq.protocol.bodies.controller": (
            "BrokerReplicasInfo ElectMasterResponseBody ReplicaIdentity ReplicasInfo RoleChangeNotifyEntry SyncStateSet"
        ),
        "twisted_mq.protocol.bodies.ha": (
            "BrokerSyncInfo EpochEntry EpochEntryCache HAClientRuntimeInfo HAConnectionRuntimeInfo HARuntimeInfo"
        ),
        "twisted_mq.protocol.bodies.heartbeat": (
            "CheckClientRequestBody ConsumerData HeartbeatData ProducerData QuerySubscriptionResponseBody "
            "SubscriptionData"
        ),
        "twisted_mq.protocol.bodies.lists": (
            "CheckRocksdbCqWriteResult GetConsumerListByGroupResponseBody GroupList KVConfigSerializeWrapper "
            "KVTable TopicList"
        ),
        "twisted_mq.protocol.bodies.metrics": (
            "TimerMetric TimerMetricsSerializeWrapper TransactionMetric TransactionMetricsSerializeWrapper"
        ),
        "twisted_mq.protocol.bodies.offsets": (
            "ConsumerOffsetSerializeWrapper DelayOffsetSerializeWrapper GetConsumerStatusBody OffsetMovedEvent "
            "OffsetSerializeWrapper QueryCorrectionOffsetBody ResetOffsetBody ResetOffsetBodyForC "
            "RocksDBOffsetSerializeWrapper"
        ),
        "twisted_mq.protocol.bodies.pop": ("AckMsg BatchAck BatchAckMessageRequestBody BatchAckMsg PopCheckPoint"),
        "twisted_mq.protocol.bodies.queues": (
            "LockBatchRequestBody LockBatchResponseBody MessageQueue MessageQueueAssignment MessageQueueForC "
            "MessageRequestModeSerializeWrapper QueryAssignmentRequestBody QueryAssignmentResponseBody "
            "SetMessageRequestModeRequestBody UnlockBatchRequestBody"
        ),
        "twisted_mq.protocol.bodies.register_broker": ("RegisterBrokerBody encode_register_broker"),
        "twisted_mq.protocol.bodies.register_broker_reader": ("decode_register_broker"),
        "twisted_mq.protocol.bodies.route": (
            "BrokerData BrokerMemberGroup ClusterInfo GetBrokerMemberGroupResponseBody QueueData TopicRouteData"
        ),
        "twisted_mq.protocol.bodies.static_topic": (
            "LogicQueueMappingItem TopicQueueMappingDetail TopicQueueMappingInfo TopicQueueMappingOne "
            "TopicQueueMappingSerializeWrapper"
        ),
        "twisted_mq.protocol.bodies.stats": (
            "BrokerStatsData BrokerStatsItem ConsumeQueueData ConsumeStats ConsumeStatsList OffsetWrapper "
            "QueryConsumeQueueResponseBody QueryConsumeTimeSpanBody QueueTimeSpan RollbackStats TopicOffset "
            "TopicStatsTable"
        ),
        "twisted_mq.protocol.bodies.subscription_group": (
            "CustomizedRetryPolicy ExponentialRetryPolicy GroupForbidden GroupRetryPolicy SimpleSubscriptionData "
            "SubscriptionGroupConfig SubscriptionGroupList SubscriptionGroupWrapper"
        ),
        "twisted_mq.protocol.bodies.topic_config": (
            "CreateTopicListRequestBody TopicConfig TopicConfigAndMappingSerializeWrapper "
            "TopicConfigAndQueueMapping TopicConfigSerializeWrapper TopicRemappingDetailWrapper"
        ),
        "twisted_mq.protocol.bodies.versions": ("DataVersion"),
    }
)
"""The module of each class, which is loaded when the class is first used: making it takes up to a millisecond."""

if not TYPE_CHECKING:
    __getattr__ = on_first_use(__name__, HOMES)
