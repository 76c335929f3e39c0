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
import functools
import os
import random
from collections.abc import Awaitable, Callable, Sequence

from twisted.internet import defer, interfaces

from twisted_mq.client.consuming.assignment import BrokerAssignment
from twisted_mq.client.consuming.consume_hooks import ConsumeHooks
from twisted_mq.client.consuming.consume_service import ConsumeService
from twisted_mq.client.consuming.consumer import Consumer
from twisted_mq.client.consuming.consumer_options import (
    ConsumeContext,
    ConsumeOrderlyStatus,
    ConsumerOptions,
    ConsumeStatus,
    Listener,
    OrderlyListener,
)
from twisted_mq.client.consuming.listener_calls import Context, ListenerCalls, Status
from twisted_mq.client.consuming.listener_threads import ListenerThreads
from twisted_mq.client.consuming.orderly_service import OrderlyConsumeService
from twisted_mq.client.consuming.pop_answers import PopAnswers
from twisted_mq.client.consuming.pop_service import PopConsumeService
from twisted_mq.client.consuming.queue_locks import RENEW_SECONDS, QueueLocks
from twisted_mq.client.consuming.queue_pop import QueuePop
from twisted_mq.client.consuming.rebalance import Popping, Rebalance
from twisted_mq.client.consuming.send_back import SendBack
from twisted_mq.client.core.argument_checks import Topics, check_function
from twisted_mq.client.core.client_options import ClientOptions
from twisted_mq.client.core.errors import ClientStateError
from twisted_mq.client.core.mq_client import MQClient
from twisted_mq.client.core.together import together
from twisted_mq.client.producing.message_trace import TraceDispatcher
from twisted_mq.periodic import PeriodicJob
from twisted_mq.protocol.bodies import ConsumeMessageDirectlyResult, MessageQueue
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.protocol.messages.subscription import SUB_ALL, build_subscription
from twisted_mq.protocol.names.namespaces import without_namespace
from twisted_mq.protocol.names.validation import retry_topic
from twisted_mq.remoting.client import Connect

_DIRECT_RESULTS: dict[enum.Enum, str] = {
    ConsumeStatus.CONSUME_SUCCESS: "CR_SUCCESS",
    ConsumeStatus.RECONSUME_LATER: "CR_LATER",
    ConsumeOrderlyStatus.SUCCESS: "CR_SUCCESS",
    ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT: "CR_LATER",
}

LISTENER_EXAMPLE = "def listener(messages, context), which returns ConsumeStatus.CONSUME_SUCCESS"


