"""The header classes of all commands, named as in Apache's org.apache.rocketmq.remoting.protocol.header."""

from typing import TYPE_CHECKING

from twisted_mq.protocol.lazy_names import homes, on_first_use

if TYPE_CHECKING:
    from twisted_mq.protocol.headers.auth import CreateAclRequestHeader as CreateAclRequestHeader
    from twisted_mq.protocol.headers.auth import CreateUserRequestHeader as CreateUserRequestHeader
    from twisted_mq.protocol.headers.auth import DeleteAclRequestHeader as DeleteAclRequestHeader
    from twisted_mq.protocol.headers.auth import DeleteUserRequestHeader as DeleteUserRequestHeader
    from twisted_mq.protocol.headers.auth import GetAclRequestHeader as GetAclRequestHeader
    from twisted_mq.protocol.headers.auth import GetUserRequestHeader as GetUserRequestHeader
    from twisted_mq.protocol.headers.auth import ListAclsRequestHeader as ListAclsRequestHeader
    from twisted_mq.protocol.headers.auth import ListUsersRequestHeader as ListUsersRequestHeader
    from twisted_mq.protocol.headers.auth import UpdateAclRequestHeader as UpdateAclRequestHeader
    from twisted_mq.protocol.headers.auth import UpdateUserRequestHeader as UpdateUserRequestHeader
    from twisted_mq.protocol.headers.base import RpcRequestHeader as RpcRequestHeader
    from twisted_mq.protocol.headers.base import TopicQueueRequestHeader as TopicQueueRequestHeader
    from twisted_mq.protocol.headers.base import TopicRequestHeader as TopicRequestHeader
    from twisted_mq.protocol.headers.broker import AddBrokerRequestHeader as AddBrokerRequestHeader
    from twisted_mq.protocol.headers.broker import ExchangeHAInfoRequestHeader as ExchangeHAInfoRequestHeader
    from twisted_mq.protocol.headers.broker import ExchangeHAInfoResponseHeader as ExchangeHAInfoResponseHeader
    from twisted_mq.protocol.headers.broker import (
        ExportRocksDBConfigToJsonRequestHeader as ExportRocksDBConfigToJsonRequestHeader,
    )
    from twisted_mq.protocol.headers.broker import GetBrokerConfigResponseHeader as GetBrokerConfigResponseHeader
    from twisted_mq.protocol.headers.broker import (
        NotifyBrokerRoleChangedRequestHeader as NotifyBrokerRoleChangedRequestHeader,
    )
    from twisted_mq.protocol.headers.broker import (
        NotifyMinBrokerIdChangeRequestHeader as NotifyMinBrokerIdChangeRequestHeader,
    )
    from twisted_mq.protocol.headers.broker import RemoveBrokerRequestHeader as RemoveBrokerRequestHeader
    from twisted_mq.protocol.headers.broker import ResetMasterFlushOffsetHeader as ResetMasterFlushOffsetHeader
    from twisted_mq.protocol.headers.broker import ViewBrokerStatsDataRequestHeader as ViewBrokerStatsDataRequestHeader
    from twisted_mq.protocol.headers.controller import AlterSyncStateSetRequestHeader as AlterSyncStateSetRequestHeader
    from twisted_mq.protocol.headers.controller import (
        AlterSyncStateSetResponseHeader as AlterSyncStateSetResponseHeader,
    )
    from twisted_mq.protocol.headers.controller import ApplyBrokerIdRequestHeader as ApplyBrokerIdRequestHeader
    from twisted_mq.protocol.headers.controller import ApplyBrokerIdResponseHeader as ApplyBrokerIdResponseHeader
    from twisted_mq.protocol.headers.controller import (
        CleanControllerBrokerDataRequestHeader as CleanControllerBrokerDataRequestHeader,
    )
    from twisted_mq.protocol.headers.controller import ElectMasterRequestHeader as ElectMasterRequestHeader
    from twisted_mq.protocol.headers.controller import ElectMasterResponseHeader as ElectMasterResponseHeader
    from twisted_mq.protocol.headers.controller import GetMetaDataResponseHeader as GetMetaDataResponseHeader
    from twisted_mq.protocol.headers.controller import GetNextBrokerIdRequestHeader as GetNextBrokerIdRequestHeader
    from twisted_mq.protocol.headers.controller import GetNextBrokerIdResponseHeader as GetNextBrokerIdResponseHeader
    from twisted_mq.protocol.headers.controller import GetReplicaInfoRequestHeader as GetReplicaInfoRequestHeader
    from twisted_mq.protocol.headers.controller import GetReplicaInfoResponseHeader as GetReplicaInfoResponseHeader
    from twisted_mq.protocol.headers.controller import (
        RegisterBrokerToControllerRequestHeader as RegisterBrokerToControllerRequestHeader,
    )
    from twisted_mq.protocol.headers.controller import (
        RegisterBrokerToControllerResponseHeader as RegisterBrokerToControllerResponseHeader,
    )
    from twisted_mq.protocol.headers.controller_tasks import BrokerCloseChannelRequest as BrokerCloseChannelRequest
    from twisted_mq.protocol.headers.controller_tasks import BrokerCloseChannelResponse as BrokerCloseChannelResponse
    from twisted_mq.protocol.headers.controller_tasks import CheckNotActiveBrokerRequest as CheckNotActiveBrokerRequest
    from twisted_mq.protocol.headers.controller_tasks import (
        CheckNotActiveBrokerResponse as CheckNotActiveBrokerResponse,
    )
    from twisted_mq.protocol.headers.controller_tasks import GetBrokerLiveInfoRequest as GetBrokerLiveInfoRequest
    from twisted_mq.protocol.headers.controller_tasks import GetBrokerLiveInfoResponse as GetBrokerLiveInfoResponse
    from twisted_mq.protocol.headers.controller_tasks import GetSyncStateDataRequest as GetSyncStateDataRequest
    from twisted_mq.protocol.headers.controller_tasks import (
        RaftBrokerHeartBeatEventRequest as RaftBrokerHeartBeatEventRequest,
    )
    from twisted_mq.protocol.headers.controller_tasks import (
        RaftBrokerHeartBeatEventResponse as RaftBrokerHeartBeatEventResponse,
    )
    from twisted_mq.protocol.headers.fields import BoundaryType as BoundaryType
    from twisted_mq.protocol.headers.group import (
        ConsumeMessageDirectlyResultRequestHeader as ConsumeMessageDirectlyResultRequestHeader,
    )
    from twisted_mq.protocol.headers.group import (
        DeleteSubscriptionGroupRequestHeader as DeleteSubscriptionGroupRequestHeader,
    )
    from twisted_mq.protocol.headers.group import GetAllProducerInfoRequestHeader as GetAllProducerInfoRequestHeader
    from twisted_mq.protocol.headers.group import (
        GetConsumerConnectionListRequestHeader as GetConsumerConnectionListRequestHeader,
    )
    from twisted_mq.protocol.headers.group import (
        GetConsumerListByGroupRequestHeader as GetConsumerListByGroupRequestHeader,
    )
    from twisted_mq.protocol.headers.group import (
        GetConsumerListByGroupResponseHeader as GetConsumerListByGroupResponseHeader,
    )
    from twisted_mq.protocol.headers.group import (
        GetConsumerRunningInfoRequestHeader as GetConsumerRunningInfoRequestHeader,
    )
    from twisted_mq.protocol.headers.group import GetConsumerStatusRequestHeader as GetConsumerStatusRequestHeader
    from twisted_mq.protocol.headers.group import GetConsumeStatsInBrokerHeader as GetConsumeStatsInBrokerHeader
    from twisted_mq.protocol.headers.group import GetConsumeStatsRequestHeader as GetConsumeStatsRequestHeader
    from twisted_mq.protocol.headers.group import (
        GetProducerConnectionListRequestHeader as GetProducerConnectionListRequestHeader,
    )
    from twisted_mq.protocol.headers.group import (
        GetSubscriptionGroupConfigRequestHeader as GetSubscriptionGroupConfigRequestHeader,
    )
    from twisted_mq.protocol.headers.group import HeartbeatRequestHeader as HeartbeatRequestHeader
    from twisted_mq.protocol.headers.group import LockBatchMqRequestHeader as LockBatchMqRequestHeader
    from twisted_mq.protocol.headers.group import (
        NotifyConsumerIdsChangedRequestHeader as NotifyConsumerIdsChangedRequestHeader,
    )
    from twisted_mq.protocol.headers.group import (
        QuerySubscriptionByConsumerRequestHeader as QuerySubscriptionByConsumerRequestHeader,
    )
    from twisted_mq.protocol.headers.group import UnlockBatchMqRequestHeader as UnlockBatchMqRequestHeader
    from twisted_mq.protocol.headers.group import UnregisterClientRequestHeader as UnregisterClientRequestHeader
    from twisted_mq.protocol.headers.group import UnregisterClientResponseHeader as UnregisterClientResponseHeader
    from twisted_mq.protocol.headers.group import UpdateGroupForbiddenRequestHeader as UpdateGroupForbiddenRequestHeader
    from twisted_mq.protocol.headers.message_query import (
        CheckRocksdbCqWriteProgressRequestHeader as CheckRocksdbCqWriteProgressRequestHeader,
    )
    from twisted_mq.protocol.headers.message_query import (
        QueryConsumeQueueRequestHeader as QueryConsumeQueueRequestHeader,
    )
    from twisted_mq.protocol.headers.message_query import (
        QueryConsumeTimeSpanRequestHeader as QueryConsumeTimeSpanRequestHeader,
    )
    from twisted_mq.protocol.headers.message_query import QueryMessageRequestHeader as QueryMessageRequestHeader
    from twisted_mq.protocol.headers.message_query import QueryMessageResponseHeader as QueryMessageResponseHeader
    from twisted_mq.protocol.headers.message_query import ViewMessageRequestHeader as ViewMessageRequestHeader
    from twisted_mq.protocol.headers.message_query import ViewMessageResponseHeader as ViewMessageResponseHeader
    from twisted_mq.protocol.headers.namesrv import (
        AddWritePermOfBrokerRequestHeader as AddWritePermOfBrokerRequestHeader,
    )
    from twisted_mq.protocol.headers.namesrv import (
        AddWritePermOfBrokerResponseHeader as AddWritePermOfBrokerResponseHeader,
    )
    from twisted_mq.protocol.headers.namesrv import BrokerHeartbeatRequestHeader as BrokerHeartbeatRequestHeader
    from twisted_mq.protocol.headers.namesrv import DeleteKVConfigRequestHeader as DeleteKVConfigRequestHeader
    from twisted_mq.protocol.headers.namesrv import (
        DeleteTopicFromNamesrvRequestHeader as DeleteTopicFromNamesrvRequestHeader,
    )
    from twisted_mq.protocol.headers.namesrv import (
        GetBrokerMemberGroupRequestHeader as GetBrokerMemberGroupRequestHeader,
    )
    from twisted_mq.protocol.headers.namesrv import GetKVConfigRequestHeader as GetKVConfigRequestHeader
    from twisted_mq.protocol.headers.namesrv import GetKVConfigResponseHeader as GetKVConfigResponseHeader
    from twisted_mq.protocol.headers.namesrv import (
        GetKVListByNamespaceRequestHeader as GetKVListByNamespaceRequestHeader,
    )
    from twisted_mq.protocol.headers.namesrv import GetRouteInfoRequestHeader as GetRouteInfoRequestHeader
    from twisted_mq.protocol.headers.namesrv import GetTopicsByClusterRequestHeader as GetTopicsByClusterRequestHeader
    from twisted_mq.protocol.headers.namesrv import PutKVConfigRequestHeader as PutKVConfigRequestHeader
    from twisted_mq.protocol.headers.namesrv import QueryDataVersionRequestHeader as QueryDataVersionRequestHeader
    from twisted_mq.protocol.headers.namesrv import QueryDataVersionResponseHeader as QueryDataVersionResponseHeader
    from twisted_mq.protocol.headers.namesrv import RegisterBrokerRequestHeader as RegisterBrokerRequestHeader
    from twisted_mq.protocol.headers.namesrv import RegisterBrokerResponseHeader as RegisterBrokerResponseHeader
    from twisted_mq.protocol.headers.namesrv import RegisterOrderTopicRequestHeader as RegisterOrderTopicRequestHeader
    from twisted_mq.protocol.headers.namesrv import RegisterTopicRequestHeader as RegisterTopicRequestHeader
    from twisted_mq.protocol.headers.namesrv import UnRegisterBrokerRequestHeader as UnRegisterBrokerRequestHeader
    from twisted_mq.protocol.headers.namesrv import (
        WipeWritePermOfBrokerRequestHeader as WipeWritePermOfBrokerRequestHeader,
    )
    from twisted_mq.protocol.headers.namesrv import (
        WipeWritePermOfBrokerResponseHeader as WipeWritePermOfBrokerResponseHeader,
    )
    from twisted_mq.protocol.headers.offsets import CloneGroupOffsetRequestHeader as CloneGroupOffsetRequestHeader
    from twisted_mq.protocol.headers.offsets import (
        GetEarliestMsgStoretimeRequestHeader as GetEarliestMsgStoretimeRequestHeader,
    )
    from twisted_mq.protocol.headers.offsets import (
        GetEarliestMsgStoretimeResponseHeader as GetEarliestMsgStoretimeResponseHeader,
    )
    from twisted_mq.protocol.headers.offsets import GetMaxOffsetRequestHeader as GetMaxOffsetRequestHeader
    from twisted_mq.protocol.headers.offsets import GetMaxOffsetResponseHeader as GetMaxOffsetResponseHeader
    from twisted_mq.protocol.headers.offsets import GetMinOffsetRequestHeader as GetMinOffsetRequestHeader
    from twisted_mq.protocol.headers.offsets import GetMinOffsetResponseHeader as GetMinOffsetResponseHeader
    from twisted_mq.protocol.headers.offsets import InitConsumerOffsetRequestHeader as InitConsumerOffsetRequestHeader
    from twisted_mq.protocol.headers.offsets import QueryConsumerOffsetRequestHeader as QueryConsumerOffsetRequestHeader
    from twisted_mq.protocol.headers.offsets import (
        QueryConsumerOffsetResponseHeader as QueryConsumerOffsetResponseHeader,
    )
    from twisted_mq.protocol.headers.offsets import QueryCorrectionOffsetHeader as QueryCorrectionOffsetHeader
    from twisted_mq.protocol.headers.offsets import ResetOffsetRequestHeader as ResetOffsetRequestHeader
    from twisted_mq.protocol.headers.offsets import SearchOffsetRequestHeader as SearchOffsetRequestHeader
    from twisted_mq.protocol.headers.offsets import SearchOffsetResponseHeader as SearchOffsetResponseHeader
    from twisted_mq.protocol.headers.offsets import (
        UpdateConsumerOffsetRequestHeader as UpdateConsumerOffsetRequestHeader,
    )
    from twisted_mq.protocol.headers.offsets import (
        UpdateConsumerOffsetResponseHeader as UpdateConsumerOffsetResponseHeader,
    )
    from twisted_mq.protocol.headers.pop import AckMessageRequestHeader as AckMessageRequestHeader
    from twisted_mq.protocol.headers.pop import ChangeInvisibleTimeRequestHeader as ChangeInvisibleTimeRequestHeader
    from twisted_mq.protocol.headers.pop import ChangeInvisibleTimeResponseHeader as ChangeInvisibleTimeResponseHeader
    from twisted_mq.protocol.headers.pop import NotificationRequestHeader as NotificationRequestHeader
    from twisted_mq.protocol.headers.pop import NotificationResponseHeader as NotificationResponseHeader
    from twisted_mq.protocol.headers.pop import PeekMessageRequestHeader as PeekMessageRequestHeader
    from twisted_mq.protocol.headers.pop import PollingInfoRequestHeader as PollingInfoRequestHeader
    from twisted_mq.protocol.headers.pop import PollingInfoResponseHeader as PollingInfoResponseHeader
    from twisted_mq.protocol.headers.pop import PopMessageRequestHeader as PopMessageRequestHeader
    from twisted_mq.protocol.headers.pop import PopMessageResponseHeader as PopMessageResponseHeader
    from twisted_mq.protocol.headers.pop import StatisticsMessagesRequestHeader as StatisticsMessagesRequestHeader
    from twisted_mq.protocol.headers.pull import PullMessageRequestHeader as PullMessageRequestHeader
    from twisted_mq.protocol.headers.pull import PullMessageResponseHeader as PullMessageResponseHeader
    from twisted_mq.protocol.headers.send import ConsumerSendMsgBackRequestHeader as ConsumerSendMsgBackRequestHeader
    from twisted_mq.protocol.headers.send import RecallMessageRequestHeader as RecallMessageRequestHeader
    from twisted_mq.protocol.headers.send import RecallMessageResponseHeader as RecallMessageResponseHeader
    from twisted_mq.protocol.headers.send import ReplyMessageRequestHeader as ReplyMessageRequestHeader
    from twisted_mq.protocol.headers.send import SendMessageRequestHeader as SendMessageRequestHeader
    from twisted_mq.protocol.headers.send import SendMessageRequestHeaderV2 as SendMessageRequestHeaderV2
    from twisted_mq.protocol.headers.send import SendMessageResponseHeader as SendMessageResponseHeader
    from twisted_mq.protocol.headers.topic import CreateTopicListRequestHeader as CreateTopicListRequestHeader
    from twisted_mq.protocol.headers.topic import CreateTopicRequestHeader as CreateTopicRequestHeader
    from twisted_mq.protocol.headers.topic import DeleteTopicRequestHeader as DeleteTopicRequestHeader
    from twisted_mq.protocol.headers.topic import GetAllTopicConfigResponseHeader as GetAllTopicConfigResponseHeader
    from twisted_mq.protocol.headers.topic import GetTopicConfigRequestHeader as GetTopicConfigRequestHeader
    from twisted_mq.protocol.headers.topic import GetTopicStatsInfoRequestHeader as GetTopicStatsInfoRequestHeader
    from twisted_mq.protocol.headers.topic import (
        QueryTopicConsumeByWhoRequestHeader as QueryTopicConsumeByWhoRequestHeader,
    )
    from twisted_mq.protocol.headers.topic import (
        QueryTopicsByConsumerRequestHeader as QueryTopicsByConsumerRequestHeader,
    )
    from twisted_mq.protocol.headers.transaction import (
        CheckTransactionStateRequestHeader as CheckTransactionStateRequestHeader,
    )
    from twisted_mq.protocol.headers.transaction import (
        CheckTransactionStateResponseHeader as CheckTransactionStateResponseHeader,
    )
    from twisted_mq.protocol.headers.transaction import EndTransactionRequestHeader as EndTransactionRequestHeader
    from twisted_mq.protocol.headers.transaction import EndTransactionResponseHeader as EndTransactionResponseHeader
    from twisted_mq.protocol.headers.transaction import (
        ResumeCheckHalfMessageRequestHeader as ResumeCheckHalfMessageRequestHeader,
    )

