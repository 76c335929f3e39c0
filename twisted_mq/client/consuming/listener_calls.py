"""Calls a user's listener: prepares its messages and interprets its answer.

Shared by concurrent and orderly consumption. The listener may answer at once or later. An error that it raises, or an
invalid answer, counts as a refusal and is logged.
"""

from __future__ import annotations

import contextvars
import enum
import inspect
import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

import attrs
from twisted.internet import defer, interfaces
from twisted.logger import LogLevel
from twisted.python import failure

from twisted_mq.client.consuming.consume_hooks import CallOutcome, ConsumeCall, ConsumeHooks
from twisted_mq.client.consuming.consumer_options import ConsumeContext, ConsumeOrderlyContext
from twisted_mq.client.consuming.listener_threads import ListenerThreads
from twisted_mq.client.core.client_metrics import ConsumerMetrics
from twisted_mq.client.core.consume_rates import ConsumeRates
from twisted_mq.client.producing.message_trace import TraceDispatcher
from twisted_mq.clocks import time_of_day
from twisted_mq.logs import Logger
from twisted_mq.protocol.messages.message import MessageExt, note
from twisted_mq.protocol.names.namespaces import without_namespace
from twisted_mq.protocol.names.validation import retry_topic
from twisted_mq.protocol.text.properties import PROPERTY_CONSUME_START_TIMESTAMP, PROPERTY_RETRY_TOPIC

Context = TypeVar("Context", ConsumeContext, ConsumeOrderlyContext)
Status = TypeVar("Status", bound=enum.Enum)
Answer = TypeVar("Answer")


