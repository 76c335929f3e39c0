"""Listeners of the other faces run within the trace of their message, in threads and in tasks."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from twisted_mq import aio, blocking
from twisted_mq.client import ConsumeFromWhere, ConsumerOptions, ConsumeStatus, Message, ProducerOptions
from twisted_mq.telemetry import Telemetry
from twisted_mq.testing import EmbeddedServer

SECONDS = 60


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedServer]:
    with EmbeddedServer(store="memory") as server:
        yield server


@pytest.fixture
def topic(server: EmbeddedServer, request: pytest.FixtureRequest) -> str:
    return server.new_topic(request.node.name)


class Observed:
    """Messages of the listeners, and exported spans."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        telemetry = Telemetry(provider)
        self.sending = ProducerOptions(hooks=(telemetry.sends,))
        self.consuming = ConsumerOptions(hooks=(telemetry.calls,), consume_from_where=ConsumeFromWhere.FIRST_OFFSET)
        self.seen: list[int] = []

    def see(self) -> None:
        self.seen.append(trace.get_current_span().get_span_context().span_id)

    def assert_one_trace(self) -> None:
        """Check for a span of the send and a span of the call below it, in which the listener ran."""
        sent, processed = self._exporter.get_finished_spans()
        assert (sent.name.split()[0], processed.name.split()[0]) == ("send", "process")
        assert processed.parent.span_id == sent.context.span_id
        assert self.seen == [processed.context.span_id]


def test_a_blocking_listener_in_its_thread(server: EmbeddedServer, topic: str) -> None:
    observed, called = Observed(), threading.Event()

    def listen(messages: Any, context: Any) -> ConsumeStatus:
        observed.see()
        called.set()
        return ConsumeStatus.CONSUME_SUCCESS

    with blocking.Producer(server.namesrv, group="shop", options=observed.sending) as producer:
        producer.send(Message(topic, b"x"))
    topics, group = {topic: "*"}, f"readers-{topic}"
    with blocking.PushConsumer(
        server.namesrv, group=group, topics=topics, listener=listen, options=observed.consuming
    ) as consumer:
        assert called.wait(SECONDS)
        server.wait_until_consumed(topic, group, SECONDS)
        assert (consumer.metrics.consumed, sum(consumer.lag().values()), consumer.group) == (1, 0, group)
    assert (producer.metrics.sent, producer.group) == (1, "shop")
    observed.assert_one_trace()


def test_an_async_listener_in_its_task(server: EmbeddedServer, topic: str) -> None:
    observed = Observed()

    async def main() -> None:
        called = asyncio.Event()

        async def listen(messages: Any, context: Any) -> ConsumeStatus:
            await asyncio.sleep(0)
            observed.see()
            called.set()
            return ConsumeStatus.CONSUME_SUCCESS

        async with aio.Producer(server.namesrv, group="shop", options=observed.sending) as producer:
            await producer.send(Message(topic, b"x"))
            assert (producer.metrics.sent, producer.group) == (1, "shop")
        topics, group = {topic: "*"}, f"readers-{topic}"
        async with aio.PushConsumer(
            server.namesrv, group=group, topics=topics, listener=listen, options=observed.consuming
        ) as consumer:
            await asyncio.wait_for(called.wait(), SECONDS)
            await asyncio.to_thread(server.wait_until_consumed, topic, group, SECONDS)
            assert (consumer.metrics.consumed, sum(consumer.lag().values()), consumer.group) == (1, 0, group)

    asyncio.run(main())
    observed.assert_one_trace()
