"""The client library: producers and consumers for any RocketMQ cluster, ours or Apache's. Every call returns a Deferred.

from twisted_mq.client import Message, Producer
"""

import importlib
from typing import TYPE_CHECKING

from twisted_mq.client.consuming.consumer_options import (
    ConsumeContext,
    ConsumeFromWhere,
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
    ConsumerOptions,
    ConsumeStatus,
    MessageModel,
)
from twisted_mq.client.consuming.lite_pull_consumer import LitePullConsumer
from twisted_mq.client.consuming.process_queue import FlowLimits
from twisted_mq.client.consuming.push_consumer import PushConsumer
from twisted_mq.client.core.client_options import ClientOptions
from twisted_mq.client.core.errors import (
    AccessDenied,
    BrokerError,
    BrokerGone,
    ClientError,
    ClientOptionIllegal,
    ClientStateError,
    ForkedProcess,
    MessageIllegal,
    NameServerUnreachable,
    NoRoute,
    RemotingError,
    RequestTimeout,
    RocketMQError,
    SendFailed,
    SendRefused,
    TopicCreationRefused,
    TopicNotFound,
    TopicNotWritable,
)
from twisted_mq.client.core.message import Message
from twisted_mq.client.core.mq_client import MQClient
from twisted_mq.client.core.request_and_reply import reply_message
from twisted_mq.client.producing.accumulator import AutoBatch
from twisted_mq.client.producing.errors import BatchIncomplete
from twisted_mq.client.producing.message_checks import SendLimits
from twisted_mq.client.producing.producer import Producer
from twisted_mq.client.producing.producer_options import ProducerOptions
from twisted_mq.client.producing.send_hooks import SendContext, SendHook
from twisted_mq.client.producing.send_result import SendResult, SendStatus
from twisted_mq.client.producing.transaction_producer import TransactionProducer, TransactionResult, TransactionState
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.messages.message import MessageExt

if TYPE_CHECKING:
    from twisted_mq.admin.admin import Admin
    from twisted_mq.admin.dead_letters import GivenUp, Resent
    from twisted_mq.admin.errors import AdminError
    from twisted_mq.admin.figures import BrokerFigures
    from twisted_mq.admin.group_admin import GroupNotFound
    from twisted_mq.admin.lag import QueueLag
    from twisted_mq.admin.results import (
        GroupDescription,
        GroupMember,
        OffsetMove,
        Right,
        TopicDescription,
        TopicQueue,
        TopicSettings,
        User,
    )
    from twisted_mq.admin.topic_admin import TopicExists
    from twisted_mq.admin.topics import TopicKind
    from twisted_mq.client.ordered.consumer_options import OrderedConsumerOptions
    from twisted_mq.client.ordered.errors import (
        CoordinatorUnknown,
        CoordinatorUnreachable,
        NoHead,
        NotLeader,
        OrderedError,
        OrderedTopicUnknown,
        QueueBlocked,
        QueueUnknown,
        SendGivenUp,
        SendTimedOut,
        TooMuchWaits,
    )
    from twisted_mq.client.ordered.messages_deleted import MessagesDeleted
    from twisted_mq.client.ordered.ordered_consumer import OrderedConsumer
    from twisted_mq.client.ordered.ordered_options import OrderedOptions
    from twisted_mq.client.ordered.ordered_producer import OrderedProducer
    from twisted_mq.client.ordered.pipeline import Window

__all__ = [
    "AccessDenied",
    "Admin",
    "AdminError",
    "AutoBatch",
    "BatchIncomplete",
    "BrokerError",
    "BrokerFigures",
    "BrokerGone",
    "ClientError",
    "ClientOptionIllegal",
    "ClientOptions",
    "ClientStateError",
    "ConsumeContext",
    "ConsumeFromWhere",
    "ConsumeOrderlyContext",
    "ConsumeOrderlyStatus",
    "ConsumeStatus",
    "ConsumerOptions",
    "CoordinatorUnknown",
    "CoordinatorUnreachable",
    "FlowLimits",
    "ForkedProcess",
    "GivenUp",
    "GroupDescription",
    "GroupMember",
    "GroupNotFound",
    "LitePullConsumer",
    "MQClient",
    "Message",
    "MessageExt",
    "MessageIllegal",
    "MessageModel",
    "MessageQueue",
    "MessagesDeleted",
    "NameServerUnreachable",
    "NoHead",
    "NoRoute",
    "NotLeader",
    "OffsetMove",
    "OrderedConsumer",
    "OrderedConsumerOptions",
    "OrderedError",
    "OrderedOptions",
    "OrderedProducer",
    "OrderedTopicUnknown",
    "Producer",
    "ProducerOptions",
    "PushConsumer",
    "QueueBlocked",
    "QueueLag",
    "QueueUnknown",
    "RemotingError",
    "RequestTimeout",
    "Resent",
    "Right",
    "RocketMQError",
    "SendContext",
    "SendFailed",
    "SendGivenUp",
    "SendHook",
    "SendLimits",
    "SendRefused",
    "SendResult",
    "SendStatus",
    "SendTimedOut",
    "TooMuchWaits",
    "TopicCreationRefused",
    "TopicDescription",
    "TopicExists",
    "TopicKind",
    "TopicNotFound",
    "TopicNotWritable",
    "TopicQueue",
    "TopicSettings",
    "TransactionProducer",
    "TransactionResult",
    "TransactionState",
    "User",
    "Window",
    "reply_message",
]

_ADMIN = "twisted_mq.admin"
_ORDERED = "twisted_mq.client.ordered"
_LATER = {
    "Admin": f"{_ADMIN}.admin",
    "AdminError": f"{_ADMIN}.errors",
    "BrokerFigures": f"{_ADMIN}.figures",
    "GivenUp": f"{_ADMIN}.dead_letters",
    "GroupDescription": f"{_ADMIN}.results",
    "GroupMember": f"{_ADMIN}.results",
    "GroupNotFound": f"{_ADMIN}.group_admin",
    "OffsetMove": f"{_ADMIN}.results",
    "QueueLag": f"{_ADMIN}.lag",
    "Resent": f"{_ADMIN}.dead_letters",
    "Right": f"{_ADMIN}.results",
    "TopicDescription": f"{_ADMIN}.results",
    "TopicExists": f"{_ADMIN}.topic_admin",
    "TopicKind": f"{_ADMIN}.topics",
    "TopicQueue": f"{_ADMIN}.results",
    "TopicSettings": f"{_ADMIN}.results",
    "User": f"{_ADMIN}.results",
    **dict.fromkeys(
        (
            "CoordinatorUnknown",
            "CoordinatorUnreachable",
            "NoHead",
            "NotLeader",
            "OrderedError",
            "OrderedTopicUnknown",
            "QueueBlocked",
            "QueueUnknown",
            "SendGivenUp",
            "SendTimedOut",
            "TooMuchWaits",
        ),
        f"{_ORDERED}.errors",
    ),
    "MessagesDeleted": f"{_ORDERED}.messages_deleted",
    "OrderedConsumer": f"{_ORDERED}.ordered_consumer",
    "OrderedConsumerOptions": f"{_ORDERED}.consumer_options",
    "OrderedOptions": f"{_ORDERED}.ordered_options",
    "OrderedProducer": f"{_ORDERED}.ordered_producer",
    "Window": f"{_ORDERED}.pipeline",
}
"""Loaded by who uses ordered queues, with what reaches their coordinator."""


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_LATER[name]), name)
