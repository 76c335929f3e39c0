"""`getmany` in each face: what is there at once, each message once; names of topics in the face of Deferreds."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from twisted.internet import defer

from tests.support.faces import ServedCluster
from twisted_mq import aio, blocking, client
from twisted_mq.aio import ClientOptionIllegal, ConsumeFromWhere, ConsumerOptions, Message

COUNT = 40
FIRST = ConsumerOptions(consume_from_where=ConsumeFromWhere.FIRST_OFFSET, concurrency=100)
BODIES = {b"%d" % number for number in range(COUNT)}


@pytest.fixture
def topic(cluster: ServedCluster) -> str:
    """A topic of two queues with messages in both."""
    name = cluster.topic(2)
    with blocking.Producer(cluster.namesrv, group="many") as producer:
        for body in sorted(BODIES):
            producer.send(Message(name, body))
    return name


def test_pull_consumer_for_asyncio(cluster: ServedCluster, group: str, topic: str) -> None:
    async def main() -> None:
        async with aio.LitePullConsumer(cluster.namesrv, group=group, topics=[topic], options=FIRST) as consumer:
            seen: list[bytes] = []
            queues = set()
            while len(seen) < COUNT:
                found = await consumer.getmany(timeout=10, max_messages=7)
                assert 0 < sum(map(len, found.values())) <= 7
                for queue, messages in found.items():
                    queues.add(queue)
                    assert {one.queue_id for one in messages} == {queue.queue_id}
                    seen += [one.body for one in messages]
            assert (sorted(seen), len(queues)) == (sorted(BODIES), 2)
            assert await consumer.getmany(timeout=0.05) == {}
            with pytest.raises(ClientOptionIllegal, match="max_messages: must be at least 1, got 0"):
                await consumer.getmany(max_messages=0)

    asyncio.run(main())


def test_pull_consumer_in_plain_calls(cluster: ServedCluster, group: str, topic: str) -> None:
    with blocking.LitePullConsumer(cluster.namesrv, group=group, topics=[topic], options=FIRST) as consumer:
        seen: list[bytes] = []
        while len(seen) < COUNT:
            for messages in consumer.getmany(timeout=10).values():
                seen += [one.body for one in messages]
        assert sorted(seen) == sorted(BODIES)
        assert consumer.getmany(timeout=0.05) == {}


def test_pull_consumer_of_deferreds(cluster: ServedCluster, group: str, topic: str) -> None:
    async def main() -> list[bytes]:
        consumer = client.LitePullConsumer(cluster.reactor, group, cluster.namesrv, topics=[topic], options=FIRST)
        await consumer.start()
        seen: list[bytes] = []
        while len(seen) < COUNT:
            for messages in (await consumer.getmany(10.0)).values():
                seen += [one.body for one in messages]
        await consumer.stop()
        return seen

    assert sorted(cluster.run(main)) == sorted(BODIES)


def test_push_consumer_for_asyncio(cluster: ServedCluster, group: str, topic: str) -> None:
    async def main() -> None:
        async with aio.PushConsumer(cluster.namesrv, group=group, topics=[topic], options=FIRST) as consumer:
            seen: list[bytes] = []
            while len(seen) < COUNT:
                found = await consumer.getmany(timeout=10, max_messages=16)
                assert 0 < len(found) <= 16
                seen += [one.body for one in found]
                await asyncio.gather(*(one.ack() for one in found))
            assert sorted(seen) == sorted(BODIES)
            assert await consumer.getmany(timeout=0.05) == []
            assert consumer.metrics.consumed == COUNT

    asyncio.run(main())


def test_push_consumer_in_plain_calls(cluster: ServedCluster, group: str, topic: str) -> None:
    with blocking.PushConsumer(cluster.namesrv, group=group, topics=[topic], options=FIRST) as consumer:
        seen: list[bytes] = []
        while len(seen) < COUNT:
            for message in consumer.getmany(timeout=10):
                seen.append(message.body)
                message.ack()
        assert sorted(seen) == sorted(BODIES)
        assert consumer.getmany(timeout=0.05) == []


@pytest.mark.parametrize("face", ["aio", "blocking"])
def test_listener_gets_batches(cluster: ServedCluster, group: str, topic: str, face: str) -> None:
    """The messages of a batch came in one pull."""
    options = ConsumerOptions(consume_from_where=ConsumeFromWhere.FIRST_OFFSET, consume_message_batch_max_size=10)
    batches: list[list[bytes]] = []

    def listener(messages: list[Any], context: Any) -> Any:
        batches.append([one.body for one in messages])
        return client.ConsumeStatus.CONSUME_SUCCESS

    async def main() -> None:
        async with aio.PushConsumer(cluster.namesrv, group=group, topics=[topic], listener=listener, options=options):
            while sum(map(len, batches)) < COUNT:
                await asyncio.sleep(0.01)

    if face == "aio":
        asyncio.run(main())
    else:
        with blocking.PushConsumer(cluster.namesrv, group=group, topics=[topic], listener=listener, options=options):
            asyncio.run(wait_for(batches))
    assert max(map(len, batches)) == 10
    assert {body for batch in batches for body in batch} == BODIES


async def wait_for(batches: list[list[bytes]]) -> None:
    while sum(map(len, batches)) < COUNT:
        await asyncio.sleep(0.01)


def test_deferreds_are_what_the_face_of_deferreds_returns(cluster: ServedCluster) -> None:
    consumer = client.LitePullConsumer(cluster.reactor, "g", cluster.namesrv, topics=["T"])
    waiting = consumer.getmany()
    assert isinstance(waiting, defer.Deferred)
    failed: list[Any] = []
    waiting.addErrback(failed.append)
    assert "is not running; call start() first" in str(failed[0].value)
