"""Counters of producers and consumers, and hooks around each call of a listener."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import pytest
from twisted.internet import task

from twisted_mq.client import (
    ConsumeFromWhere,
    ConsumerOptions,
    ConsumeStatus,
    LitePullConsumer,
    Message,
    Producer,
    ProducerOptions,
    PushConsumer,
    SendFailed,
)
from twisted_mq.client.consuming.consume_hooks import CallOutcome, ConsumeCall
from twisted_mq.client.core.client_metrics import ConsumerMetrics, ProducerMetrics
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.testing import VirtualCluster

QUEUE = MessageQueue("Orders", "broker-a", 0)


@pytest.fixture
def cluster() -> Iterator[VirtualCluster]:
    with VirtualCluster() as cluster:
        cluster.make_topic("Orders", queues=1)
        yield cluster


@pytest.fixture
def producer(cluster: VirtualCluster) -> Producer:
    producer = Producer(cluster.reactor, "writers", cluster.name_server, options=ProducerOptions(retry_times=2))
    cluster.run(producer.start())
    return producer


def consuming(cluster: VirtualCluster, listener: Any, **options: Any) -> PushConsumer:
    settings = ConsumerOptions(consume_from_where=ConsumeFromWhere.FIRST_OFFSET, **options)
    consumer = PushConsumer(cluster.reactor, "readers", cluster.name_server, listener=listener, options=settings)
    consumer.subscribe("Orders")
    cluster.run(consumer.start())
    return consumer


def test_sends_count_by_how_they_end(cluster: VirtualCluster, producer: Producer) -> None:
    cluster.run(producer.send(Message("Orders", b"one")))
    cluster.run(producer.send_batch([Message("Orders", b"two"), Message("Orders", b"three")]))
    with cluster.busy(times=2):
        cluster.run(producer.send(Message("Orders", b"four")))
    with cluster.busy(), pytest.raises(SendFailed):
        cluster.run(producer.send(Message("Orders", b"five")))
    assert attrs.astuple(producer.metrics) == attrs.astuple(ProducerMetrics(sent=3, failed=1, retries=4))


def test_sends_are_in_flight_until_they_are_answered(cluster: VirtualCluster, producer: Producer) -> None:
    with cluster.slow(1.0):
        sending = [producer.send(Message("Orders", b"x")) for _ in range(3)]
        cluster.advance(0.5)
        assert attrs.astuple(producer.metrics) == attrs.astuple(ProducerMetrics(in_flight=3))
        for one in sending:
            cluster.run(one)
    assert attrs.astuple(producer.metrics) == attrs.astuple(ProducerMetrics(sent=3))


def test_messages_count_by_what_becomes_of_them(cluster: VirtualCluster, producer: Producer) -> None:
    answers = [ConsumeStatus.RECONSUME_LATER, ConsumeStatus.CONSUME_SUCCESS]
    consumer = consuming(cluster, lambda messages, context: answers.pop(0))
    assert consumer.lag() == {}
    cluster.run(producer.send(Message("Orders", b"x")))
    cluster.advance(5)
    assert attrs.astuple(consumer.metrics) == attrs.astuple(ConsumerMetrics(failed=1))
    cluster.advance(20)
    assert attrs.astuple(consumer.metrics) == attrs.astuple(ConsumerMetrics(consumed=1, failed=1))
    assert consumer.lag()[QUEUE] == 0


def test_what_waits_to_be_consumed_is_the_lag(cluster: VirtualCluster, producer: Producer) -> None:
    for _ in range(5):
        cluster.run(producer.send(Message("Orders", b"x")))

    async def listen(messages: Any, context: Any) -> ConsumeStatus:
        await task.deferLater(cluster.reactor, 10.0)
        return ConsumeStatus.CONSUME_SUCCESS

    consumer = consuming(cluster, listen, concurrency=2, pull_batch_size=3)
    cluster.advance(5)
    assert (consumer.metrics.in_flight, consumer.lag()[QUEUE]) == (2, 5)
    cluster.advance(10)
    assert (consumer.metrics.consumed, consumer.lag()[QUEUE]) == (2, 3)


def test_polled_messages_count_as_consumed(cluster: VirtualCluster, producer: Producer) -> None:
    for _ in range(2):
        cluster.run(producer.send(Message("Orders", b"x")))
    options = ConsumerOptions(consume_from_where=ConsumeFromWhere.FIRST_OFFSET)
    consumer = LitePullConsumer(cluster.reactor, "readers", cluster.name_server, options=options)
    consumer.subscribe("Orders")
    cluster.run(consumer.start())
    assert len(cluster.run(consumer.poll())) == 2
    assert (consumer.metrics.consumed, consumer.lag()) == (2, {QUEUE: 0})


class Recorder:
    """A hook that records its calls, and passes a value from one call to the other."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []

    def before(self, call: ConsumeCall) -> None:
        call.carried["began"] = len(self.told)
        self.told.append(("before", call.group, call.queue, [message.body for message in call.messages]))

    def after(self, call: ConsumeCall) -> None:
        self.told.append(("after", call.carried["began"], call.outcome))


class Failing(Recorder):
    """Notes nothing, and is no good."""

    def before(self, call: ConsumeCall) -> None:
        raise ZeroDivisionError

    after = before


def test_hooks_are_told_of_each_call_and_one_that_fails_hurts_nobody(
    cluster: VirtualCluster, producer: Producer, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = Recorder()
    consumer = consuming(cluster, lambda messages, context: ConsumeStatus.CONSUME_SUCCESS, hooks=(Failing(), recorder))
    cluster.run(producer.send(Message("Orders", b"x")))
    cluster.advance(5)
    assert recorder.told == [("before", "readers", QUEUE, [b"x"]), ("after", 0, CallOutcome.SUCCESS)]
    assert consumer.metrics.consumed == 1
    assert [line.count("consume hook failed") for line in caplog.messages if "hook" in line] == [1, 1]
