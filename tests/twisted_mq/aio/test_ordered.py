"""Strictly ordered queues in an asyncio program."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest

from tests.support.faces import Served
from twisted_mq.aio import (
    ClientStateError,
    ConsumeOrderlyStatus,
    Message,
    OrderedConsumer,
    OrderedConsumerOptions,
    OrderedProducer,
    OrderedTopicUnknown,
)
from twisted_mq.testing import OrderedCluster

SOON = OrderedConsumerOptions(suspend_queue_seconds=0.01)


def declared(cluster: Served[OrderedCluster], queues: int = 1) -> str:
    topic = f"T-{uuid.uuid4().hex[:12]}"
    cluster.run(lambda: cluster.cluster.declare(topic, queues))
    return topic


def test_sent_and_consumed_in_order(ordered_cluster: Served[OrderedCluster], group: str) -> None:
    async def main() -> None:
        topic, told, seen = declared(ordered_cluster, queues=2), [], []
        producer = OrderedProducer(ordered_cluster.namesrv, group=group)
        producer.on_lead(lambda *what: told.append(what))
        async with producer:
            await producer.lead(topic)
            assert (sorted(told), producer.leads(topic, 1)) == ([(topic, "0", True), (topic, "1", True)], True)
            bodies = [b"%d" % number for number in range(20)]
            results = await asyncio.gather(*(producer.send(Message(topic, body), key="order-1") for body in bodies))
            assert [result.queue_offset for result in results] == list(range(20))
            with pytest.raises(OrderedTopicUnknown):
                await producer.send(Message("Unordered", b"x"))
        async with OrderedConsumer(ordered_cluster.namesrv, group=group, topics={topic: "*"}, options=SOON) as consumer:
            async for message in consumer:
                seen.append(message.body)
                if len(seen) == 3:
                    await message.retry()
                    continue
                await message.ack()
                if message.body == b"9":
                    break
        assert seen == [b"0", b"1", b"2", *bodies[2:10]]
        async with OrderedConsumer(ordered_cluster.namesrv, group=group, topics={topic: "*"}) as consumer:
            first = await anext(consumer.messages())
            assert first.body == b"10"

    asyncio.run(main())


def test_a_listener_may_be_a_coroutine(ordered_cluster: Served[OrderedCluster], group: str) -> None:
    async def main() -> None:
        topic, seen, enough = declared(ordered_cluster), [], asyncio.Event()

        async def on_messages(messages: Any, context: Any) -> ConsumeOrderlyStatus:
            await asyncio.sleep(0)
            seen.extend(message.body for message in messages)
            if len(seen) == 2:
                enough.set()
            return ConsumeOrderlyStatus.SUCCESS

        async with OrderedProducer(ordered_cluster.namesrv, group=group) as producer:
            await producer.lead(topic)
            await producer.send(Message(topic, b"1"))
            await producer.send(Message(topic, b"2"))
        consumer = OrderedConsumer(ordered_cluster.namesrv, group=group, topics={topic: "*"}, listener=on_messages)
        async with consumer:
            with pytest.raises(ClientStateError, match="has a listener"):
                consumer.messages()
            await enough.wait()
        assert seen == [b"1", b"2"]

    asyncio.run(main())
