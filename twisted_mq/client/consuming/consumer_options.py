"""Options of a push consumer (Apache: DefaultMQPushConsumer), and their types."""

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
    """The start position of a group without a committed offset; the names are Apache's."""

    LAST_OFFSET = "CONSUME_FROM_LAST_OFFSET"
    FIRST_OFFSET = "CONSUME_FROM_FIRST_OFFSET"
    TIMESTAMP = "CONSUME_FROM_TIMESTAMP"


class MessageModel(enum.Enum):
    """The delivery to a group: its members share the messages (CLUSTERING), or each gets all of them (BROADCASTING)."""

    CLUSTERING = "CLUSTERING"
    BROADCASTING = "BROADCASTING"


class ConsumeStatus(enum.Enum):
    """A listener's answer (Apache: ConsumeConcurrentlyStatus)."""

    CONSUME_SUCCESS = "CONSUME_SUCCESS"
    RECONSUME_LATER = "RECONSUME_LATER"


class ConsumeOrderlyStatus(enum.Enum):
    """The answer of a listener that consumes each queue in order (Apache: ConsumeOrderlyStatus)."""

    SUCCESS = "SUCCESS"
    SUSPEND_CURRENT_QUEUE_A_MOMENT = "SUSPEND_CURRENT_QUEUE_A_MOMENT"


@attrs.define
class ConsumeContext:
    """The context of a listener call, which the listener may change (Apache: ConsumeConcurrentlyContext)."""

    queue: MessageQueue
    delay_level_when_next_consume: int = 0
    """For RECONSUME_LATER: 0 lets the broker wait longer with each try, -1 makes the message a dead letter at once."""
    ack_index: int | None = None
    """For CONSUME_SUCCESS of several messages: the index of the last one that succeeded; None for all."""


@attrs.define
class ConsumeOrderlyContext:
    """The context of a listener that consumes in order (Apache: ConsumeOrderlyContext)."""

    queue: MessageQueue
    suspend_current_queue_seconds: float | None = None
    """For SUSPEND_CURRENT_QUEUE_A_MOMENT: the pause, from 0.01 to 30 s; None for the consumer's option."""


Listener = Callable[[list[MessageExt], ConsumeContext], ConsumeStatus | Awaitable[ConsumeStatus]]
"""A plain function, an `async def`, or a function that returns a Deferred.

It runs on the reactor's thread and must not block there, unless ConsumerOptions(blocking_listener=True) has it called in
threads.
"""

OrderlyListener = Callable[
    [list[MessageExt], ConsumeOrderlyContext], ConsumeOrderlyStatus | Awaitable[ConsumeOrderlyStatus]
]
"""The same as Listener, for consuming in order."""

TRIES = 16
"""Tries of a group without a limit of its own, before a message becomes a dead letter."""


@attrs.frozen(kw_only=True)
class ConsumerOptions:
    """Options of a consumer. Defaults are Apache's. Times are in seconds."""

    message_model: MessageModel = attrs.field(default=MessageModel.CLUSTERING, validator=kind(MessageModel))
    consume_from_where: ConsumeFromWhere = attrs.field(
        default=ConsumeFromWhere.LAST_OFFSET, validator=kind(ConsumeFromWhere)
    )
    consume_timestamp: Moment | None = attrs.field(default=None, validator=attrs.validators.optional(moment))
    """For ConsumeFromWhere.TIMESTAMP: a datetime, or float seconds since 1970; None for half an hour before the start."""
    consume_message_batch_max_size: int = attrs.field(default=1, validator=number(1, 1024))
    """The most messages that a listener call gets."""
    concurrency: int = attrs.field(default=20, validator=number(1, 1000))
    """Listener calls that may be open at the same time (consumeThreadMax)."""
    blocking_listener: bool = attrs.field(default=False, validator=kind(bool))
    """The listener blocks: call it in threads of its own, at most `concurrency` of them."""
    consume_timeout_seconds: float = attrs.field(default=15 * 60, validator=number(0))
    """A listener's Deferred that has not fired by then is cancelled, and its messages are consumed later. math.inf: never."""
    max_reconsume_times: int = attrs.field(default=-1, validator=number(-1))
    """Tries before a message becomes a dead letter. -1: 16, or no limit if queues are consumed in order."""
    suspend_queue_seconds: float = attrs.field(default=1.0, validator=number(0.01, 30))
    """In order: the pause of a queue after its messages were refused (suspendCurrentQueueTimeMillis)."""
    pull_batch_size: int = attrs.field(default=32, validator=number(1, 1024))
    pull_batch_size_bytes: int = attrs.field(default=256 * 1024, validator=number(1))
    max_messages_per_second: float | None = attrs.field(
        default=None, validator=attrs.validators.optional(number(0.001))
    )
    """The limit of one consumer over all its queues; it pulls no more messages. None for no limit."""
    flow_limits: FlowLimits = attrs.field(factory=FlowLimits, validator=kind(FlowLimits))
    rebalance_seconds: float = attrs.field(default=20, validator=number(0.01))
    allocate: AllocateStrategy = attrs.field(default=allocate_averagely, validator=function)
    """Divides the queues among the group's members; twisted_mq.routing has Apache's strategies."""
    client_rebalance: bool = attrs.field(default=True, validator=kind(bool))
    """clientRebalance. If False, the broker divides the queues, and says which are popped (mqadmin setConsumeMode).

    Popped messages are not tied to a queue's owner: many members share a queue, and each message is acknowledged by itself.
    Not for broadcasting or consuming in order.
    """
    pop_invisible_seconds: float = attrs.field(default=60.0, validator=number(5, 300))
    """popInvisibleTime: a popped message that is not acknowledged within this time comes again."""
    pop_batch_size: int = attrs.field(default=32, validator=number(1, 32))
    """popBatchNums"""
    pop_threshold: int = attrs.field(default=96, validator=number(1, 1000))
    """popThresholdForQueue: popped messages without an answer above which nothing more is popped."""
    message_trace: bool = attrs.field(default=False, validator=kind(bool))
    """enableTrace: send a record of each listener call to the brokers' trace topic."""
    trace_topic: str = attrs.field(default=TRACE_TOPIC, validator=kind(str))
    hooks: Sequence[ConsumeHook] = attrs.field(default=(), validator=hooks)
    """Hooks that are called before and after each listener call (registerConsumeMessageHook)."""
    offset_directory: Path = attrs.field(factory=lambda: Path.home() / ".rocketmq_offsets", converter=Path)
    """Broadcasting only: the directory of the offset files (rocketmq.client.localOffsetStoreDir)."""

    def most_tries(self, *, orderly: bool) -> int:
        """Return the limit that `max_reconsume_times` means."""
        if self.max_reconsume_times != -1:
            return self.max_reconsume_times
        return sys.maxsize if orderly else TRIES
