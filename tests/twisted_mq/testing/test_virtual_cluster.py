"""The cluster on virtual time: what its users count on."""

from __future__ import annotations

import random

import pytest

from twisted_mq.client import (
    ConsumeFromWhere,
    ConsumerOptions,
    ConsumeStatus,
    Message,
    Producer,
    PushConsumer,
    SendFailed,
)
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.testing import VirtualCluster

TWO_HOURS = 7200.0
LEVEL_OF_TWO_HOURS = 18


class Notes:
    """Takes what comes, and when; `answer` is the same to all."""

    def __init__(self, cluster: VirtualCluster, answer: ConsumeStatus) -> None:
        self.came: list[tuple[bytes, int, float]] = []
        self._cluster = cluster
        self._began = cluster.clock.now
        self._answer = answer

    def __call__(self, messages: list[MessageExt], context: object) -> ConsumeStatus:
        for message in messages:
            self.came.append((message.body, message.reconsume_times, self._cluster.clock.now - self._began))
        return self._answer


def consuming(cluster: VirtualCluster, answer: ConsumeStatus) -> Notes:
    notes = Notes(cluster, answer)
    options = ConsumerOptions(consume_from_where=ConsumeFromWhere.FIRST_OFFSET)
    consumer = PushConsumer(
        cluster.reactor, "readers", cluster.name_server, listener=notes, options=options, rng=random.Random(1)
    )
    consumer.subscribe("Orders")
    cluster.run(consumer.start())
    return notes


def sending(cluster: VirtualCluster) -> Producer:
    producer = Producer(cluster.reactor, "writers", cluster.name_server, rng=random.Random(2))
    cluster.run(producer.start())
    return producer


def test_a_message_delayed_by_two_hours_comes_then_and_not_before() -> None:
    with VirtualCluster() as cluster:
        cluster.make_topic("Orders")
        notes = consuming(cluster, ConsumeStatus.CONSUME_SUCCESS)
        message = Message("Orders", b"late")
        message.delay_time_level = LEVEL_OF_TWO_HOURS
        cluster.run(sending(cluster).send(message))
        cluster.advance(TWO_HOURS - 1)
        assert notes.came == []
        cluster.advance(3)
        assert [(body, tries) for body, tries, _ in notes.came] == [(b"late", 0)]


def test_a_message_for_a_time_of_its_own_comes_then() -> None:
    with VirtualCluster() as cluster:
        cluster.make_topic("Orders")
        notes = consuming(cluster, ConsumeStatus.CONSUME_SUCCESS)
        message = Message("Orders", b"late", properties={"TIMER_DELAY_SEC": "5400"})
        cluster.run(sending(cluster).send(message))
        cluster.advance(5398)
        assert notes.came == []
        cluster.advance(4)
        assert [body for body, _, _ in notes.came] == [b"late"]


def test_sixteen_retries_pass_and_end_in_the_dead_letters() -> None:
    with VirtualCluster() as cluster:
        cluster.make_topic("Orders")
        notes = consuming(cluster, ConsumeStatus.RECONSUME_LATER)
        cluster.run(sending(cluster).send(Message("Orders", b"poison")))
        cluster.advance(5 * 3600)
        assert [(body, tries) for body, tries, _ in notes.came] == [(b"poison", tries) for tries in range(17)]
        assert [message.body for message in cluster.dead_letters("readers")] == [b"poison"]


def test_the_same_seed_gives_the_same_times() -> None:
    def times() -> list[tuple[bytes, int, float]]:
        with VirtualCluster(seed=7) as cluster:
            cluster.make_topic("Orders")
            notes = consuming(cluster, ConsumeStatus.RECONSUME_LATER)
            cluster.run(sending(cluster).send(Message("Orders", b"again")))
            cluster.advance(60)
            return notes.came

    first = times()
    assert (len(first), times()) == (3, first)


def test_faults_befall_it_too() -> None:
    with VirtualCluster() as cluster:
        producer = sending(cluster)
        with cluster.busy() as fault, pytest.raises(SendFailed):
            cluster.run(producer.send(Message("Orders", b"refused")))
        with cluster.slow(2.0, times=1):
            began = cluster.clock.now
            cluster.run(producer.send(Message("Orders", b"taken")))
        assert (fault.count > 3, round(cluster.clock.now - began)) == (True, 2)
        assert [message.body for message in cluster.messages("Orders")] == [b"taken"]


def test_a_slow_broker_stores_what_its_producer_gives_up() -> None:
    with VirtualCluster() as cluster:
        producer = sending(cluster)
        with cluster.slow(30.0, times=1), pytest.raises(SendFailed):
            cluster.run(producer.send(Message("Orders", b"x"), timeout_seconds=2.0))
        assert [message.body for message in cluster.messages("Orders")] == [b"x"]


def test_work_that_never_ends_is_given_up() -> None:
    with VirtualCluster() as cluster:
        producer = sending(cluster)
        with cluster.slow(10.0), pytest.raises(TimeoutError, match=r"not done after 1\.0 s of virtual time"):
            cluster.run(producer.send(Message("Orders", b"x")), seconds=1.0)
