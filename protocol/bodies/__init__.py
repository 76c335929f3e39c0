"""The JSON bodies of commands, named as Apache's classes, and their codec."""

from typing import TYPE_CHECKING

from twisted_mq.protocol.lazy_names import homes, on_first_use

if TYPE_CHECKING:
    from twisted_mq.protocol.bodies.auth import AccessWrapper as AccessWrapper
    from twisted_mq.protocol.bodies.auth import AclInfo as AclInfo
    from twisted_mq.protocol.bodies.auth import PolicyEntryInfo as PolicyEntryInfo
    from twisted_mq.protocol.bodies.auth import PolicyInfo as PolicyInfo
    from twisted_mq.protocol.bodies.auth import UserInfo as UserInfo
    from twisted_mq.protocol.bodies.codec import decode_body as decode_body
    from twisted_mq.protocol.bodies.codec import decode_value as decode_value
    from twisted_mq.protocol.bodies.codec import encode_body as encode_body
    from twisted_mq.protocol.bodies.codec import to_value as to_value
    from twisted_mq.protocol.bodies.connections import Connection as Connection
    from twisted_mq.protocol.bodies.connections import ConsumerConnection as ConsumerConnection
    from twisted_mq.protocol.bodies.connections import ProducerConnection as ProducerConnection
    from twisted_mq.protocol.bodies.connections import ProducerInfo as ProducerInfo
    from twisted_mq.protocol.bodies.connections import ProducerTableInfo as ProducerTableInfo
    from twisted_mq.protocol.bodies.consumer_running import ConsumeByWho as ConsumeByWho
    from twisted_mq.protocol.bodies.consumer_running import ConsumeMessageDirectlyResult as ConsumeMessageDirectlyResult
    from twisted_mq.protocol.bodies.consumer_running import ConsumerRunningInfo as ConsumerRunningInfo
    from twisted_mq.protocol.bodies.consumer_running import ConsumeStatus as ConsumeStatus
    from twisted_mq.protocol.bodies.consumer_running import PopProcessQueueInfo as PopProcessQueueInfo
    from twisted_mq.protocol.bodies.consumer_running import ProcessQueueInfo as ProcessQueueInfo
    from twisted_mq.protocol.bodies.controller import BrokerReplicasInfo as BrokerReplicasInfo
    from twisted_mq.protocol.bodies.controller import ElectMasterResponseBody as ElectMasterResponseBody
    from twisted_mq.protocol.bodies.controller import ReplicaIdentity as ReplicaIdentity
    from twisted_mq.protocol.bodies.controller import ReplicasInfo as ReplicasInfo
    from twisted_mq.protocol.bodies.controller import RoleChangeNotifyEntry as RoleChangeNotifyEntry
    from twisted_mq.protocol.bodies.controller import SyncStateSet as SyncStateSet
    from twisted_mq.protocol.bodies.ha import BrokerSyncInfo as BrokerSyncInfo
    from twisted_mq.protocol.bodies.ha import EpochEntry as EpochEntry
    from twisted_mq.protocol.bodies.ha import EpochEntryCache as EpochEntryCache
    from twisted_mq.protocol.bodies.ha import HAClientRuntimeInfo as HAClientRuntimeInfo
    from twisted_mq.protocol.bodies.ha import HAConnectionRuntimeInfo as HAConnectionRuntimeInfo
    from twisted_mq.protocol.bodies.ha import HARuntimeInfo as HARuntimeInfo
    from twisted_mq.protocol.bodies.heartbeat import CheckClientRequestBody as CheckClientRequestBody
    from twisted_mq.protocol.bodies.heartbeat import ConsumerData as ConsumerData
    from twisted_mq.protocol.bodies.heartbeat import HeartbeatData as HeartbeatData
    from twisted_mq.protocol.bodies.heartbeat import ProducerData as ProducerData
    from twisted_mq.protocol.bodies.heartbeat import QuerySubscriptionResponseBody as QuerySubscriptionResponseBody
    from twisted_mq.protocol.bodies.heartbeat import SubscriptionData as SubscriptionData
    from twisted_mq.protocol.bodies.lists import CheckRocksdbCqWriteResult as CheckRocksdbCqWriteResult
    from twisted_mq.protocol.bodies.lists import (
        GetConsumerListByGroupResponseBody as GetConsumerListByGroupResponseBody,
    )
    from twisted_mq.protocol.bodies.lists import GroupList as GroupList
    from twisted_mq.protocol.bodies.lists import KVConfigSerializeWrapper as KVConfigSerializeWrapper
    from twisted_mq.protocol.bodies.lists import KVTable as KVTable
    from twisted_mq.protocol.bodies.lists import TopicList as TopicList
    from twisted_mq.protocol.bodies.metrics import TimerMetric as TimerMetric
    from twisted_mq.protocol.bodies.metrics import TimerMetricsSerializeWrapper as TimerMetricsSerializeWrapper
    from twisted_mq.protocol.bodies.metrics import TransactionMetric as TransactionMetric
    from twisted_mq.protocol.bodies.metrics import (
        TransactionMetricsSerializeWrapper as TransactionMetricsSerializeWrapper,
    )
    from twisted_mq.protocol.bodies.offsets import ConsumerOffsetSerializeWrapper as ConsumerOffsetSerializeWrapper
    from twisted_mq.protocol.bodies.offsets import DelayOffsetSerializeWrapper as DelayOffsetSerializeWrapper
    from twisted_mq.protocol.bodies.offsets import GetConsumerStatusBody as GetConsumerStatusBody
    from twisted_mq.protocol.bodies.offsets import OffsetMovedEvent as OffsetMovedEvent
    from twisted_mq.protocol.bodies.offsets import OffsetSerializeWrapper as OffsetSerializeWrapper
    from twisted_mq.protocol.bodies.offsets import QueryCorrectionOffsetBody as QueryCorrectionOffsetBody
    from twisted_mq.protocol.bodies.offsets import ResetOffsetBody as ResetOffsetBody
    from twisted_mq.protocol.bodies.offsets import ResetOffsetBodyForC as ResetOffsetBodyForC
    from twisted_mq.protocol.bodies.offsets import RocksDBOffsetSerializeWrapper as RocksDBOffsetSerializeWrapper
    from twisted_mq.protocol.bodies.pop import AckMsg as AckMsg
    from twisted_mq.protocol.bodies.pop import BatchAck as BatchAck
    from twisted_mq.protocol.bodies.pop import BatchAckMessageRequestBody as BatchAckMessageRequestBody
    from twisted_mq.protocol.bodies.pop import BatchAckMsg as BatchAckMsg
    from twisted_mq.protocol.bodies.pop import PopCheckPoint as PopCheckPoint
    from twisted_mq.protocol.bodies.queues import LockBatchRequestBody as LockBatchRequestBody
    from twisted_mq.protocol.bodies.queues import LockBatchResponseBody as LockBatchResponseBody
    from twisted_mq.protocol.bodies.queues import MessageQueue as MessageQueue
    from twisted_mq.protocol.bodies.queues import MessageQueueAssignment as MessageQueueAssignment
    from twisted_mq.protocol.bodies.queues import MessageQueueForC as MessageQueueForC
    from twisted_mq.protocol.bodies.queues import (
        MessageRequestModeSerializeWrapper as MessageRequestModeSerializeWrapper,
    )
    from twisted_mq.protocol.bodies.queues import QueryAssignmentRequestBody as QueryAssignmentRequestBody
    from twisted_mq.protocol.bodies.queues import QueryAssignmentResponseBody as QueryAssignmentResponseBody
    from twisted_mq.protocol.bodies.queues import SetMessageRequestModeRequestBody as SetMessageRequestModeRequestBody
    from twisted_mq.protocol.bodies.queues import UnlockBatchRequestBody as UnlockBatchRequestBody
    from twisted_mq.protocol.bodies.register_broker import RegisterBrokerBody as RegisterBrokerBody
    from twisted_mq.protocol.bodies.register_broker import encode_register_broker as encode_register_broker
    from twisted_mq.protocol.bodies.register_broker_reader import decode_register_broker as decode_register_broker
    from twisted_mq.protocol.bodies.route import BrokerData as BrokerData
    from twisted_mq.protocol.bodies.route import BrokerMemberGroup as BrokerMemberGroup
    from twisted_mq.protocol.bodies.route import ClusterInfo as ClusterInfo
    from twisted_mq.protocol.bodies.route import GetBrokerMemberGroupResponseBody as GetBrokerMemberGroupResponseBody
    from twisted_mq.protocol.bodies.route import QueueData as QueueData
    from twisted_mq.protocol.bodies.route import TopicRouteData as TopicRouteData
    from twisted_mq.protocol.bodies.static_topic import LogicQueueMappingItem as LogicQueueMappingItem
    from twisted_mq.protocol.bodies.static_topic import TopicQueueMappingDetail as TopicQueueMappingDetail
    from twisted_mq.protocol.bodies.static_topic import TopicQueueMappingInfo as TopicQueueMappingInfo
    from twisted_mq.protocol.bodies.static_topic import TopicQueueMappingOne as TopicQueueMappingOne
    from twisted_mq.protocol.bodies.static_topic import (
        TopicQueueMappingSerializeWrapper as TopicQueueMappingSerializeWrapper,
    )
    from twisted_mq.protocol.bodies.stats import BrokerStatsData as BrokerStatsData
    from twisted_mq.protocol.bodies.stats import BrokerStatsItem as BrokerStatsItem
    from twisted_mq.protocol.bodies.stats import ConsumeQueueData as ConsumeQueueData
    from twisted_mq.protocol.bodies.stats import ConsumeStats as ConsumeStats
    from twisted_mq.protocol.bodies.stats import ConsumeStatsList as ConsumeStatsList
    from twisted_mq.protocol.bodies.stats import OffsetWrapper as OffsetWrapper
    from twisted_mq.protocol.bodies.stats import QueryConsumeQueueResponseBody as QueryConsumeQueueResponseBody
    from twisted_mq.protocol.bodies.stats import QueryConsumeTimeSpanBody as QueryConsumeTimeSpanBody
    from twisted_mq.protocol.bodies.stats import QueueTimeSpan as QueueTimeSpan
    from twisted_mq.protocol.bodies.stats import RollbackStats as RollbackStats
    from twisted_mq.protocol.bodies.stats import TopicOffset as TopicOffset
    from twisted_mq.protocol.bodies.stats import TopicStatsTable as TopicStatsTable
    from twisted_mq.protocol.bodies.subscription_group import CustomizedRetryPolicy as CustomizedRetryPolicy
    from twisted_mq.protocol.bodies.subscription_group import ExponentialRetryPolicy as ExponentialRetryPolicy
    from twisted_mq.protocol.bodies.subscription_group import GroupForbidden as GroupForbidden
    from twisted_mq.protocol.bodies.subscription_group import GroupRetryPolicy as GroupRetryPolicy
    from twisted_mq.protocol.bodies.subscription_group import SimpleSubscriptionData as SimpleSubscriptionData
    from twisted_mq.protocol.bodies.subscription_group import SubscriptionGroupConfig as SubscriptionGroupConfig
    from twisted_mq.protocol.bodies.subscription_group import SubscriptionGroupList as SubscriptionGroupList
    from twisted_mq.protocol.bodies.subscription_group import SubscriptionGroupWrapper as SubscriptionGroupWrapper
    from twisted_mq.protocol.bodies.topic_config import CreateTopicListRequestBody as CreateTopicListRequestBody
    from twisted_mq.protocol.bodies.topic_config import TopicConfig as TopicConfig
    from twisted_mq.protocol.bodies.topic_config import (
        TopicConfigAndMappingSerializeWrapper as TopicConfigAndMappingSerializeWrapper,
    )
    from twisted_mq.protocol.bodies.topic_config import TopicConfigAndQueueMapping as TopicConfigAndQueueMapping
    from twisted_mq.protocol.bodies.topic_config import TopicConfigSerializeWrapper as TopicConfigSerializeWrapper
    from twisted_mq.protocol.bodies.topic_config import TopicRemappingDetailWrapper as TopicRemappingDetailWrapper
    from twisted_mq.protocol.bodies.versions import DataVersion as DataVersion

HOMES = homes(
    {
        "twisted_mq.protocol.bodies.auth": ("AccessWrapper AclInfo PolicyEntryInfo PolicyInfo UserInfo"),
        "twisted_mq.protocol.bodies.codec": ("decode_body decode_value encode_body to_value"),
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
