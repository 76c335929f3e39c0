"""Messages by `async for`: what counts as consumed, what comes again, and what a consumer leaves behind."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from tests.support.faces import ServedCluster
from twisted_mq.aio import (
    ClientOptionIllegal,
    ClientStateError,
    ConsumeFromWhere,
    ConsumeOrderlyStatus,
    ConsumerOptions,
    ConsumeStatus,
    DeliveryEnded,
    Message,
    Producer,
    PushConsumer,
)

FIRST = ConsumerOptions(consume_from_where=ConsumeFromWhere.FIRST_OFFSET)


def consumer(cluster: ServedCluster, group: str, topic: str, **arguments: Any) -> PushConsumer:
    return PushConsumer(cluster.namesrv, group=group, topics={topic: "*"}, **{"options": FIRST} | arguments)


async def send(cluster: ServedCluster, topic: str, *bodies: bytes) -> None:
    async with Producer(cluster.namesrv, group="senders") as producer:
        for body in bodies:
            await producer.send(Message(topic, body))


async def take(consumed: PushConsumer, count: int) -> list[bytes]:
    """The bodies of so many messages, each acknowledged."""
    seen = []
    async for message in consumed:
        await message.ack()
        seen.append(message.body)
        if len(seen) == count:
            break
    return seen


async def asked_and_cancelled(messages: Any) -> None:
    """The next message is asked for, and not waited for to its end."""
    asking = asyncio.create_task(anext(messages))
    await asyncio.sleep(0.01)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking


def test_iteration_ends_when_nothing_came_for_a_time(cluster: ServedCluster, group: str) -> None:
    async def main() -> None:
        async with consumer(cluster, group, cluster.topic()) as consumed:
            assert [message async for message in consumed.messages(timeout=0.01)] == []

    asyncio.run(main())


def test_acknowledged_messages_are_consumed(cluster: ServedCluster, group: str) -> None:
    async def main() -> None:
        topic = cluster.topic()
        await send(cluster, topic, b"1", b"2", b"3")
        async with consumer(cluster, group, topic) as first:
            assert sorted(await take(first, 2)) == [b"1", b"2"]
        assert cluster.committed(group, topic) == 2
        async with consumer(cluster, group, topic) as second:
            assert await take(second, 1) == [b"3"]
        assert cluster.committed(group, topic) == 3

    asyncio.run(main())


def test_what_was_handed_out_and_not_acknowledged_comes_again(cluster: ServedCluster, group: str) -> None:
    async def main() -> None:
        topic = cluster.topic()
        await send(cluster, topic, b"1", b"2")
        async with consumer(cluster, group, topic) as first:
            async for message in first:
                if message.body == b"2":
                    break
        assert not cluster.committed(group, topic)
        async with consumer(cluster, group, topic) as second:
            assert sorted(await take(second, 2)) == [b"1", b"2"]

    asyncio.run(main())


def test_what_is_sent_back_comes_again_with_one_try_more(cluster: ServedCluster, group: str) -> None:
    async def main() -> None:
        topic, seen = cluster.topic(), []
        await send(cluster, topic, b"1")
        async with consumer(cluster, group, topic) as consumed:
            async for message in consumed:
                seen.append((message.topic, message.reconsume_times))
                if message.reconsume_times:
                    await message.ack()
                    break
                await message.retry(delay_level=1)
        assert seen == [(topic, 0), (topic, 1)]

    asyncio.run(main())


def test_a_message_is_settled_once(cluster: ServedCluster, group: str) -> None:
    async def main() -> None:
        topic = cluster.topic()
        await send(cluster, topic, b"1", b"2")
        async with consumer(cluster, group, topic) as consumed:
            open_messages = []
            async for message in consumed:
                open_messages.append(message)
                if len(open_messages) == 2:
                    break
            first, second = open_messages
            await first.ack()
            with pytest.raises(DeliveryEnded, match="it was acknowledged"):
                await first.retry()
            with pytest.raises(ClientOptionIllegal, match="orderly"):
                await second.retry(suspend_seconds=1)
        with pytest.raises(DeliveryEnded, match="the consumer stopped; it will be delivered again"):
            await second.ack()

    asyncio.run(main())


def test_after_the_consume_timeout_it_comes_again_and_cannot_be_acknowledged(
    cluster: ServedCluster, group: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        topic = cluster.topic()
        await send(cluster, topic, b"1")
        options = ConsumerOptions(consume_from_where=ConsumeFromWhere.FIRST_OFFSET, consume_timeout_seconds=0.05)
        async with consumer(cluster, group, topic, options=options) as consumed:
            async for message in consumed:
                while message._delivery.ended is None:
                    await asyncio.sleep(0.01)
                with pytest.raises(DeliveryEnded, match="its consume timeout has passed; it will be delivered again"):
                    await message.ack()
                break
        assert cluster.committed(group, topic) == 1  # it waits in the retry topic

    asyncio.run(main())
    assert [record.levelname for record in caplog.records if "consumed again later" in record.getMessage()] == [
        "WARNING"
    ]


def test_automatic_acknowledgement_comes_with_the_next_message(cluster: ServedCluster, group: str) -> None:
    async def main() -> None:
        topic = cluster.topic()
        await send(cluster, topic, b"1", b"2")
        async with consumer(cluster, group, topic, auto_ack=True) as consumed:
            messages = consumed.messages()
            seen = [await anext(messages), await anext(messages)]
            assert [message._delivery.ended for message in seen] == ["it was acknowledged", None]
            await asked_and_cancelled(messages)
        assert [message.body for message in seen] == [b"1", b"2"]
        assert cluster.committed(group, topic) == 2

    asyncio.run(main())


def test_a_loop_that_fails_has_its_message_sent_back(cluster: ServedCluster, group: str) -> None:
    async def main() -> None:
        topic = cluster.topic()
        await send(cluster, topic, b"1", b"2")
        for auto_ack in (True, False):
            with pytest.raises(ValueError, match="1"):
                async with consumer(cluster, f"{group}-{auto_ack}", topic, auto_ack=auto_ack) as consumed:
                    async for message in consumed:
                        raise ValueError(message.body)
            assert cluster.committed(f"{group}-{auto_ack}", topic) == 1  # the first one waits in the retry topic

    asyncio.run(main())


def test_a_loop_that_is_cancelled_leaves_its_message_where_it_is(cluster: ServedCluster, group: str) -> None:
    async def main() -> None:
        topic, got = cluster.topic(), asyncio.Event()
        await send(cluster, topic, b"1")

        async def consume() -> None:
            async with consumer(cluster, group, topic) as consumed:
                async for _ in consumed:
                    got.set()
                    await asyncio.sleep(3600)

        consuming = asyncio.create_task(consume())
        await got.wait()
        consuming.cancel()
        with pytest.raises(asyncio.CancelledError):
            await consuming
        assert not cluster.committed(group, topic)

    asyncio.run(main())


def test_in_order_the_next_message_waits_for_the_one_before(cluster: ServedCluster, group: str) -> None:
    async def main() -> None:
        topic, seen = cluster.topic(), []
        await send(cluster, topic, b"1", b"2", b"3")
        async with consumer(cluster, group, topic, orderly=True) as consumed:
            async for message in consumed:
                seen.append(message.body)
                with pytest.raises(ClientOptionIllegal, match="delay_level"):
                    await message.retry(delay_level=3)
                if seen == [b"1"]:
                    await message.retry(suspend_seconds=0.01)
                    continue
                await message.ack()
                if message.body == b"3":
                    break
        assert seen == [b"1", b"1", b"2", b"3"]
        assert cluster.committed(group, topic) == 3

    asyncio.run(main())


def test_several_tasks_share_the_messages(cluster: ServedCluster, group: str) -> None:
    async def main() -> None:
        topic, seen = cluster.topic(queues=2), []
        await send(cluster, topic, *(b"%d" % number for number in range(40)))

        async def work(consumed: PushConsumer) -> None:
            async for message in consumed:
                await asyncio.sleep(0.001)
                await message.ack()
                seen.append(message.body)
                if len(seen) == 40:
                    await consumed.stop()

        async with consumer(cluster, group, topic) as consumed, asyncio.TaskGroup() as tasks:
            for _ in range(5):
                tasks.create_task(work(consumed))
        assert sorted(seen) == sorted(b"%d" % number for number in range(40))

    asyncio.run(main())


def test_a_stop_waits_for_other_tasks_to_settle_what_they_have(cluster: ServedCluster, group: str) -> None:
    async def main() -> None:
        topic, got = cluster.topic(), asyncio.Event()
        await send(cluster, topic, b"1")
        consumed = consumer(cluster, group, topic)
        await consumed.start()

        async def work() -> None:
            async for message in consumed:
                got.set()
                while not consumed._deliveries.closed:
                    await asyncio.sleep(0.01)
                await message.ack()

        working = asyncio.create_task(work())
        await got.wait()
        await consumed.stop()
        await working
        assert cluster.committed(group, topic) == 1

    asyncio.run(main())


def test_who_neither_acknowledges_nor_sends_back_is_told(
    cluster: ServedCluster, group: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        topic = cluster.topic()
        await send(cluster, topic, *(b"%d" % number for number in range(30)))
        async with consumer(cluster, group, topic) as consumed:
            messages = consumed.messages()
            for _ in range(FIRST.concurrency):
                await anext(messages)
            await asked_and_cancelled(messages)

    asyncio.run(main())
    told = [record.getMessage() for record in caplog.records if "no more messages are delivered" in record.getMessage()]
    assert told == [
        f"no more messages are delivered: group={group}: 20 messages are unsettled; call ack() or retry() for each"
    ]


def test_a_listener_may_be_a_coroutine_or_a_function(cluster: ServedCluster, group: str) -> None:
    async def main() -> None:
        topic, seen, enough = cluster.topic(), [], asyncio.Event()
        await send(cluster, topic, b"1", b"2")

        async def on_messages(messages: Any, context: Any) -> ConsumeStatus:
            await asyncio.sleep(0)
            seen.extend(("concurrently", one.body) for one in messages)
            if len(seen) == 4:
                enough.set()
            return ConsumeStatus.CONSUME_SUCCESS

        def in_order(messages: Any, context: Any) -> ConsumeOrderlyStatus:
            seen.extend(("in order", one.body) for one in messages)
            if len(seen) == 4:
                enough.set()
            return ConsumeOrderlyStatus.SUCCESS

        orderly = consumer(cluster, f"{group}-orderly", topic)
        orderly.listen_orderly(in_order)
        async with consumer(cluster, group, topic, listener=on_messages) as listening, orderly:
            with pytest.raises(ClientStateError, match="has a listener"):
                listening.messages()
            await enough.wait()
        assert sorted(seen) == [
            ("concurrently", b"1"), ("concurrently", b"2"), ("in order", b"1"), ("in order", b"2")
        ]  # fmt: skip

    asyncio.run(main())


def test_a_listener_that_takes_too_long_is_cancelled(
    cluster: ServedCluster, group: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        topic, cancelled = cluster.topic(), asyncio.Event()
        await send(cluster, topic, b"1")

        async def on_messages(messages: Any, context: Any) -> ConsumeStatus:
            try:
                await asyncio.sleep(3600)
            finally:
                cancelled.set()
            return ConsumeStatus.CONSUME_SUCCESS

        options = ConsumerOptions(consume_from_where=ConsumeFromWhere.FIRST_OFFSET, consume_timeout_seconds=0.05)
        async with consumer(cluster, group, topic, listener=on_messages, options=options):
            await cancelled.wait()

    asyncio.run(main())
    assert ["TimeoutError" in caplog.text, "consumed again later" in caplog.text] == [True, True]


def test_a_listener_that_raises_is_said_in_the_log(
    cluster: ServedCluster, group: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        topic, called = cluster.topic(), asyncio.Event()
        await send(cluster, topic, b"1")

        async def on_messages(messages: Any, context: Any) -> ConsumeStatus:
            called.set()
            raise KeyError("gone")

        async with consumer(cluster, group, topic, listener=on_messages):
            await called.wait()

    with caplog.at_level(logging.WARNING):
        asyncio.run(main())
    assert "KeyError: 'gone'" in caplog.text
    assert "on_messages failed, consumed again later" in caplog.text


def test_not_started_it_is_not_iterated(group: str) -> None:
    consumed = PushConsumer("127.0.0.1:1", group=group)
    with pytest.raises(ClientStateError, match="async with"):
        consumed.messages()
    with pytest.raises(ClientStateError, match="no subscription"):
        asyncio.run(consumed.start())


def test_queues_and_pauses_are_those_of_the_core(cluster: ServedCluster, group: str) -> None:
    async def main() -> None:
        topic = cluster.topic()
        await send(cluster, topic, b"1")
        async with consumer(cluster, group, topic) as consumed:
            await take(consumed, 1)
            (queue,) = (one for one in consumed.queues if one.topic == topic)
            assert (consumed.metrics.consumed, consumed.lag()[queue]) == (1, 0)
            consumed.pause(queue)
            assert consumed.is_paused(queue)
            consumed.resume()
            assert not consumed.is_paused(queue)
            consumed.unsubscribe(topic)
            while consumed._core.consumes(queue):
                await asyncio.sleep(0.01)

    asyncio.run(main())
