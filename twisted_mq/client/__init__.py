"""The client library: producers and consumers for this project's and Apache's clusters. Every call returns a Deferred.

from twisted_mq.client import Message, Producer
"""

from typing import TYPE_CHECKING

from twisted_mq.protocol.lazy_names import homes, on_first_use

if TYPE_CHECKING:
    from twisted_mq.admin.admin import Admin
    from twisted_mq.admin.dead_letters import GivenUp, Resent
    from twisted_mq.admin.errors import AdminError
    from twisted_mq.admin.figures import BrokerFigures
    from twisted_mq.admin.group_admin import GroupNotFound
    from twisted_mq.admin.lag import QueueLag
    from twisted_mq.admin.offset_admin import Place
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
    from twisted_mq.client.consuming.consume_hooks import CallOutcome, ConsumeCall, ConsumeHook
    from twisted_mq.client.consuming.consumer_options import (
        ConsumeContext,
        ConsumeFromWhere,
        ConsumeOrderlyContext,
        ConsumeOrderlyStatus,
        ConsumerOptions,
        ConsumeStatus,
        Listener,
        MessageModel,
        OrderlyListener,
    )
    from twisted_mq.client.consuming.lite_pull_consumer import LitePullConsumer
    from twisted_mq.client.consuming.once import once
    from twisted_mq.client.consuming.process_queue import FlowLimits
    from twisted_mq.client.consuming.push_consumer import PushConsumer
    from twisted_mq.client.consuming.seen_keys import (
        HandledElsewhere,
        Seen,
        SeenInMemory,
        SeenInRedis,
        SeenInSqlite,
        SeenKeys,
        message_key,
    )
    from twisted_mq.client.core.argument_checks import Topics
    from twisted_mq.client.core.client_metrics import ConsumerMetrics, ProducerMetrics
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
    from twisted_mq.client.core.requirements import BrokersUnreachable, Require, SubscriptionConflict
    from twisted_mq.client.core.times import Length, Moment
    from twisted_mq.client.core.typed_topic import (
        BodyIllegal,
        ProtobufMessage,
        PydanticModel,
        Serializer,
        TypedTopic,
        as_bytes,
        as_text,
        json_of,
        protobuf_of,
        pydantic_of,
    )
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
    from twisted_mq.client.producing.accumulator import AutoBatch
    from twisted_mq.client.producing.batch_splitting import BatchIncomplete
    from twisted_mq.client.producing.producer import Producer
    from twisted_mq.client.producing.producer_options import ProducerOptions, SendLimits
    from twisted_mq.client.producing.send_hooks import SendContext, SendHook
    from twisted_mq.client.producing.send_result import SendResult, SendStatus
    from twisted_mq.client.producing.transaction_producer import (
        TransactionProducer,
        TransactionResult,
        TransactionState,
    )
    from twisted_mq.coordination.address import CoordinatorAddress
    from twisted_mq.coordination.settings import CoordinatorSettings
    from twisted_mq.extras import MissingExtra
    from twisted_mq.ordering.documents import DocumentFault
    from twisted_mq.protocol.bodies import MessageQueue
    from twisted_mq.protocol.messages.compression import CompressionType
    from twisted_mq.protocol.messages.message import MessageExt
    from twisted_mq.protocol.messages.subscription import SubscriptionError
    from twisted_mq.routing.allocate_strategies import AllocateStrategy

__all__ = [
    "AccessDenied",
    "Admin",
    "AdminError",
    "AllocateStrategy",
    "AutoBatch",
    "BatchIncomplete",
    "BodyIllegal",
    "BrokerError",
    "BrokerFigures",
    "BrokerGone",
    "BrokersUnreachable",
    "CallOutcome",
    "ClientError",
    "ClientOptionIllegal",
    "ClientOptions",
    "ClientStateError",
    "CompressionType",
    "ConsumeCall",
    "ConsumeContext",
    "ConsumeFromWhere",
    "ConsumeHook",
    "ConsumeOrderlyContext",
    "ConsumeOrderlyStatus",
    "ConsumeStatus",
    "ConsumerMetrics",
    "ConsumerOptions",
    "CoordinatorAddress",
    "CoordinatorSettings",
    "CoordinatorUnknown",
    "CoordinatorUnreachable",
    "DocumentFault",
    "FlowLimits",
    "ForkedProcess",
    "GivenUp",
    "GroupDescription",
    "GroupMember",
    "GroupNotFound",
    "HandledElsewhere",
    "Length",
    "Listener",
    "LitePullConsumer",
    "MQClient",
    "Message",
    "MessageExt",
    "MessageIllegal",
    "MessageModel",
    "MessageQueue",
    "MessagesDeleted",
    "MissingExtra",
    "Moment",
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
    "OrderlyListener",
    "Place",
    "Producer",
    "ProducerMetrics",
    "ProducerOptions",
    "ProtobufMessage",
    "PushConsumer",
    "PydanticModel",
    "QueueBlocked",
    "QueueLag",
    "QueueUnknown",
    "RemotingError",
    "RequestTimeout",
    "Require",
    "Resent",
    "Right",
    "RocketMQError",
    "Seen",
    "SeenInMemory",
    "SeenInRedis",
    "SeenInSqlite",
    "SeenKeys",
    "SendContext",
    "SendFailed",
    "SendGivenUp",
    "SendHook",
    "SendLimits",
    "SendRefused",
    "SendResult",
    "SendStatus",
    "SendTimedOut",
    "Serializer",
    "SubscriptionConflict",
    "SubscriptionError",
    "TooMuchWaits",
    "TopicCreationRefused",
    "TopicDescription",
    "TopicExists",
    "TopicKind",
    "TopicNotFound",
    "TopicNotWritable",
    "TopicQueue",
    "TopicSettings",
    "Topics",
    "TransactionProducer",
    "TransactionResult",
    "TransactionState",
    "TypedTopic",
    "User",
    "Window",
    "as_bytes",
    "as_text",
    "json_of",
    "message_key",
    "once",
    "protobuf_of",
    "pydantic_of",
    "reply_message",
]

