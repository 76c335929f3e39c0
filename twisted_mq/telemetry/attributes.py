"""Attributes of spans and metrics about messages, by the names of OpenTelemetry's semantic conventions for messaging."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.messages.message import Message, MessageExt

Attributes: TypeAlias = dict[str, str | int | Sequence[str]]

SEND, PROCESS = "send", "process"


def operation(name: str, topic: str, error: str | None = None) -> Attributes:
    """Return the attributes of spans and metrics of an operation: SEND or PROCESS, where to or from, and what went wrong."""
    said: Attributes = {
        "messaging.system": "rocketmq",
        "messaging.operation.name": name,
        "messaging.operation.type": name,
        "messaging.destination.name": topic,
    }
    if error is not None:
        said["error.type"] = error
    return said


def of_messages(messages: Sequence[Message] | Sequence[MessageExt]) -> Attributes:
    """Return the attributes that only spans have: of one message its tag, keys, delay, size; of several their number."""
    if len(messages) != 1:
        return {"messaging.batch.message_count": len(messages)}
    (message,) = messages
    said: Attributes = {"messaging.message.body.size": len(message.body)}
    if message.tags:
        said["messaging.rocketmq.message.tag"] = message.tags
    if message.keys:
        said["messaging.rocketmq.message.keys"] = message.keys
    if isinstance(message, Message) and message.delay_time_level:
        said["messaging.rocketmq.message.delay_time_level"] = message.delay_time_level
    return said


def of_queue(queue: MessageQueue) -> Attributes:
    """Return the queue, as a partition of the topic."""
    return {"messaging.destination.partition.id": f"{queue.broker_name}:{queue.queue_id}"}
