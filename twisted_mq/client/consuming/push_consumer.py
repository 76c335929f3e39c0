"""Consumes messages in a group: queues are shared among its members, messages come to a listener.

async def on_messages(messages, context):
    ...
    return ConsumeStatus.CONSUME_SUCCESS

consumer = PushConsumer(reactor, group="g", namesrv="127.0.0.1:9876")
consumer.subscribe("T", "A || B")
consumer.listen(on_messages)
await consumer.start()
await consumer.stop()
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

from twisted.internet import defer, task

from twisted_mq.client.consuming.consume_service import ConsumeService
from twisted_mq.client.consuming.consumer import Consumer
from twisted_mq.client.consuming.consumer_options import (
    ConsumeContext,
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
    ConsumeStatus,
    Listener,
    OrderlyListener,
)
from twisted_mq.client.consuming.orderly_service import OrderlyConsumeService
from twisted_mq.client.consuming.process_queue import ProcessQueue
from twisted_mq.client.consuming.queue_locks import RENEW_SECONDS, QueueLocks
from twisted_mq.client.consuming.send_back import SendBack
from twisted_mq.client.core.errors import ClientStateError
from twisted_mq.client.producing.message_trace import TraceDispatcher
from twisted_mq.protocol.bodies import ConsumeMessageDirectlyResult, MessageQueue
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.protocol.messages.subscription import SUB_ALL, build_subscription
from twisted_mq.protocol.names.namespaces import without_namespace
from twisted_mq.protocol.names.validation import retry_topic

_DIRECT_RESULTS: dict[enum.Enum, str] = {
    ConsumeStatus.CONSUME_SUCCESS: "CR_SUCCESS",
    ConsumeStatus.RECONSUME_LATER: "CR_LATER",
    ConsumeOrderlyStatus.SUCCESS: "CR_SUCCESS",
    ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT: "CR_LATER",
}


class PushConsumer(Consumer):
    """A consumer whose listener is called with messages as they come."""

    def __init__(
        self,
        reactor: Any,
        group: str,
        namesrv: str | Sequence[str] | None = None,
        *,
        listener: Listener | None = None,
        **more: Any,
    ) -> None:
        """Further arguments are those of Consumer."""
        super().__init__(reactor, group, namesrv, **more)
        self._listener: Any = listener

    def listen(self, listener: Listener) -> None:
        """Who gets the messages: (list of messages, context) -> ConsumeStatus or a Deferred or coroutine of it."""
        self._set_listener(listener, orderly=False)

    def listen_orderly(self, listener: OrderlyListener) -> None:
        """As `listen`, with each queue's messages one call after the other, and by one member of the group only.

        The listener answers ConsumeOrderlyStatus. What it refuses is repeated, and holds its queue back meanwhile.
        """
        self._set_listener(listener, orderly=True)

    def _set_listener(self, listener: Any, *, orderly: bool) -> None:
        if self._state != "CREATED":
            raise ClientStateError(f"consumer {self.group}: the listener is set before start")
        self._listener, self.orderly = listener, orderly

    def _check_ready(self) -> None:
        if self._listener is None:
            raise ClientStateError(f"consumer {self.group} has no listener; call listen() before start()")
        super()._check_ready()

    def _assemble(self) -> None:
        if not self._broadcasting:
            topic = retry_topic(self.group)
            self.subscriptions.setdefault(topic, build_subscription(topic, SUB_ALL, sub_version=self.client.now_ms()))
        super()._assemble()
        tries = self.options.most_tries(orderly=self.orderly)
        self._send_back = SendBack(self.client, self.group, tries, self.namespace)
        locks = QueueLocks(self.client, self.group, self._held)
        self._renewal = task.LoopingCall(lambda: defer.Deferred.fromCoroutine(locks.renew()))
        self._renewal.clock = self._clock
        common = (self._clock, self._listener, self.group, self.options, self.offsets, self._send_back.give_back)
        if self.orderly:
            orderly = OrderlyConsumeService(*common, locks)
            self._rebalance.finished = orderly.finished
            self._rebalance.locks = None if self._broadcasting else locks
            self.consume_service: ConsumeService | OrderlyConsumeService = orderly
        else:
            self.consume_service = ConsumeService(*common)
        self.consume_service.calls.namespace = self.namespace
        if self.options.message_trace:
            group = without_namespace(self.namespace, self.group)
            traces = TraceDispatcher(self.client, group, self.options.trace_topic, "CONSUME")
            self.consume_service.calls.traces = traces

    def _held(self) -> dict[MessageQueue, ProcessQueue]:
        return {queue: pull.process_queue for queue, pull in self._rebalance.pulls.items()}

    def _running(self) -> None:
        if self.consume_service.calls.traces is not None:
            self.consume_service.calls.traces.start()
        if self._rebalance.locks is not None:
            self._renewal.start(RENEW_SECONDS, now=False)

    async def _stop(self, finish_seconds: float) -> None:
        if self._state == "RUNNING" and self._renewal.running:
            self._renewal.stop()
        await super()._stop(finish_seconds)

    async def consume_directly(self, message: MessageExt, broker_name: str | None) -> ConsumeMessageDirectlyResult:
        began = self.client.now_ms()
        queue = MessageQueue(message.topic, broker_name or "", message.queue_id)
        result, remark = "CR_RETURN_NULL", None
        try:
            context = ConsumeOrderlyContext(queue) if self.orderly else ConsumeContext(queue)
            status = await self.consume_service.calls.call([message], context)
            result = _DIRECT_RESULTS.get(status, result) if isinstance(status, enum.Enum) else result
        except Exception as error:  # the listener's own, for the administrator to read
            result, remark = "CR_THROW_EXCEPTION", f"{type(error).__name__}: {error}"
        return ConsumeMessageDirectlyResult(
            order=self.orderly, consume_result=result, remark=remark, spent_time_mills=self.client.now_ms() - began
        )
