"""Settings of a push consumer (Apache: DefaultMQPushConsumer), and the words they use."""

from __future__ import annotations

import enum
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import attrs

from twisted_mq.client.consuming.consume_hooks import ConsumeHook
from twisted_mq.client.consuming.process_queue import FlowLimits
from twisted_mq.client.core.option_checks import function, hooks, kind, moment, number
from twisted_mq.client.core.times import Moment
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.protocol.messages.trace import TRACE_TOPIC
from twisted_mq.routing.allocate_strategies import AllocateStrategy, allocate_averagely


class ConsumeFromWhere(enum.Enum):
    """Where a group without a committed offset begins; the names are Apache's."""

    LAST_OFFSET = "CONSUME_FROM_LAST_OFFSET"
    FIRST_OFFSET = "CONSUME_FROM_FIRST_OFFSET"
    TIMESTAMP = "CONSUME_FROM_TIMESTAMP"


class MessageModel(enum.Enum):
    """Whether the members of a group share the messages or each get all of them."""

    CLUSTERING = "CLUSTERING"
    BROADCASTING = "BROADCASTING"


class ConsumeStatus(enum.Enum):
    """What a listener answers (Apache: ConsumeConcurrentlyStatus)."""

    CONSUME_SUCCESS = "CONSUME_SUCCESS"
    RECONSUME_LATER = "RECONSUME_LATER"


class ConsumeOrderlyStatus(enum.Enum):
    """What a listener answers that consumes each queue in order (Apache: ConsumeOrderlyStatus)."""

    SUCCESS = "SUCCESS"
    SUSPEND_CURRENT_QUEUE_A_MOMENT = "SUSPEND_CURRENT_QUEUE_A_MOMENT"


@attrs.define
class ConsumeContext:
    """Handed to the listener with its messages, which may change it (Apache: ConsumeConcurrentlyContext)."""

    queue: MessageQueue
    delay_level_when_next_consume: int = 0
    """For RECONSUME_LATER: 0 lets the broker wait longer with each try, -1 makes the message a dead letter at once."""
    ack_index: int | None = None
    """For CONSUME_SUCCESS of several messages: index of the last one that succeeded; None for all."""


@attrs.define
class ConsumeOrderlyContext:
    """As ConsumeContext, for a listener that consumes in order (Apache: ConsumeOrderlyContext)."""

    queue: MessageQueue
    suspend_current_queue_seconds: float | None = None
    """For SUSPEND_CURRENT_QUEUE_A_MOMENT: how long, from 0.01 to 30; None for the consumer's option."""


Listener = Callable[[list[MessageExt], ConsumeContext], ConsumeStatus | Awaitable[ConsumeStatus]]
"""A plain function, an `async def`, or one that returns a Deferred. It runs on the reactor's thread and must not block
there, unless ConsumerOptions(blocking_listener=True) has it called in threads."""

OrderlyListener = Callable[
    [list[MessageExt], ConsumeOrderlyContext], ConsumeOrderlyStatus | Awaitable[ConsumeOrderlyStatus]
]
"""The same for consuming in order."""

TRIES = 16
"""Tries of a group that names no limit, before a message becomes a dead letter."""


@attrs.frozen(kw_only=True)
class ConsumerOptions:
    """Defaults are Apache's. Times in seconds."""

    message_model: MessageModel = attrs.field(default=MessageModel.CLUSTERING, validator=kind(MessageModel))
    consume_from_where: ConsumeFromWhere = attrs.field(
        default=ConsumeFromWhere.LAST_OFFSET, validator=kind(ConsumeFromWhere)
    )
    consume_timestamp: Moment | None = attrs.field(default=None, validator=attrs.validators.optional(moment))
    """For ConsumeFromWhere.TIMESTAMP: a datetime, or float seconds since 1970; None for half an hour before the start."""
    consume_message_batch_max_size: int = attrs.field(default=1, validator=number(1, 1024))
    """Messages a listener call gets at most."""
    concurrency: int = attrs.field(default=20, validator=number(1, 1000))
    """Listener calls that may be open at the same time (consumeThreadMax)."""
    blocking_listener: bool = attrs.field(default=False, validator=kind(bool))
    """The listener blocks: it is called in threads of its own, of which there are at most `concurrency`."""
    consume_timeout_seconds: float = attrs.field(default=15 * 60, validator=number(0))
    """A listener's Deferred that has not fired by then is cancelled and its messages are consumed later. math.inf: never."""
    max_reconsume_times: int = attrs.field(default=-1, validator=number(-1))
    """Tries before a message becomes a dead letter; -1 for 16, and for no end where queues are consumed in order."""
    suspend_queue_seconds: float = attrs.field(default=1.0, validator=number(0.01, 30))
    """In order: how long a queue rests after its messages were refused (suspendCurrentQueueTimeMillis)."""
    pull_batch_size: int = attrs.field(default=32, validator=number(1, 1024))
    pull_batch_size_bytes: int = attrs.field(default=256 * 1024, validator=number(1))
    max_messages_per_second: float | None = attrs.field(
        default=None, validator=attrs.validators.optional(number(0.001))
    )
    """Messages of all queues together, for each consumer: no more are pulled. None for no limit."""
    flow_limits: FlowLimits = attrs.field(factory=FlowLimits, validator=kind(FlowLimits))
    rebalance_seconds: float = attrs.field(default=20, validator=number(0.01))
    allocate: AllocateStrategy = attrs.field(default=allocate_averagely, validator=function)
    """Who of the group gets which queues; twisted_mq.routing has Apache's strategies."""
    client_rebalance: bool = attrs.field(default=True, validator=kind(bool))
    """clientRebalance: without it the broker divides the queues, and says which are popped (mqadmin setConsumeMode).

    What is popped is no queue's own: many members share a queue, and each message is acknowledged by itself. Not for
    broadcasting, nor in order."""
    pop_invisible_seconds: float = attrs.field(default=60.0, validator=number(5, 300))
    """popInvisibleTime: how long a popped message is ours alone; consumed for longer it comes again."""
    pop_batch_size: int = attrs.field(default=32, validator=number(1, 32))
    """popBatchNums"""
    pop_threshold: int = attrs.field(default=96, validator=number(1, 1000))
    """popThresholdForQueue: messages popped and not answered for, past which nothing more is popped."""
    message_trace: bool = attrs.field(default=False, validator=kind(bool))
    """enableTrace: tell the brokers' trace topic of each listener call."""
    trace_topic: str = attrs.field(default=TRACE_TOPIC, validator=kind(str))
    hooks: Sequence[ConsumeHook] = attrs.field(default=(), validator=hooks)
    """Told of each listener call, before and after it (registerConsumeMessageHook)."""
    offset_directory: Path = attrs.field(factory=lambda: Path.home() / ".rocketmq_offsets", converter=Path)
    """Broadcasting only: where the offset files lie (rocketmq.client.localOffsetStoreDir)."""

    def most_tries(self, *, orderly: bool) -> int:
        """The limit that `max_reconsume_times` stands for."""
        if self.max_reconsume_times != -1:
            return self.max_reconsume_times
        return sys.maxsize if orderly else TRIES
