"""Spans and metrics of real sends and listener calls, on virtual time, read by the SDK's exporters in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from twisted.internet import task

from twisted_mq.client import (
    ConsumeFromWhere,
    ConsumerOptions,
    ConsumeStatus,
    Message,
    Producer,
    ProducerOptions,
    PushConsumer,
    SendFailed,
)
from twisted_mq.telemetry import Telemetry
from twisted_mq.testing import VirtualCluster

SENT = {
    "messaging.system": "rocketmq",
    "messaging.operation.name": "send",
    "messaging.operation.type": "send",
    "messaging.destination.name": "Orders",
}
PROCESSED = {
    **SENT,
    "messaging.operation.name": "process",
    "messaging.operation.type": "process",
    "messaging.consumer.group.name": "readers",
}


class Observed:
    """A virtual cluster whose clients are observed."""

    def __init__(self, cluster: VirtualCluster) -> None:
        self.cluster = cluster
        self._exporter, self._reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.traces = TracerProvider()
        self.traces.add_span_processor(SimpleSpanProcessor(self._exporter))
        meters = MeterProvider([self._reader])
        self.telemetry = Telemetry(self.traces, meters, seconds=cluster.clock.seconds)

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self._exporter.get_finished_spans())

    def metrics(self, name: str) -> list[tuple[Any, dict[str, Any]]]:
        """Value, or the sum of a histogram, and attributes of each of its points."""
        data = self._reader.get_metrics_data()
        points = [
            point
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]
        return [(getattr(point, "value", getattr(point, "sum", None)), dict(point.attributes)) for point in points]

    def producer(self, **options: Any) -> Producer:
        settings = ProducerOptions(hooks=(self.telemetry.sends,), **options)
        producer = Producer(self.cluster.reactor, "writers", self.cluster.name_server, options=settings)
        self.cluster.run(producer.start())
        return producer

    def consumer(self, listener: Any, **options: Any) -> PushConsumer:
        settings = ConsumerOptions(
            hooks=(self.telemetry.calls,), consume_from_where=ConsumeFromWhere.FIRST_OFFSET, **options
        )
        consumer = PushConsumer(
            self.cluster.reactor, "readers", self.cluster.name_server, listener=listener, options=settings
        )
        consumer.subscribe("Orders")
        self.cluster.run(consumer.start())
        return consumer


@pytest.fixture
def observed() -> Iterator[Observed]:
    with VirtualCluster() as cluster:
        cluster.make_topic("Orders", queues=1)
        yield Observed(cluster)


def traceparent(span: ReadableSpan) -> str:
    context = span.get_span_context()
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def test_a_send_is_a_span_within_that_of_its_caller(observed: Observed) -> None:
    producer, tracer = observed.producer(), observed.traces.get_tracer("test")
    message = Message("Orders", b"a chair", tags="new", keys="order-1")
    with tracer.start_as_current_span("checkout") as outer:
        sending = producer.send(message)
    result = observed.cluster.run(sending)
    _, span = observed.spans
    assert (span.name, span.kind, span.status.is_ok) == ("send Orders", trace.SpanKind.PRODUCER, True)
    assert span.parent == outer.get_span_context()
    assert attributes(span) == {
        **SENT,
        "messaging.message.body.size": 7,
        "messaging.rocketmq.message.tag": "new",
        "messaging.rocketmq.message.keys": ("order-1",),
        "messaging.rocketmq.client_group": "writers",
        "messaging.message.id": result.msg_id,
        "messaging.rocketmq.send_result": "SEND_OK",
        "messaging.destination.partition.id": "broker-a:0",
    }
    assert "traceparent" not in message.properties
    (stored,) = observed.cluster.messages("Orders")
    assert stored.properties["traceparent"] == traceparent(span)


def test_a_failed_send_says_why(observed: Observed) -> None:
    producer = observed.producer(retry_times=2)
    observed.telemetry.watch(producer)
    with observed.cluster.busy(), pytest.raises(SendFailed):
        observed.cluster.run(producer.send(Message("Orders", b"x")))
    (span,) = observed.spans
    assert (span.status.status_code, attributes(span)["error.type"]) == (trace.StatusCode.ERROR, "SendFailed")
    assert observed.metrics("messaging.client.sent.messages") == [(1, {**SENT, "error.type": "SendFailed"})]
    assert observed.metrics("rocketmq.client.retries") == [(2, {"messaging.rocketmq.client_group": "writers"})]


def test_the_listener_runs_within_the_trace_of_its_message(observed: Observed) -> None:
    seen: list[trace.SpanContext] = []

    async def listen(messages: Any, context: Any) -> ConsumeStatus:
        seen.append(trace.get_current_span().get_span_context())
        await task.deferLater(observed.cluster.reactor, 2.0)
        seen.append(trace.get_current_span().get_span_context())
        return ConsumeStatus.CONSUME_SUCCESS

    observed.consumer(listen)
    result = observed.cluster.run(observed.producer().send(Message("Orders", b"x")))
    observed.cluster.advance(5)
    sent, processed = observed.spans
    assert (processed.name, processed.kind) == ("process Orders", trace.SpanKind.CONSUMER)
    assert processed.parent is not None
    assert processed.parent.span_id == sent.get_span_context().span_id
    assert seen == [processed.get_span_context()] * 2
    assert attributes(processed) == {
        **PROCESSED,
        "messaging.message.body.size": 1,
        "messaging.message.id": result.msg_id,
        "messaging.destination.partition.id": "broker-a:0",
    }
    ((seconds, said),) = observed.metrics("messaging.process.duration")
    assert (round(seconds, 3), said) == (2.0, PROCESSED)
    assert observed.metrics("messaging.client.consumed.messages") == [(1, PROCESSED)]


def test_a_call_that_the_stop_cuts_off_ends_its_span(observed: Observed, caplog: pytest.LogCaptureFixture) -> None:
    consumer = observed.consumer(lambda messages, context: task.deferLater(observed.cluster.reactor, 600.0))
    observed.cluster.run(observed.producer().send(Message("Orders", b"x")))
    observed.cluster.advance(5)
    observed.cluster.run(consumer.stop(finish_seconds=1.0))
    processed = observed.spans[-1]
    assert (processed.name, attributes(processed)["error.type"]) == ("process Orders", "EXCEPTION")
    assert consumer.metrics.in_flight == 0
    assert [line for line in caplog.messages if "detach" in line or "hook failed" in line] == []


def test_several_messages_in_one_call_are_links(observed: Observed) -> None:
    producer = observed.producer()
    for body in (b"one", b"two"):
        observed.cluster.run(producer.send(Message("Orders", body)))
    observed.consumer(lambda messages, context: ConsumeStatus.CONSUME_SUCCESS, consume_message_batch_max_size=2)
    observed.cluster.advance(30)
    first, second, processed = observed.spans
    assert processed.parent is None
    assert [link.context.span_id for link in processed.links] == [
        first.get_span_context().span_id, second.get_span_context().span_id,
    ]  # fmt: skip
    assert attributes(processed)["messaging.batch.message_count"] == 2


def test_a_batch_carries_one_context_in_all_its_messages(observed: Observed) -> None:
    observed.cluster.run(observed.producer().send_batch([Message("Orders", b"one"), Message("Orders", b"two")]))
    (span,) = observed.spans
    stored = {message.properties["traceparent"] for message in observed.cluster.messages("Orders")}
    assert stored == {traceparent(span)}
    assert observed.metrics("messaging.client.sent.messages") == [(2, SENT)]


@pytest.mark.parametrize(
    ("answer", "error"),
    [(ConsumeStatus.RECONSUME_LATER, "FAILED"), (None, "RETURNNULL"), (ZeroDivisionError(), "EXCEPTION")],
    ids=["refused", "nonsense", "raised"],
)
def test_a_call_that_went_wrong_says_how(observed: Observed, answer: Any, error: str) -> None:
    def listen(messages: Any, context: Any) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    observed.consumer(listen)
    observed.cluster.run(observed.producer().send(Message("Orders", b"x")))
    observed.cluster.advance(3)
    processed = observed.spans[-1]
    assert (processed.status.status_code, attributes(processed)["error.type"]) == (trace.StatusCode.ERROR, error)
    assert observed.metrics("messaging.client.consumed.messages") == [(1, {**PROCESSED, "error.type": error})]


def test_messages_without_a_trace_begin_one(observed: Observed) -> None:
    observed.consumer(lambda messages, context: ConsumeStatus.CONSUME_SUCCESS)
    plain = Producer(observed.cluster.reactor, "strangers", observed.cluster.name_server)
    observed.cluster.run(plain.start())
    observed.cluster.run(plain.send(Message("Orders", b"x")))
    observed.cluster.advance(3)
    (processed,) = observed.spans
    assert (processed.name, processed.parent) == ("process Orders", None)


def test_watched_clients_show_what_is_in_flight_and_left(observed: Observed) -> None:
    producer = observed.producer()
    for _ in range(3):
        observed.cluster.run(producer.send(Message("Orders", b"x")))
    consumer = observed.consumer(
        lambda messages, context: task.deferLater(observed.cluster.reactor, 600.0), concurrency=1
    )
    observed.telemetry.watch(producer, consumer)
    observed.cluster.advance(30)
    readers, writers = {"messaging.consumer.group.name": "readers"}, {"messaging.rocketmq.client_group": "writers"}
    assert observed.metrics("rocketmq.client.in_flight") == [(0, writers), (1, readers)]
    queue = {"messaging.destination.name": "Orders", "messaging.destination.partition.id": "broker-a:0"}
    left = [(count, said) for count, said in observed.metrics("rocketmq.client.lag") if said | queue == said]
    assert left == [(3, {**readers, **queue})]
    assert (producer.metrics.sent, consumer.metrics.in_flight, consumer.metrics.consumed) == (3, 1, 0)
