"""Names that are the same in each face of the client: messages, options, results and errors."""

from typing import TYPE_CHECKING

from twisted_mq.protocol.lazy_names import homes

if TYPE_CHECKING:
    from twisted_mq.admin.dead_letters import GivenUp as GivenUp
    from twisted_mq.admin.dead_letters import Resent as Resent
    from twisted_mq.admin.errors import AdminError as AdminError
    from twisted_mq.admin.figures import BrokerFigures as BrokerFigures
    from twisted_mq.admin.group_admin import GroupNotFound as GroupNotFound
    from twisted_mq.admin.lag import QueueLag as QueueLag
    from twisted_mq.admin.offset_admin import Place as Place
    from twisted_mq.admin.results import GroupDescription as GroupDescription
    from twisted_mq.admin.results import GroupMember as GroupMember
    from twisted_mq.admin.results import OffsetMove as OffsetMove
    from twisted_mq.admin.results import Right as Right
    from twisted_mq.admin.results import TopicDescription as TopicDescription
    from twisted_mq.admin.results import TopicQueue as TopicQueue
    from twisted_mq.admin.results import TopicSettings as TopicSettings
    from twisted_mq.admin.results import User as User
    from twisted_mq.admin.topic_admin import TopicExists as TopicExists
    from twisted_mq.admin.topics import TopicKind as TopicKind
    from twisted_mq.client.consuming.consume_hooks import CallOutcome as CallOutcome
    from twisted_mq.client.consuming.consume_hooks import ConsumeCall as ConsumeCall
    from twisted_mq.client.consuming.consume_hooks import ConsumeHook as ConsumeHook
    from twisted_mq.client.consuming.consumer_options import ConsumeContext as ConsumeContext
    from twisted_mq.client.consuming.consumer_options import ConsumeFromWhere as ConsumeFromWhere
    from twisted_mq.client.consuming.consumer_options import ConsumeOrderlyContext as ConsumeOrderlyContext
    from twisted_mq.client.consuming.consumer_options import ConsumeOrderlyStatus as ConsumeOrderlyStatus
    from twisted_mq.client.consuming.consumer_options import ConsumerOptions as ConsumerOptions
    from twisted_mq.client.consuming.consumer_options import ConsumeStatus as ConsumeStatus
    from twisted_mq.client.consuming.consumer_options import MessageModel as MessageModel
    from twisted_mq.client.consuming.process_queue import FlowLimits as FlowLimits
    from twisted_mq.client.consuming.seen_keys import HandledElsewhere as HandledElsewhere
    from twisted_mq.client.consuming.seen_keys import Seen as Seen
    from twisted_mq.client.consuming.seen_keys import SeenInMemory as SeenInMemory
    from twisted_mq.client.consuming.seen_keys import SeenInRedis as SeenInRedis
    from twisted_mq.client.consuming.seen_keys import SeenInSqlite as SeenInSqlite
    from twisted_mq.client.consuming.seen_keys import SeenKeys as SeenKeys
    from twisted_mq.client.consuming.seen_keys import message_key as message_key
    from twisted_mq.client.core.argument_checks import Topics as Topics
    from twisted_mq.client.core.client_metrics import ConsumerMetrics as ConsumerMetrics
    from twisted_mq.client.core.client_metrics import ProducerMetrics as ProducerMetrics
    from twisted_mq.client.core.client_options import ClientOptions as ClientOptions
    from twisted_mq.client.core.errors import AccessDenied as AccessDenied
    from twisted_mq.client.core.errors import BrokerError as BrokerError
    from twisted_mq.client.core.errors import BrokerGone as BrokerGone
    from twisted_mq.client.core.errors import ClientError as ClientError
    from twisted_mq.client.core.errors import ClientOptionIllegal as ClientOptionIllegal
    from twisted_mq.client.core.errors import ClientStateError as ClientStateError
    from twisted_mq.client.core.errors import ForkedProcess as ForkedProcess
    from twisted_mq.client.core.errors import MessageIllegal as MessageIllegal
    from twisted_mq.client.core.errors import NameServerUnreachable as NameServerUnreachable
    from twisted_mq.client.core.errors import NoRoute as NoRoute
    from twisted_mq.client.core.errors import RemotingError as RemotingError
    from twisted_mq.client.core.errors import RequestTimeout as RequestTimeout
    from twisted_mq.client.core.errors import RocketMQError as RocketMQError
    from twisted_mq.client.core.errors import SendFailed as SendFailed
    from twisted_mq.client.core.errors import SendRefused as SendRefused
    from twisted_mq.client.core.errors import TopicCreationRefused as TopicCreationRefused
    from twisted_mq.client.core.errors import TopicNotFound as TopicNotFound
    from twisted_mq.client.core.errors import TopicNotWritable as TopicNotWritable
    from twisted_mq.client.core.message import Message as Message
    from twisted_mq.client.core.request_and_reply import reply_message as reply_message
    from twisted_mq.client.core.requirements import BrokersUnreachable as BrokersUnreachable
    from twisted_mq.client.core.requirements import Require as Require
    from twisted_mq.client.core.requirements import SubscriptionConflict as SubscriptionConflict
    from twisted_mq.client.core.times import Length as Length
    from twisted_mq.client.core.times import Moment as Moment
    from twisted_mq.client.core.typed_topic import BodyIllegal as BodyIllegal
    from twisted_mq.client.core.typed_topic import ProtobufMessage as ProtobufMessage
    from twisted_mq.client.core.typed_topic import PydanticModel as PydanticModel
    from twisted_mq.client.core.typed_topic import Serializer as Serializer
    from twisted_mq.client.core.typed_topic import TypedTopic as TypedTopic
    from twisted_mq.client.core.typed_topic import as_bytes as as_bytes
    from twisted_mq.client.core.typed_topic import as_text as as_text
    from twisted_mq.client.core.typed_topic import json_of as json_of
    from twisted_mq.client.core.typed_topic import protobuf_of as protobuf_of
    from twisted_mq.client.core.typed_topic import pydantic_of as pydantic_of
    from twisted_mq.client.ordered.errors import CoordinatorUnknown as CoordinatorUnknown
    from twisted_mq.client.ordered.errors import CoordinatorUnreachable as CoordinatorUnreachable
    from twisted_mq.client.ordered.errors import NoHead as NoHead
    from twisted_mq.client.ordered.errors import NotLeader as NotLeader
    from twisted_mq.client.ordered.errors import OrderedError as OrderedError
    from twisted_mq.client.ordered.errors import OrderedTopicUnknown as OrderedTopicUnknown
    from twisted_mq.client.ordered.errors import QueueBlocked as QueueBlocked
    from twisted_mq.client.ordered.errors import QueueUnknown as QueueUnknown
    from twisted_mq.client.ordered.errors import SendGivenUp as SendGivenUp
    from twisted_mq.client.ordered.errors import SendTimedOut as SendTimedOut
    from twisted_mq.client.ordered.errors import TooMuchWaits as TooMuchWaits
    from twisted_mq.client.ordered.messages_deleted import MessagesDeleted as MessagesDeleted
    from twisted_mq.client.ordered.ordered_options import OrderedConsumerOptions as OrderedConsumerOptions
    from twisted_mq.client.ordered.ordered_options import OrderedOptions as OrderedOptions
    from twisted_mq.client.ordered.pipeline import Window as Window
    from twisted_mq.client.producing.accumulator import AutoBatch as AutoBatch
    from twisted_mq.client.producing.batch_splitting import BatchIncomplete as BatchIncomplete
    from twisted_mq.client.producing.producer_options import ProducerOptions as ProducerOptions
    from twisted_mq.client.producing.producer_options import SendLimits as SendLimits
    from twisted_mq.client.producing.send_hooks import SendContext as SendContext
    from twisted_mq.client.producing.send_hooks import SendHook as SendHook
    from twisted_mq.client.producing.send_result import SendResult as SendResult
    from twisted_mq.client.producing.send_result import SendStatus as SendStatus
    from twisted_mq.client.producing.transaction_producer import TransactionResult as TransactionResult
    from twisted_mq.client.producing.transaction_producer import TransactionState as TransactionState
    from twisted_mq.coordination.address import CoordinatorAddress as CoordinatorAddress
    from twisted_mq.coordination.settings import CoordinatorSettings as CoordinatorSettings
    from twisted_mq.extras import MissingExtra as MissingExtra
    from twisted_mq.ordering.documents import DocumentFault as DocumentFault
    from twisted_mq.protocol.bodies import MessageQueue as MessageQueue
    from twisted_mq.protocol.messages.compression import CompressionType as CompressionType
    from twisted_mq.protocol.messages.message import MessageExt as MessageExt
    from twisted_mq.protocol.messages.subscription import SubscriptionError as SubscriptionError
    from twisted_mq.routing.allocate_strategies import AllocateStrategy as AllocateStrategy