HOMES = homes(
    {
        "twisted_mq.protocol.headers.auth": (
            "CreateAclRequestHeader CreateUserRequestHeader DeleteAclRequestHeader DeleteUserRequestHeader "
            "GetAclRequestHeader GetUserRequestHeader ListAclsRequestHeader ListUsersRequestHeader "
            "UpdateAclRequestHeader UpdateUserRequestHeader"
        ),
        "twisted_mq.protocol.headers.base": ("RpcRequestHeader TopicQueueRequestHeader TopicRequestHeader"),
        "twisted_mq.protocol.headers.broker": (
            "AddBrokerRequestHeader ExchangeHAInfoRequestHeader ExchangeHAInfoResponseHeader "
            "ExportRocksDBConfigToJsonRequestHeader GetBrokerConfigResponseHeader "
            "NotifyBrokerRoleChangedRequestHeader NotifyMinBrokerIdChangeRequestHeader RemoveBrokerRequestHeader "
            "ResetMasterFlushOffsetHeader ViewBrokerStatsDataRequestHeader"
        ),
        "twisted_mq.protocol.headers.controller": (
            "AlterSyncStateSetRequestHeader AlterSyncStateSetResponseHeader ApplyBrokerIdRequestHeader "
            "ApplyBrokerIdResponseHeader CleanControllerBrokerDataRequestHeader ElectMasterRequestHeader "
            "ElectMasterResponseHeader GetMetaDataResponseHeader GetNextBrokerIdRequestHeader "
            "GetNextBrokerIdResponseHeader GetReplicaInfoRequestHeader GetReplicaInfoResponseHeader "
            "RegisterBrokerToControllerRequestHeader RegisterBrokerToControllerResponseHeader"
        ),
        "twisted_mq.protocol.headers.controller_tasks": (
            "BrokerCloseChannelRequest BrokerCloseChannelResponse CheckNotActiveBrokerRequest "
            "CheckNotActiveBrokerResponse GetBrokerLiveInfoRequest GetBrokerLiveInfoResponse "
            "GetSyncStateDataRequest RaftBrokerHeartBeatEventRequest RaftBrokerHeartBeatEventResponse"
        ),
        "twisted_mq.protocol.headers.fields": ("BoundaryType"),
        "twisted_mq.protocol.headers.group": (
            "ConsumeMessageDirectlyResultRequestHeader DeleteSubscriptionGroupRequestHeader "
            "GetAllProducerInfoRequestHeader GetConsumerConnectionListRequestHeader "
            "GetConsumerListByGroupRequestHeader GetConsumerListByGroupResponseHeader "
            "GetConsumerRunningInfoRequestHeader GetConsumerStatusRequestHeader GetConsumeStatsInBrokerHeader "
            "GetConsumeStatsRequestHeader GetProducerConnectionListRequestHeader "
            "GetSubscriptionGroupConfigRequestHeader HeartbeatRequestHeader LockBatchMqRequestHeader "
            "NotifyConsumerIdsChangedRequestHeader QuerySubscriptionByConsumerRequestHeader "
            "UnlockBatchMqRequestHeader UnregisterClientRequestHeader UnregisterClientResponseHeader "
            "UpdateGroupForbiddenRequestHeader"
        ),
        "twisted_mq.protocol.headers.message_query": (
            "CheckRocksdbCqWriteProgressRequestHeader QueryConsumeQueueRequestHeader "
            "QueryConsumeTimeSpanRequestHeader QueryMessageRequestHeader QueryMessageResponseHeader "
            "ViewMessageRequestHeader ViewMessageResponseHeader"
        ),
        "twisted_mq.protocol.headers.namesrv": (
            "AddWritePermOfBrokerRequestHeader AddWritePermOfBrokerResponseHeader BrokerHeartbeatRequestHeader "
            "DeleteKVConfigRequestHeader DeleteTopicFromNamesrvRequestHeader GetBrokerMemberGroupRequestHeader "
            "GetKVConfigRequestHeader GetKVConfigResponseHeader GetKVListByNamespaceRequestHeader "
            "GetRouteInfoRequestHeader GetTopicsByClusterRequestHeader PutKVConfigRequestHeader "
            "QueryDataVersionRequestHeader QueryDataVersionResponseHeader RegisterBrokerRequestHeader "
            "RegisterBrokerResponseHeader RegisterOrderTopicRequestHeader RegisterTopicRequestHeader "
            "UnRegisterBrokerRequestHeader WipeWritePermOfBrokerRequestHeader WipeWritePermOfBrokerResponseHeader"
        ),
        "twisted_mq.protocol.headers.offsets": (
            "CloneGroupOffsetRequestHeader GetEarliestMsgStoretimeRequestHeader "
            "GetEarliestMsgStoretimeResponseHeader GetMaxOffsetRequestHeader GetMaxOffsetResponseHeader "
            "GetMinOffsetRequestHeader GetMinOffsetResponseHeader InitConsumerOffsetRequestHeader "
            "QueryConsumerOffsetRequestHeader QueryConsumerOffsetResponseHeader QueryCorrectionOffsetHeader "
            "ResetOffsetRequestHeader SearchOffsetRequestHeader SearchOffsetResponseHeader "
            "UpdateConsumerOffsetRequestHeader UpdateConsumerOffsetResponseHeader"
        ),
        "twisted_mq.protocol.headers.pop": (
            "AckMessageRequestHeader ChangeInvisibleTimeRequestHeader ChangeInvisibleTimeResponseHeader "
            "NotificationRequestHeader NotificationResponseHeader PeekMessageRequestHeader "
            "PollingInfoRequestHeader PollingInfoResponseHeader PopMessageRequestHeader PopMessageResponseHeader "
            "StatisticsMessagesRequestHeader"
        ),
        "twisted_mq.protocol.headers.pull": ("PullMessageRequestHeader PullMessageResponseHeader"),
        "twisted_mq.protocol.headers.send": (
            "ConsumerSendMsgBackRequestHeader RecallMessageRequestHeader RecallMessageResponseHeader "
            "ReplyMessageRequestHeader SendMessageRequestHeader SendMessageRequestHeaderV2 "
            "SendMessageResponseHeader"
        ),
        "twisted_mq.protocol.headers.topic": (
            "CreateTopicListRequestHeader CreateTopicRequestHeader DeleteTopicRequestHeader "
            "GetAllTopicConfigResponseHeader GetTopicConfigRequestHeader GetTopicStatsInfoRequestHeader "
            "QueryTopicConsumeByWhoRequestHeader QueryTopicsByConsumerRequestHeader"
        ),
        "twisted_mq.protocol.headers.transaction": (
            "CheckTransactionStateRequestHeader CheckTransactionStateResponseHeader EndTransactionRequestHeader "
            "EndTransactionResponseHeader ResumeCheckHalfMessageRequestHeader"
        ),
    }
)
"""The module of each class, which is loaded when the class is first used: making it takes up to a millisecond."""

if not TYPE_CHECKING:
    __getattr__ = on_first_use(__name__, HOMES)