HOMES = homes(
    {
        "twisted_mq.admin.admin": "Admin",
        "twisted_mq.admin.dead_letters": "GivenUp Resent",
        "twisted_mq.admin.errors": "AdminError",
        "twisted_mq.admin.figures": "BrokerFigures",
        "twisted_mq.admin.group_admin": "GroupNotFound",
        "twisted_mq.admin.lag": "QueueLag",
        "twisted_mq.admin.offset_admin": "Place",
        "twisted_mq.admin.results": (
            "GroupDescription GroupMember OffsetMove Right TopicDescription TopicQueue TopicSettings User"
        ),
        "twisted_mq.admin.topic_admin": "TopicExists",
        "twisted_mq.admin.topics": "TopicKind",
        "twisted_mq.client.consuming.consume_hooks": "CallOutcome ConsumeCall ConsumeHook",
        "twisted_mq.client.consuming.consumer_options": (
            "ConsumeContext ConsumeFromWhere ConsumeOrderlyContext ConsumeOrderlyStatus ConsumeStatus "
            "ConsumerOptions Listener MessageModel OrderlyListener"
        ),
        "twisted_mq.client.consuming.lite_pull_consumer": "LitePullConsumer",
        "twisted_mq.client.consuming.once": "once",
        "twisted_mq.client.consuming.process_queue": "FlowLimits",
        "twisted_mq.client.consuming.push_consumer": "PushConsumer",
        "twisted_mq.client.consuming.seen_keys": (
            "HandledElsewhere Seen SeenInMemory SeenInRedis SeenInSqlite SeenKeys message_key"
        ),
        "twisted_mq.client.core.argument_checks": "Topics",
        "twisted_mq.client.core.client_metrics": "ConsumerMetrics ProducerMetrics",
        "twisted_mq.client.core.client_options": "ClientOptions",
        "twisted_mq.client.core.errors": (
            "AccessDenied BrokerError BrokerGone ClientError ClientOptionIllegal ClientStateError ForkedProcess "
            "MessageIllegal NameServerUnreachable NoRoute RemotingError RequestTimeout RocketMQError SendFailed "
            "SendRefused TopicCreationRefused TopicNotFound TopicNotWritable"
        ),
        "twisted_mq.client.core.message": "Message",
        "twisted_mq.client.core.mq_client": "MQClient",
        "twisted_mq.client.core.request_and_reply": "reply_message",
        "twisted_mq.client.core.requirements": "BrokersUnreachable Require SubscriptionConflict",
        "twisted_mq.client.core.times": "Length Moment",
        "twisted_mq.client.core.typed_topic": (
            "BodyIllegal ProtobufMessage PydanticModel Serializer TypedTopic as_bytes as_text json_of protobuf_of "
            "pydantic_of"
        ),
        "twisted_mq.client.ordered.consumer_options": "OrderedConsumerOptions",
        "twisted_mq.client.ordered.errors": (
            "CoordinatorUnknown CoordinatorUnreachable NoHead NotLeader OrderedError OrderedTopicUnknown "
            "QueueBlocked QueueUnknown SendGivenUp SendTimedOut TooMuchWaits"
        ),
        "twisted_mq.client.ordered.messages_deleted": "MessagesDeleted",
        "twisted_mq.client.ordered.ordered_consumer": "OrderedConsumer",
        "twisted_mq.client.ordered.ordered_options": "OrderedOptions",
        "twisted_mq.client.ordered.ordered_producer": "OrderedProducer",
        "twisted_mq.client.ordered.pipeline": "Window",
        "twisted_mq.client.producing.accumulator": "AutoBatch",
        "twisted_mq.client.producing.batch_splitting": "BatchIncomplete",
        "twisted_mq.client.producing.producer": "Producer",
        "twisted_mq.client.producing.producer_options": "ProducerOptions SendLimits",
        "twisted_mq.client.producing.send_hooks": "SendContext SendHook",
        "twisted_mq.client.producing.send_result": "SendResult SendStatus",
        "twisted_mq.client.producing.transaction_producer": "TransactionProducer TransactionResult TransactionState",
        "twisted_mq.coordination.address": "CoordinatorAddress",
        "twisted_mq.coordination.settings": "CoordinatorSettings",
        "twisted_mq.extras": "MissingExtra",
        "twisted_mq.ordering.documents": "DocumentFault",
        "twisted_mq.protocol.bodies": "MessageQueue",
        "twisted_mq.protocol.messages.compression": "CompressionType",
        "twisted_mq.protocol.messages.message": "MessageExt",
        "twisted_mq.protocol.messages.subscription": "SubscriptionError",
        "twisted_mq.routing.allocate_strategies": "AllocateStrategy",
    }
)
"""The module of each name, which is loaded when the name is first used."""

if not TYPE_CHECKING:
    __getattr__ = on_first_use(__name__, HOMES)