class PushConsumer(Consumer):
    """A consumer whose listener is called with messages as they come."""

    consume_service: ConsumeService | OrderlyConsumeService

    def __init__(
        self,
        reactor: interfaces.IReactorTime,
        group: str,
        namesrv: str | Sequence[str] | None = None,
        *,
        listener: Listener | None = None,
        topics: Topics | None = None,
        client: MQClient | None = None,
        options: ConsumerOptions | None = None,
        client_options: ClientOptions | None = None,
        namespace: str = "",
        instance_name: str | None = None,
        ip: str | None = None,
        connect: Connect | None = None,
        rng: random.Random | None = None,
        get_pid: Callable[[], int] = os.getpid,
    ) -> None:
        """Create a consumer, as Consumer, with the listener that `listen` would set."""
        super().__init__(
            reactor, group, namesrv, topics=topics, client=client, options=options, client_options=client_options,
            namespace=namespace, instance_name=instance_name, ip=ip, connect=connect, rng=rng, get_pid=get_pid,
        )  # fmt: skip
        if listener is not None:
            check_function(listener, "listener", LISTENER_EXAMPLE)
        self._listener = listener
        self._orderly_listener: OrderlyListener | None = None
        self._traces: TraceDispatcher | None = None
        self._pop_service: PopConsumeService | None = None
        self._locks: QueueLocks | None = None
        self._renewal: PeriodicJob | None = None

    def listen(self, listener: Listener) -> None:
        """Set the listener: (list of messages, context) -> ConsumeStatus, or a Deferred or coroutine of it."""
        self._check_created()
        check_function(listener, "listener", LISTENER_EXAMPLE)
        self._listener, self._orderly_listener, self.orderly = listener, None, False

    def listen_orderly(self, listener: OrderlyListener) -> None:
        """Set a listener, as `listen`, that gets each queue's messages one call after the other.

        Only one member of the group consumes a queue. The listener answers ConsumeOrderlyStatus. Messages that it refuses are
        repeated, and block their queue meanwhile.
        """
        self._check_created()
        check_function(listener, "listener", LISTENER_EXAMPLE)
        self._listener, self._orderly_listener, self.orderly = None, listener, True

    def _check_created(self) -> None:
        if self._state != "CREATED":
            raise ClientStateError(f"consumer {self.group}: set the listener before start()")

    def _check_ready(self) -> None:
        if self._listener is None and self._orderly_listener is None:
            raise ClientStateError(f"consumer {self.group} has no listener; call listen() before start()")
        super()._check_ready()

    def _assemble(self) -> None:
        if not self._broadcasting:
            topic = retry_topic(self.group)
            self.subscriptions.setdefault(topic, build_subscription(topic, SUB_ALL, sub_version=self.client.now_ms()))
        tries = self.options.most_tries(orderly=self.orderly)
        self._send_back = SendBack(self.client, self.group, tries, self.namespace)
        if self.options.message_trace:
            group = without_namespace(self.namespace, self.group)
            self._traces = TraceDispatcher(self.client, group, self.options.trace_topic, "CONSUME")
        super()._assemble()

    def _assemble_rebalance(self) -> Rebalance:
        if self._orderly_listener is not None:
            return self._consume_orderly(self._orderly_listener)
        assert self._listener is not None  # checked by _check_ready
        calls = self._calls(self._listener, ConsumeStatus.RECONSUME_LATER)
        self.consume_service = ConsumeService(calls, self.options, self.offsets, self._send_back.give_back)
        return Rebalance(
            self.client, self.group, self.options, self.offsets, self.subscriptions, self._make_pull,
            popping=self._popping(calls), queues_changed=self._queues_changed,
        )  # fmt: skip

    def _popping(self, calls: ListenerCalls[ConsumeContext, ConsumeStatus]) -> Popping | None:
        """Return the popping if the broker divides the queues, for those that it assigns to be popped."""
        if self.options.client_rebalance or self._broadcasting:
            return None
        tries = self.options.most_tries(orderly=False)
        answers = PopAnswers(self.client, self.group, tries, self._send_back.give_back, self.namespace)
        service = self._pop_service = PopConsumeService(calls, self.options, answers)
        assignment = BrokerAssignment(self.client, self.group)
        return Popping(assignment, functools.partial(QueuePop, self, service, answers))

    def _consume_orderly(self, listener: OrderlyListener) -> Rebalance:
        locks = None if self._broadcasting else QueueLocks(self.client, self.group, self._held)
        self._locks = locks
        calls = self._calls(listener, ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT)
        service = OrderlyConsumeService(calls, self.options, self.offsets, self._send_back.give_back, locks)
        self.consume_service = service
        return Rebalance(
            self.client, self.group, self.options, self.offsets, self.subscriptions, self._make_pull,
            locks=locks, finished=service.finished, queues_changed=self._queues_changed,
        )  # fmt: skip

    def _calls(
        self, listener: Callable[[list[MessageExt], Context], Status | Awaitable[Status]], refusal: Status
    ) -> ListenerCalls[Context, Status]:
        options = self.options
        hooks = ConsumeHooks(options.hooks) if options.hooks else None
        threads = None
        if options.blocking_listener:
            threads = ListenerThreads(self._clock, options.concurrency, f"listener of {self.group}")
        return ListenerCalls(
            self._clock,
            listener,
            self.group,
            options.consume_timeout_seconds,
            refusal,
            self._traces,
            self.namespace,
            hooks,
            self.metrics,
            threads,
            rates=self.rates,
        )

    def _running(self) -> None:
        super()._running()
        if self._traces is not None:
            self._traces.start()
        locks = self._locks
        if locks is not None:
            name = f"renewal of the locks of {self.group}"
            self._renewal = PeriodicJob(
                name, self._clock, RENEW_SECONDS, lambda: defer.Deferred.fromCoroutine(locks.renew())
            )

    async def _stop_consuming(self, finish_seconds: float) -> None:
        services = [self.consume_service, *([] if self._pop_service is None else [self._pop_service])]
        await together(service.stop(finish_seconds) for service in services)

    async def _stop(self, finish_seconds: float) -> None:
        if self._renewal is not None:
            self._renewal.stop()
        await super()._stop(finish_seconds)

    async def consume_directly(self, message: MessageExt, broker_name: str | None) -> ConsumeMessageDirectlyResult:
        began = self.client.now_ms()
        queue = MessageQueue(message.topic, broker_name or "", message.queue_id)
        result, remark = "CR_RETURN_NULL", None
        try:
            status = await self.consume_service.consume_directly(message, queue)
            result = _DIRECT_RESULTS.get(status, result) if isinstance(status, enum.Enum) else result
        except Exception as error:  # the error of the listener, for the administrator to read
            result, remark = "CR_THROW_EXCEPTION", f"{type(error).__name__}: {error}"
        return ConsumeMessageDirectlyResult(
            order=self.orderly, consume_result=result, remark=remark, spent_time_mills=self.client.now_ms() - began
        )
