"""The client library: producers and consumers for any RocketMQ cluster, ours or Apache's. Every call returns a Deferred.

from twisted_mq.client import Message, Producer
"""

from twisted_mq.client.consumer_options import (
    ConsumeContext,
    ConsumeFromWhere,
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
    ConsumerOptions,
    ConsumeStatus,
    MessageModel,
)
from twisted_mq.client.errors import (
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
    SendFailed,
    TopicNotFound,
    TopicNotWritable,
)
from twisted_mq.client.lite_pull_consumer import LitePullConsumer
from twisted_mq.client.message import Message
from twisted_mq.client.mq_client import ClientOptions, MQClient
from twisted_mq.client.process_queue import FlowLimits
from twisted_mq.client.producer import Producer
from twisted_mq.client.push_consumer import PushConsumer
from twisted_mq.client.requests import reply_message
from twisted_mq.client.send_rules import SendLimits, SendResult, SendStatus
from twisted_mq.client.sender import ProducerOptions
from twisted_mq.client.transaction_producer import TransactionProducer, TransactionResult, TransactionState

__all__ = [
    "BrokerError",
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
    "FlowLimits",
    "ForkedProcess",
    "LitePullConsumer",
    "MQClient",
    "Message",
    "MessageIllegal",
    "MessageModel",
    "NameServerUnreachable",
    "NoRoute",
    "Producer",
    "ProducerOptions",
    "PushConsumer",
    "RemotingError",
    "RequestTimeout",
    "SendFailed",
    "SendLimits",
    "SendResult",
    "SendStatus",
    "TopicNotFound",
    "TopicNotWritable",
    "TransactionProducer",
    "TransactionResult",
    "TransactionState",
    "reply_message",
]
