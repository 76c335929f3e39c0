"""The client library for asyncio, on the application's own running loop: its names and options are twisted_mq.client's.

from twisted_mq.aio import Message, Producer, PushConsumer

async with Producer("127.0.0.1:9876", group="orders") as producer:
    result = await producer.send(Message("Orders", b"hello", tags="new"))
async with PushConsumer("127.0.0.1:9876", group="audit", topics={"Orders": "*"}) as consumer:
    async for message in consumer:
        await message.ack()  # or message.retry(delay_level=3)
"""

import importlib
from typing import TYPE_CHECKING

from twisted_mq.aio.lite_pull_consumer import LitePullConsumer
from twisted_mq.aio.mq_client import MQClient
from twisted_mq.aio.producer import Producer, TransactionProducer
from twisted_mq.aio.push_consumer import PushConsumer
from twisted_mq.aio.received import ReceivedMessage
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
    from twisted_mq.aio.admin import Admin
    from twisted_mq.aio.ordered import OrderedConsumer, OrderedProducer
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
        return importlib.import_module("twisted_mq.aio.admin").Admin
    if name in ("OrderedConsumer", "OrderedProducer"):
        return getattr(importlib.import_module("twisted_mq.aio.ordered"), name)
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("twisted_mq.client"), name)
