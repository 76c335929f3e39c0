"""Polls and iteration in an asyncio program: what counts as consumed, and what a cancelled poll takes."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.support.faces import ServedCluster
from twisted_mq.aio import (
    ClientStateError,
    ConsumeFromWhere,
    ConsumerOptions,
    LitePullConsumer,
    Message,
    Producer,
)

FIRST = ConsumerOptions(consume_from_where=ConsumeFromWhere.FIRST_OFFSET)


def consumer(cluster: ServedCluster, group: str, topic: str, **arguments: Any) -> LitePullConsumer:
    return LitePullConsumer(cluster.namesrv, group=group, topics={topic: "*"}, options=FIRST, **arguments)


async def filled(cluster: ServedCluster, *bodies: bytes) -> str:
    topic = cluster.topic()
    async with Producer(cluster.namesrv, group="senders") as producer:
        for body in bodies:
            await producer.send(Message(topic, body))
    return topic


def test_polls_and_seeks(cluster: ServedCluster, group: str) -> None:
    async def main() -> None:
        topic = await filled(cluster, b"1", b"2", b"3", b"4")
        async with consumer(cluster, group, topic, auto_commit=False) as consumed:
            first = await consumed.poll(timeout=3600, max_messages=1)
            rest = await consumed.poll(timeout=3600)
            assert [message.body for message in [*first, *rest]] == [b"1", b"2", b"3", b"4"]
            await consumed.commit()
            (queue,) = consumed.queues
            assert await consumed.committed(queue) == 4
            await consumed.seek_to_begin(queue)
            assert len(await consumed.poll(timeout=3600)) == 4
            consumed.seek(queue, 3)
            assert (await anext(consumed.messages())).body == b"4"
            await consumed.seek_to_end(queue)
            assert await consumed.poll(timeout=0.01) == []
            assert [one async for one in consumed.messages(timeout=0.01)] == []
            assert await consumed.offset_for_time(queue, datetime(2001, 1, 1, tzinfo=UTC)) == 0
            assert await consumed.fetch_queues(topic) == [queue]

    asyncio.run(main())


def test_given_queues_are_consumed(cluster: ServedCluster, group: str) -> None:
    async def main() -> None:
        topic = await filled(cluster, b"1")
        async with LitePullConsumer(cluster.namesrv, group=group, options=FIRST, topics={topic: "*"}) as other:
            queues = await other.fetch_queues(topic)
        consumed = LitePullConsumer(cluster.namesrv, group=f"{group}-2", options=FIRST)
        consumed.assign(queues)
        async with consumed:
            assert [message.body for message in await consumed.poll(timeout=3600)] == [b"1"]

    asyncio.run(main())


def test_an_iteration_counts_a_message_when_the_next_is_asked_for(cluster: ServedCluster, group: str) -> None:
    async def main() -> None:
        topic = await filled(cluster, b"1", b"2", b"3")
        with pytest.raises(ValueError, match="2"):
            async with consumer(cluster, group, topic) as consumed:
                async for message in consumed:
                    if message.body == b"2":
                        raise ValueError(message.body)
        assert cluster.committed(group, topic) == 1
        async with consumer(cluster, group, topic) as again:
            async for message in again:
                if message.body == b"3":
                    break
        assert cluster.committed(group, topic) == 3

    asyncio.run(main())


def test_a_poll_that_is_cancelled_has_taken_nothing(cluster: ServedCluster, group: str) -> None:
    async def main() -> None:
        topic = cluster.topic()
        async with consumer(cluster, group, topic) as consumed, Producer(cluster.namesrv, group=group) as producer:
            for _ in range(20):  # again and again in the moment in which messages come
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.01):
                        await consumed.poll(timeout=3600)
            await producer.send(Message(topic, b"1"))
            assert [message.body for message in await consumed.poll(timeout=3600)] == [b"1"]

    asyncio.run(main())


def test_one_poll_waits_at_a_time_and_a_stop_ends_it(cluster: ServedCluster, group: str) -> None:
    async def main() -> None:
        consumed = consumer(cluster, group, cluster.topic())
        with pytest.raises(ClientStateError, match="this client is not started"):
            await consumed.poll()
        await consumed.start()
        polling = asyncio.create_task(consumed.poll(timeout=3600))
        await asyncio.sleep(0)
        with pytest.raises(ClientStateError, match="one at a time"):
            await consumed.poll()
        await consumed.stop()
        assert await polling == []

    asyncio.run(main())
