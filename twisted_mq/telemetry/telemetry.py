"""Spans and metrics of what producers send and consumers process, by OpenTelemetry's API alone.

telemetry = Telemetry()
options = ProducerOptions(hooks=(telemetry.sends,))
options = ConsumerOptions(hooks=(telemetry.calls,))
telemetry.watch(producer, consumer)

The trace's context travels as user properties of the message (`traceparent`), where OpenTelemetry's Java instrumentation of
RocketMQ puts it and looks for it, so traces go on through clients of both languages.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version
from typing import Protocol, TypeAlias, runtime_checkable

from opentelemetry import context as contexts
from opentelemetry import metrics, propagate, trace
from opentelemetry.metrics import CallbackOptions, Observation

from twisted_mq.client.consuming.consume_hooks import ConsumeCall
from twisted_mq.client.core.client_metrics import ConsumerMetrics, ProducerMetrics
from twisted_mq.client.producing.send_hooks import SendContext
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


NAME = "twisted_mq"

Read = Callable[[], Iterable[Observation]]


class WatchedProducer(Protocol):
    """A producer of any face."""

    @property
    def group(self) -> str: ...
    @property
    def metrics(self) -> ProducerMetrics: ...


@runtime_checkable
class WatchedConsumer(Protocol):
    """A consumer of any face."""

    @property
    def group(self) -> str: ...
    @property
    def metrics(self) -> ConsumerMetrics: ...
    def lag(self) -> dict[MessageQueue, int]: ...


class Telemetry:
    """`sends` is a hook for producers, `calls` one for consumers with a listener; each serves any number of them.

    Without arguments the providers are those that the program set for the process. `seconds` is a clock for durations.
    """

    def __init__(
        self,
        tracer_provider: trace.TracerProvider | None = None,
        meter_provider: metrics.MeterProvider | None = None,
        seconds: Callable[[], float] = time.perf_counter,
    ) -> None:
        ours = version("rocketmq-twisted")
        tracer = trace.get_tracer(NAME, ours, tracer_provider)
        self._meter = metrics.get_meter(NAME, ours, meter_provider)
        self.sends = SendTelemetry(tracer, self._meter, seconds)
        self.calls = CallTelemetry(tracer, self._meter, seconds)
        self._producers: list[WatchedProducer] = []
        self._consumers: list[WatchedConsumer] = []
        self._observe()

    def watch(self, *members: WatchedProducer | WatchedConsumer) -> None:
        """Have the meters read these clients' counters too: what is in flight, tried again, and left to consume."""
        for member in members:
            if isinstance(member, WatchedConsumer):
                self._consumers.append(member)
            else:
                self._producers.append(member)

    def _observe(self) -> None:
        gauge, counter = self._meter.create_observable_gauge, self._meter.create_observable_counter
        gauge("rocketmq.client.in_flight", [_told(self._in_flight)], "{message}", "Messages that wait for an answer")
        gauge("rocketmq.client.lag", [_told(self._lag)], "{message}", "Messages that wait to be consumed")
        counter("rocketmq.client.retries", [_told(self._retries)], "{attempt}", "Further attempts of sends")

    def _in_flight(self) -> Iterable[Observation]:
        for producer in self._producers:
            yield Observation(producer.metrics.in_flight, {"messaging.rocketmq.client_group": producer.group})
        for consumer in self._consumers:
            yield Observation(consumer.metrics.in_flight, {"messaging.consumer.group.name": consumer.group})

    def _retries(self) -> Iterable[Observation]:
        for producer in self._producers:
            yield Observation(producer.metrics.retries, {"messaging.rocketmq.client_group": producer.group})

    def _lag(self) -> Iterable[Observation]:
        for consumer in self._consumers:
            for queue, count in consumer.lag().items():
                of_group = {"messaging.consumer.group.name": consumer.group, "messaging.destination.name": queue.topic}
                yield Observation(count, {**of_group, **of_queue(queue)})


def _told(read: Read) -> Callable[[CallbackOptions], Iterable[Observation]]:
    return lambda options: read()


class SendTelemetry:
    """A hook of sends (SendHook): one span each, and the context in every message."""

    def __init__(self, tracer: trace.Tracer, meter: metrics.Meter, seconds: Callable[[], float]) -> None:
        self._tracer = tracer
        self._seconds = seconds
        self._sent = meter.create_counter("messaging.client.sent.messages", "{message}", "Messages sent, or not")
        self._took = meter.create_histogram("messaging.client.operation.duration", "s", "Time that sends took")

    def before(self, context: SendContext) -> None:
        topic = context.messages[0].topic
        span = self._tracer.start_span(
            f"{SEND} {topic}",
            kind=trace.SpanKind.PRODUCER,
            attributes={
                **operation(SEND, topic),
                **of_messages(context.messages),
                "messaging.rocketmq.client_group": context.group,
            },
        )
        within = trace.set_span_in_context(span)
        for message in context.messages:
            propagate.inject(message.properties, within)
        context.carried[NAME] = span, self._seconds()

    def after(self, context: SendContext) -> None:
        span, began = context.carried.pop(NAME)
        error = None if context.error is None else type(context.error).__name__
        if context.result is not None:
            span.set_attributes({
                "messaging.message.id": context.result.msg_id,
                "messaging.rocketmq.send_result": context.result.status.name,
                **of_queue(context.result.queue),
            })  # fmt: skip
        said = operation(SEND, context.messages[0].topic, error)
        self._sent.add(len(context.messages), said)
        self._took.record(self._seconds() - began, said)
        _end(span, error, context.error)


class CallTelemetry:
    """A hook of listener calls (ConsumeHook): a span each, within the trace of its message; of several it has links."""

    def __init__(self, tracer: trace.Tracer, meter: metrics.Meter, seconds: Callable[[], float]) -> None:
        self._tracer = tracer
        self._seconds = seconds
        self._consumed = meter.create_counter("messaging.client.consumed.messages", "{message}", "Messages consumed")
        self._took = meter.create_histogram("messaging.process.duration", "s", "Time that listeners took")

    def before(self, call: ConsumeCall) -> None:
        topic = call.messages[0].topic
        origins = [propagate.extract(message.properties) for message in call.messages]
        alone = len(origins) == 1
        links = [] if alone else [trace.Link(trace.get_current_span(one).get_span_context()) for one in origins]
        span = self._tracer.start_span(
            f"{PROCESS} {topic}",
            context=origins[0] if alone else None,
            kind=trace.SpanKind.CONSUMER,
            links=[link for link in links if link.context.is_valid],
            attributes={
                **operation(PROCESS, topic),
                **of_messages(call.messages),
                **of_queue(call.queue),
                "messaging.consumer.group.name": call.group,
                **({"messaging.message.id": call.messages[0].unique_key or call.messages[0].msg_id} if alone else {}),
            },
        )
        token = contexts.attach(trace.set_span_in_context(span))
        call.carried[NAME] = span, token, self._seconds()

    def after(self, call: ConsumeCall) -> None:
        span, token, began = call.carried.pop(NAME)
        contexts.detach(token)
        error = None if call.outcome.name == "SUCCESS" else call.outcome.name
        said = operation(PROCESS, call.messages[0].topic, error)
        said["messaging.consumer.group.name"] = call.group
        self._consumed.add(len(call.messages), said)
        self._took.record(self._seconds() - began, said)
        _end(span, error, None)


def _end(span: trace.Span, error: str | None, raised: BaseException | None) -> None:
    if error is not None:
        span.set_attribute("error.type", error)
        span.set_status(trace.Status(trace.StatusCode.ERROR, str(raised) if raised is not None else error))
    span.end()
