"""The header classes of all commands, named as in Apache's org.apache.rocketmq.remoting.protocol.header."""

from typing import TYPE_CHECKING

from twisted_mq.protocol.headers.declared import ROWS
from twisted_mq.protocol.lazy_names import homes, on_first_use

if TYPE_CHECKING:
    from twisted_mq.protocol.boundary_type import BoundaryType as BoundaryType
    from twisted_mq.protocol.headers.auth import *
    from twisted_mq.protocol.headers.base import *
    from twisted_mq.protocol.headers.broker import *
    from twisted_mq.protocol.headers.group import *
    from twisted_mq.protocol.headers.message_query import *
    from twisted_mq.protocol.headers.namesrv import *
    from twisted_mq.protocol.headers.offsets import *
    from twisted_mq.protocol.headers.pop import *
    from twisted_mq.protocol.headers.pull import *
    from twisted_mq.protocol.headers.send import *
    from twisted_mq.protocol.headers.topic import *
    from twisted_mq.protocol.headers.transaction import *

HOMES = homes(
    {
        "twisted_mq.protocol.boundary_type": "BoundaryType",
        "twisted_mq.protocol.headers.auth": (
            "CreateAclRequestHeader CreateUserRequestHeader DeleteAclRequestHeader DeleteUserRequestHeader "
            "GetAclRequestHeader GetUserRequestHeader ListAclsRequestHeader ListUsersRequestHeader "
            "UpdateAclRequestHeader UpdateUserRequestHeader"
        ),
        "twisted_mq.protocol.headers.base": "RpcRequestHeader TopicQueueRequestHeader TopicRequestHeader",
        "twisted_mq.protocol.headers.broker": (
            "ExchangeHAInfoRequestHeader ExchangeHAInfoResponseHeader ExportRocksDBConfigToJsonRequestHeader "
            "GetBrokerConfigResponseHeader NotifyMinBrokerIdChangeRequestHeader ResetMasterFlushOffsetHeader "
            "ViewBrokerStatsDataRequestHeader"
        ),
        "twisted_mq.protocol.headers.declared": " ".join(ROWS),
        "twisted_mq.protocol.headers.group": (
            "ConsumeMessageDirectlyResultRequestHeader DeleteSubscriptionGroupRequestHeader "
            "GetAllProducerInfoRequestHeader GetConsumerConnectionListRequestHeader "
            "GetConsumerListByGroupRequestHeader GetConsumerRunningInfoRequestHeader "
            "GetConsumerStatusRequestHeader GetConsumeStatsInBrokerHeader GetConsumeStatsRequestHeader "
            "GetProducerConnectionListRequestHeader GetSubscriptionGroupConfigRequestHeader "
            "NotifyConsumerIdsChangedRequestHeader QuerySubscriptionByConsumerRequestHeader "
            "UnregisterClientRequestHeader UpdateGroupForbiddenRequestHeader"
        ),
        "twisted_mq.protocol.headers.message_query": (
            "CheckRocksdbCqWriteProgressRequestHeader QueryConsumeQueueRequestHeader "
            "QueryConsumeTimeSpanRequestHeader QueryMessageRequestHeader QueryMessageResponseHeader "
            "ViewMessageRequestHeader"
        ),
        "twisted_mq.protocol.headers.namesrv": (
            "AddWritePermOfBrokerRequestHeader AddWritePermOfBrokerResponseHeader BrokerHeartbeatRequestHeader "
            "DeleteKVConfigRequestHeader DeleteTopicFromNamesrvRequestHeader GetBrokerMemberGroupRequestHeader "
            "GetKVConfigRequestHeader GetKVConfigResponseHeader GetKVListByNamespaceRequestHeader "
            "GetRouteInfoRequestHeader GetTopicsByClusterRequestHeader PutKVConfigRequestHeader "
            "QueryDataVersionRequestHeader QueryDataVersionResponseHeader RegisterBrokerRequestHeader "
            "RegisterBrokerResponseHeader RegisterTopicRequestHeader UnRegisterBrokerRequestHeader "
            "WipeWritePermOfBrokerRequestHeader WipeWritePermOfBrokerResponseHeader"
        ),
        "twisted_mq.protocol.headers.offsets": (
            "CloneGroupOffsetRequestHeader GetEarliestMsgStoretimeRequestHeader "
            "GetEarliestMsgStoretimeResponseHeader GetMaxOffsetRequestHeader GetMaxOffsetResponseHeader "
            "GetMinOffsetRequestHeader GetMinOffsetResponseHeader QueryConsumerOffsetRequestHeader "
            "QueryConsumerOffsetResponseHeader QueryCorrectionOffsetHeader ResetOffsetRequestHeader "
            "SearchOffsetRequestHeader SearchOffsetResponseHeader UpdateConsumerOffsetRequestHeader"
        ),
        "twisted_mq.protocol.headers.pop": (
            "AckMessageRequestHeader ChangeInvisibleTimeRequestHeader ChangeInvisibleTimeResponseHeader "
            "NotificationRequestHeader NotificationResponseHeader PeekMessageRequestHeader "
            "PollingInfoRequestHeader PollingInfoResponseHeader PopMessageRequestHeader PopMessageResponseHeader"
        ),
        "twisted_mq.protocol.headers.pull": "PullMessageRequestHeader PullMessageResponseHeader",
        "twisted_mq.protocol.headers.send": (
            "ConsumerSendMsgBackRequestHeader RecallMessageRequestHeader RecallMessageResponseHeader "
            "ReplyMessageRequestHeader SendMessageRequestHeader SendMessageRequestHeaderV2 "
            "SendMessageResponseHeader"
        ),
        "twisted_mq.protocol.headers.topic": (
            "CreateTopicListRequestHeader CreateTopicRequestHeader DeleteTopicRequestHeader "
            "GetTopicConfigRequestHeader GetTopicStatsInfoRequestHeader QueryTopicConsumeByWhoRequestHeader "
            "QueryTopicsByConsumerRequestHeader"
        ),
        "twisted_mq.protocol.headers.transaction": (
            "CheckTransactionStateRequestHeader CheckTransactionStateResponseHeader EndTransactionRequestHeader "
            "ResumeCheckHalfMessageRequestHeader"
        ),
    }
)
"""The module of each class, which is loaded when the class is first used: making it takes up to a millisecond."""

if not TYPE_CHECKING:
    __getattr__ = on_first_use(__name__, HOMES)