VALUES = homes(
    {
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
            "ConsumerOptions MessageModel"
        ),
        "twisted_mq.client.consuming.process_queue": "FlowLimits",
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
        "twisted_mq.client.core.request_and_reply": "reply_message",
        "twisted_mq.client.core.requirements": "BrokersUnreachable Require SubscriptionConflict",
        "twisted_mq.client.core.times": "Length Moment",
        "twisted_mq.client.core.typed_topic": (
            "BodyIllegal ProtobufMessage PydanticModel Serializer TypedTopic as_bytes as_text json_of protobuf_of "
            "pydantic_of"
        ),
        "twisted_mq.client.ordered.errors": (
            "CoordinatorUnknown CoordinatorUnreachable NoHead NotLeader OrderedError OrderedTopicUnknown "
            "QueueBlocked QueueUnknown SendGivenUp SendTimedOut TooMuchWaits"
        ),
        "twisted_mq.client.ordered.messages_deleted": "MessagesDeleted",
        "twisted_mq.client.ordered.ordered_options": "OrderedConsumerOptions OrderedOptions",
        "twisted_mq.client.ordered.pipeline": "Window",
        "twisted_mq.client.producing.accumulator": "AutoBatch",
        "twisted_mq.client.producing.batch_splitting": "BatchIncomplete",
        "twisted_mq.client.producing.producer_options": "ProducerOptions SendLimits",
        "twisted_mq.client.producing.send_hooks": "SendContext SendHook",
        "twisted_mq.client.producing.send_result": "SendResult SendStatus",
        "twisted_mq.client.producing.transaction_producer": "TransactionResult TransactionState",
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
"""The module of each name."""
