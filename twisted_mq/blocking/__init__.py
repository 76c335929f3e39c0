"""The client library in plain calls, for scripts, Django, Celery: its names and options are twisted_mq.client's.

from twisted_mq.blocking import Message, Producer, PushConsumer

with Producer("127.0.0.1:9876", group="orders") as producer:
    producer.send(Message("Orders", b"hello"), timeout=3)
with PushConsumer("127.0.0.1:9876", group="audit", topics={"Orders": "*"}) as consumer:
    for message in consumer.messages(timeout=10):
        message.ack()  # or message.retry(delay_level=3)

One thread in the background does the work of all; it lives while something is started. Calls may come from any thread. They
raise ClientStateError in a thread that runs an event loop, which they would stop: there twisted_mq.aio belongs.
"""

import importlib
from typing import TYPE_CHECKING

from twisted_mq.blocking.calls import CallTimedOut
from twisted_mq.blocking.lite_pull_consumer import LitePullConsumer
from twisted_mq.blocking.mq_client import MQClient
from twisted_mq.blocking.producer import Producer, TransactionProducer
from twisted_mq.blocking.push_consumer import PushConsumer
from twisted_mq.blocking.received import ReceivedMessage
from twisted_mq.client import (
    AccessDenied,
    AutoBatch,
    BatchIncomplete,
    BrokerError,
    BrokerGone,
    ClientError,
    ClientOptionIllegal,
    ClientOptions,
    ClientStateError,
    ConsumeContext,
    ConsumeFromWhere,
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
    ConsumerOptions,
    ConsumeStatus,
    FlowLimits,
    ForkedProcess,
    Message,
    MessageExt,
    MessageIllegal,
    MessageModel,
    MessageQueue,
    NameServerUnreachable,
    NoRoute,
    ProducerOptions,
    RemotingError,
    RequestTimeout,
    RocketMQError,
    SendContext,
    SendFailed,
    SendHook,
    SendLimits,
    SendRefused,
    SendResult,
    SendStatus,
    TopicCreationRefused,
    TopicNotFound,
    TopicNotWritable,
    TransactionResult,
    TransactionState,
    reply_message,
)
from twisted_mq.client.consuming.deliveries import DeliveryEnded

if TYPE_CHECKING:
    from twisted_mq.blocking.admin import Admin
    from twisted_mq.blocking.ordered import OrderedConsumer, OrderedProducer
    from twisted_mq.client import (
        AdminError,
        BrokerFigures,
        CoordinatorUnknown,
        CoordinatorUnreachable,
        GivenUp,
        GroupDescription,
        GroupMember,
        GroupNotFound,
        MessagesDeleted,
        NoHead,
        NotLeader,
        OffsetMove,
        OrderedConsumerOptions,
        OrderedError,
        OrderedOptions,
        OrderedTopicUnknown,
        QueueBlocked,
        QueueLag,
        QueueUnknown,
        Resent,
        Right,
        SendGivenUp,
        SendTimedOut,
        TooMuchWaits,
        TopicDescription,
        TopicExists,
        TopicKind,
        TopicQueue,
        TopicSettings,
        User,
        Window,
    )

__all__ = [
    "AccessDenied",
    "Admin",
    "AdminError",
    "AutoBatch",
    "BatchIncomplete",
    "BrokerError",
    "BrokerFigures",
    "BrokerGone",
    "CallTimedOut",
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
    "DeliveryEnded",
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
    "ReceivedMessage",
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


def __getattr__(name: str) -> object:
    """What reaches a coordinator is loaded by who uses ordered queues."""
    if name == "Admin":
        return importlib.import_module("twisted_mq.blocking.admin").Admin
    if name in ("OrderedConsumer", "OrderedProducer"):
        return getattr(importlib.import_module("twisted_mq.blocking.ordered"), name)
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("twisted_mq.client"), name)