@attrs.define(eq=False)
class ListenerCalls(Generic[Context, Status]):
    """Calls of one listener. `refusal` is the answer for failed calls; its class is that of all answers."""

    log = Logger()

    clock: interfaces.IReactorTime
    listener: Callable[[list[MessageExt], Context], Status | Awaitable[Status]]
    group: str
    timeout_seconds: float
    refusal: Status
    traces: TraceDispatcher | None = None
    namespace: str = ""
    """The namespace that is removed from messages' topics."""
    hooks: ConsumeHooks | None = None
    metrics: ConsumerMetrics = attrs.Factory(ConsumerMetrics)
    threads: ListenerThreads | None = None
    """The threads that call the listener; None for the reactor's thread."""
    stopped: bool = False
    rates: ConsumeRates = attrs.Factory(ConsumeRates)
    seconds_of_day: Callable[[], float] = attrs.Factory(lambda calls: time_of_day(calls.clock), takes_self=True)

    def delivered(self, messages: Sequence[MessageExt]) -> list[MessageExt]:
        """Return messages as the listener sees them: those of the retry topic have their original topic."""
        began = {PROPERTY_CONSUME_START_TIMESTAMP: str(int(self.seconds_of_day() * 1000))}
        note(messages, began)
        own_retries = retry_topic(self.group)
        if not self.namespace and own_retries not in {message.topic for message in messages}:
            return [*messages]
        return [self._renamed(message, own_retries) for message in messages]

    def _renamed(self, message: MessageExt, own_retries: str) -> MessageExt:
        topic = message.topic
        if topic == own_retries:
            topic = message.properties.get(PROPERTY_RETRY_TOPIC) or topic
        if self.namespace:
            topic = without_namespace(self.namespace, topic)
        return message if topic == message.topic else attrs.evolve(message, topic=topic)

    @property
    def name(self) -> str:
        """The listener's name, for logs."""
        named = getattr(self.listener, "__qualname__", None) or type(self.listener).__qualname__
        return f"{getattr(self.listener, '__module__', '')}.{named}"

    def begin(self, messages: list[MessageExt], context: Context) -> Status | defer.Deferred[Status]:
        """Return the listener's answer, or a Deferred of it that fails after the consume timeout. Raises what it raises."""
        waiting: defer.Deferred[Status]
        if self.threads is not None:
            run = contextvars.copy_context().run
            answered: defer.Deferred[Status | Awaitable[Status]]
            answered = self.threads.call(lambda: run(self.listener, messages, context))
            waiting = answered.addCallback(self._from_thread)
        else:
            answer = self.listener(messages, context)
            # first, as the other checks are slow when they fail
            if isinstance(answer, type(self.refusal)):
                return answer
            if isinstance(answer, defer.Deferred):
                waiting = answer
            elif inspect.isawaitable(answer):
                waiting = defer.Deferred.fromCoroutine(_awaited(answer))
            else:
                return answer
        if self.timeout_seconds == math.inf:
            return waiting
        return waiting.addTimeout(self.timeout_seconds, self.clock)

    def _from_thread(self, answer: Status | Awaitable[Status]) -> Status | defer.Deferred[Status]:
        if isinstance(answer, type(self.refusal)) or not inspect.isawaitable(answer):
            return answer
        return defer.Deferred.fromCoroutine(_awaited(answer))

    async def call(self, messages: list[MessageExt], context: Context) -> Status:
        """Return the listener's answer. Raises what it raises, and TimeoutError after the consume timeout."""
        result = self.begin(messages, context)
        return await result if isinstance(result, defer.Deferred) else result

    async def close(self, finish_seconds: float) -> None:
        """End the threads and send the traces. No call is open or awaited any more."""
        if self.threads is not None:
            self.threads.stop()
        if self.traces is not None:
            await self.traces.stop(finish_seconds)

    async def status(self, messages: Sequence[MessageExt], context: Context) -> Status:
        """Await `answer`."""
        answer = self.answer(messages, context)
        return await answer if isinstance(answer, defer.Deferred) else answer

    def answer(self, messages: Sequence[MessageExt], context: Context) -> Status | defer.Deferred[Status]:
        """Return the listener's answer, or the refusal if it failed. Fails with CancelledError only if `stopped`."""
        count = len(messages)
        self.metrics.in_flight += count
        topic, began = context.queue.topic, self.clock.seconds()
        try:
            if self.traces is None and self.hooks is None:
                outcome = self._outcome(messages, context)
            else:
                outcome = defer.Deferred.fromCoroutine(self._watched(messages, context))
        except BaseException:
            self.metrics.in_flight -= count
            raise
        if isinstance(outcome, tuple):
            return self._counted(outcome, count, topic, began)
        return outcome.addBoth(self._counted, count, topic, began)

    def _counted(
        self, outcome: tuple[Status, CallOutcome] | failure.Failure, count: int, topic: str, began: float
    ) -> Status:
        metrics = self.metrics
        metrics.in_flight -= count
        if isinstance(outcome, failure.Failure):
            outcome.raiseException()
        seconds = self.clock.seconds() - began
        if outcome[1] is CallOutcome.SUCCESS:
            metrics.consumed += count
            self.rates.called(topic, count, 0, seconds)
        else:
            metrics.failed += count
            self.rates.called(topic, 0, count, seconds)
        return outcome[0]

    async def _watched(self, messages: Sequence[MessageExt], context: Context) -> tuple[Status, CallOutcome]:
        """Call the listener with its traces and hooks."""
        begun = [] if self.traces is None else self.traces.call_began(messages)
        call = ConsumeCall(self.group, context.queue, messages)
        if self.hooks is not None:
            self.hooks.before(call)
        try:
            outcome = self._outcome(messages, context)
            status, call.outcome = outcome if isinstance(outcome, tuple) else await outcome
        finally:
            if self.hooks is not None:
                self.hooks.after(call)
        if self.traces is not None:
            self.traces.call_ended(begun, call.outcome.value)
        return status, call.outcome

    def _outcome(
        self, messages: Sequence[MessageExt], context: Context
    ) -> tuple[Status, CallOutcome] | defer.Deferred[tuple[Status, CallOutcome]]:
        try:
            answer = self.begin(list(messages), context)
        except Exception:
            return self._judged(failure.Failure(), messages, context)
        if not isinstance(answer, type(self.refusal)) and isinstance(answer, defer.Deferred):
            return answer.addBoth(self._judged, messages, context)
        return self._judged(answer, messages, context)

    def _judged(
        self, answer: Status | failure.Failure, messages: Sequence[MessageExt], context: Context
    ) -> tuple[Status, CallOutcome]:
        if isinstance(answer, type(self.refusal)):
            return answer, CallOutcome.FAILED if answer is self.refusal else CallOutcome.SUCCESS
        if isinstance(answer, failure.Failure):
            return self.refusal, self._failed(answer, messages, context)
        self.log.warn(
            "listener {name} returned {status!r}, consumed again later; it must return {answers}: group={group} "
            "messages={ids}",
            name=self.name, status=answer, answers=" or ".join(map(str, type(self.refusal))), group=self.group,
            ids=message_ids(messages),
        )  # fmt: skip
        return self.refusal, CallOutcome.RETURNNULL

    def _failed(self, reason: failure.Failure, messages: Sequence[MessageExt], context: Context) -> CallOutcome:
        """Log how the listener failed. Raises CancelledError if this was stopped."""
        if reason.check(defer.CancelledError):
            if self.stopped:
                reason.raiseException()
            self.log.warn("listener {name} was cancelled: group={group}", name=self.name, group=self.group)
            return CallOutcome.EXCEPTION
        self.log.failure(
            "listener {name} failed, consumed again later: group={group} topic={topic} messages={ids}", reason,
            level=LogLevel.warn, name=self.name, group=self.group, topic=context.queue.topic,
            ids=message_ids(messages),
        )  # fmt: skip
        return CallOutcome.TIME_OUT if reason.check(defer.TimeoutError) else CallOutcome.EXCEPTION


async def _awaited(answer: Awaitable[Answer]) -> Answer:
    return await answer


def message_ids(messages: Sequence[MessageExt]) -> str:
    """Return the messages' ids, for logs."""
    return ", ".join(message.unique_key or message.msg_id for message in messages)
