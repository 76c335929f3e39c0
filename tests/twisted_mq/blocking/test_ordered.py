"""Strictly ordered queues in plain calls."""

from __future__ import annotations

import threading
from typing import Any

from tests.support.faces import Served
from tests.twisted_mq.aio.test_ordered import SOON, declared
from twisted_mq.blocking import ConsumeOrderlyStatus, Message, OrderedConsumer, OrderedProducer
from twisted_mq.testing import OrderedCluster


def test_sent_and_consumed_in_order(ordered_cluster: Served[OrderedCluster], group: str) -> None:
    topic, leads, seen = declared(ordered_cluster), threading.Event(), []
    producer = OrderedProducer(ordered_cluster.namesrv, group=group)
    producer.on_lead(lambda topic, unit, leading: leads.set() if leading else None)
    with producer:
        producer.lead(topic, timeout=3600)
        leads.wait()
        assert producer.leads(topic)
        assert [producer.send(Message(topic, b"%d" % number)).queue_offset for number in range(3)] == [0, 1, 2]
    with OrderedConsumer(ordered_cluster.namesrv, group=group, topics={topic: "*"}, options=SOON) as consumer:
        for message in consumer:
            seen.append(message.body)
            if len(seen) == 2:
                message.retry()
                continue
            message.ack()
            if message.body == b"2":
                break
    assert seen == [b"0", b"1", b"1", b"2"]


def test_a_listener_may_block(ordered_cluster: Served[OrderedCluster], group: str) -> None:
    topic, seen, enough = declared(ordered_cluster), [], threading.Event()

    def on_messages(messages: Any, context: Any) -> ConsumeOrderlyStatus:
        seen.append((messages[0].body, threading.current_thread().name))
        if len(seen) == 2:
            enough.set()
        return ConsumeOrderlyStatus.SUCCESS

    with OrderedProducer(ordered_cluster.namesrv, group=group) as producer:
        producer.lead(topic)
        producer.send(Message(topic, b"1"))
        producer.send(Message(topic, b"2"))
    with OrderedConsumer(ordered_cluster.namesrv, group=group, topics={topic: "*"}, listener=on_messages):
        enough.wait()
    assert [body for body, _ in seen] == [b"1", b"2"]
    assert all(thread != "rocketmq" for _, thread in seen)
