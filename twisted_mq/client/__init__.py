"""The client library: producers and consumers for any RocketMQ cluster, ours or Apache's. Every call returns a Deferred.

from twisted_mq.client import Message, Producer
"""

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
from twisted_mq.client.core.message import Message
from twisted_mq.client.core.mq_client import MQClient
from twisted_mq.client.core.request_and_reply import reply_message
from twisted_mq.client.producing.message_checks import SendLimits
from twisted_mq.client.producing.producer import Producer
from twisted_mq.client.producing.producer_options import ProducerOptions
from twisted_mq.client.producing.send_result import SendResult, SendStatus
from twisted_mq.client.producing.transaction_producer import TransactionProducer, TransactionResult, TransactionState

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
