"""Gathers single sends of one moment into batches (Apache: ProduceAccumulator)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import attrs
from twisted.internet import defer, interfaces
from twisted.python import failure

from twisted_mq.client.core.option_checks import number
from twisted_mq.client.producing.send_result import SendResult
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.messages.message import Message
from twisted_mq.protocol.names.system_topics import RETRY_PREFIX
from twisted_mq.protocol.text.properties import (
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_PRODUCER_GROUP,
    PROPERTY_TIMER_DELAY_MS,
    PROPERTY_TIMER_DELAY_SEC,
    PROPERTY_TIMER_DELIVER_MS,
)

_SINGLE = frozenset(
    {
        PROPERTY_DELAY_TIME_LEVEL,
        PROPERTY_TIMER_DELAY_MS,
        PROPERTY_TIMER_DELAY_SEC,
        PROPERTY_TIMER_DELIVER_MS,
        PROPERTY_PRODUCER_GROUP,
    }
)
"""Messages with one of these properties go alone."""

Key: TypeAlias = tuple[str, MessageQueue | None, bool, str | None]
"""Topic, queue, WAIT and tags, which all messages of a batch share."""

SendBatch = Callable[[list[Message], MessageQueue | None], defer.Deferred[SendResult]]


@attrs.frozen
class AutoBatch:
    """When gathered messages leave. Defaults are Apache's."""

    max_delay_seconds: float = attrs.field(default=0.01, validator=number(0.001, 30))
    """batchMaxDelayMs"""
    max_bytes: int = attrs.field(default=32 * 1024, validator=number(1, 2 * 1024 * 1024))
    """batchMaxBytes: bodies of one batch; a larger body is sent alone."""
    max_held_bytes: int = attrs.field(default=32 * 1024 * 1024, validator=number(1))
    """totalBatchMaxBytes: bodies gathered or in flight as batches; further messages are sent alone."""


@attrs.define(eq=False)
class _Gathered:
    timer: interfaces.IDelayedCall
    size: int = 0
    messages: list[Message] = attrs.Factory(list)
    waiting: list[defer.Deferred[SendResult]] = attrs.Factory(list)


class Accumulator:
    """Sends messages of one key that come within `max_delay_seconds` in one request. Each gets its own result."""

    def __init__(self, clock: interfaces.IReactorTime, options: AutoBatch, send: SendBatch) -> None:
        self._clock = clock
        self._options = options
        self._send = send
        self._gathered: dict[Key, _Gathered] = {}
        self._held_bytes = 0

    def takes(self, message: Message) -> bool:
        """Return whether the message may be sent with others."""
        size = len(message.body)
        return (
            size < self._options.max_bytes
            and self._held_bytes + size <= self._options.max_held_bytes
            and not message.topic.startswith(RETRY_PREFIX)
            and _SINGLE.isdisjoint(message.properties)
        )

    def add(self, message: Message, queue: MessageQueue | None) -> defer.Deferred[SendResult]:
        """Send the message with others. Fails as the batch does."""
        key = message.topic, queue, message.wait_store_message_ok, message.tags
        size = len(message.body)
        gathered = self._gathered.get(key)
        if gathered is not None and gathered.size + size > self._options.max_bytes:
            self._leave(key)
            gathered = None
        if gathered is None:
            timer = self._clock.callLater(self._options.max_delay_seconds, self._leave, key)
            gathered = self._gathered[key] = _Gathered(timer)
        waiting: defer.Deferred[SendResult] = defer.Deferred()
        gathered.size += size
        self._held_bytes += size
        gathered.messages.append(Message(message.topic, message.body, message.flag, dict(message.properties)))
        gathered.waiting.append(waiting)
        return waiting

    def flush(self) -> None:
        """Send everything that was gathered now."""
        for key in list(self._gathered):
            self._leave(key)

    def _leave(self, key: Key) -> None:
        gathered = self._gathered.pop(key)
        if gathered.timer.active():
            gathered.timer.cancel()
        sent = self._send(gathered.messages, key[1])
        sent.addBoth(self._sent, gathered)

    def _sent(self, result: SendResult | failure.Failure, gathered: _Gathered) -> None:
        self._held_bytes -= gathered.size
        if isinstance(result, failure.Failure):
            for waiting in gathered.waiting:
                if not waiting.called:
                    waiting.errback(result)
            return
        for waiting, one in zip(gathered.waiting, split_result(result, len(gathered.messages)), strict=True):
            if not waiting.called:  # else its caller cancelled it
                waiting.callback(one)


def split_result(result: SendResult, count: int) -> list[SendResult]:
    """Return the result of each message of a batch; the batch's for all if the broker keeps it as one record."""
    keys, places = result.msg_id.split(","), result.offset_msg_id.split(",")
    if len(keys) != count or len(places) != count:
        return [result] * count
    return [
        attrs.evolve(result, msg_id=key, offset_msg_id=place, queue_offset=result.queue_offset + index)
        for index, (key, place) in enumerate(zip(keys, places, strict=True))
    ]
