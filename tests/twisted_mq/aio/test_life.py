"""Cancelled at every await, stopped in every state, started MQ_LIFE_ROUNDS times, on any loop: nothing is left or lost."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any

import pytest
import uvloop

from tests.support.faces import ServedCluster, open_files, threads
from twisted_mq.aio import (
    ConsumeFromWhere,
    ConsumerOptions,
    ForkedProcess,
    LitePullConsumer,
    Message,
    Producer,
    PushConsumer,
    TransactionProducer,
    TransactionState,
)

FIRST = ConsumerOptions(consume_from_where=ConsumeFromWhere.FIRST_OFFSET)
ROUNDS = int(os.environ.get("MQ_LIFE_ROUNDS", "100"))
MOST_AWAITS = 60


def left_in(loop: asyncio.AbstractEventLoop) -> list[str]:
    """Return tasks, timers and sockets of a loop, except the running task and the loop's own socket."""
    tasks = [repr(task) for task in asyncio.all_tasks(loop) - {asyncio.current_task()}]
    timers = [repr(timer) for timer in loop._scheduled if not timer.cancelled()]  # type: ignore[attr-defined]
    own = loop._ssock.fileno()  # type: ignore[attr-defined]
    sockets = [repr(key) for fd, key in loop._selector.get_map().items() if fd != own]  # type: ignore[attr-defined]
    return [*tasks, *timers, *sockets]


class Awaits:
    """Runs a coroutine, and cancels its task at one of its awaits; `count` is how many there were."""

    def __init__(self, cancelled: int) -> None:
        self._cancelled = cancelled
        self.count = 0

    @types.coroutine
    def run(self, work: Coroutine[Any, Any, None]) -> Generator[Any, Any, None]:
        step: Callable[[], Any] = lambda: work.send(None)  # noqa: E731
        while True:
            try:
                future = step()
            except StopIteration:
                return
            if self.count == self._cancelled:
                task = asyncio.current_task()
                assert task is not None
                task.cancel()
            self.count += 1
            try:
                yield future
            except BaseException as error:
                step = lambda error=error: work.throw(error)  # noqa: E731
            else:
                step = lambda: work.send(None)  # noqa: E731


async def let_end() -> None:
    """The callbacks that a cancellation planned run."""
    for _ in range(10):
        await asyncio.sleep(0)


async def at_every_await(work: Callable[[], Coroutine[Any, Any, None]]) -> int:
    """Have the work cancelled at its first await, then at its second, and so on; how many there were."""
    loop = asyncio.get_running_loop()
    for turn in range(MOST_AWAITS):
        awaits = Awaits(turn)
        running = asyncio.create_task(_run(awaits, work()))
        with contextlib.suppress(asyncio.CancelledError):
            await running
        await let_end()
        assert left_in(loop) == [], f"cancelled at await {turn}"
        if awaits.count <= turn:
            return turn
    raise AssertionError(f"more than {MOST_AWAITS} awaits")


async def _run(awaits: Awaits, work: Coroutine[Any, Any, None]) -> None:
    await awaits.run(work)  # type: ignore[misc]


def test_a_producer_cancelled_at_every_await_leaves_nothing(cluster: ServedCluster, group: str) -> None:
    topic = cluster.topic()

    async def life() -> None:
        async with Producer(cluster.namesrv, group=group) as producer:
            await producer.send(Message(topic, b"x"))
            await producer.send_batch([Message(topic, b"x")])

    async def main() -> None:
        assert await at_every_await(life) >= 3

    asyncio.run(main())


def test_a_transaction_cancelled_at_every_await_leaves_nothing(cluster: ServedCluster, group: str) -> None:
    topic, executed = cluster.topic(), []

    async def execute(message: Message) -> TransactionState:
        await asyncio.sleep(0)
        executed.append(message.body)
        await asyncio.sleep(0)
        return TransactionState.COMMIT

    async def life() -> None:
        async with TransactionProducer(
            cluster.namesrv, group=group, check=lambda _: TransactionState.COMMIT
        ) as producer:
            await producer.send_in_transaction(Message(topic, b"x"), execute)

    async def main() -> None:
        assert await at_every_await(life) >= 2  # what `execute` awaits is another task's
        assert executed

    asyncio.run(main())


@pytest.mark.parametrize("orderly", [False, True])
def test_a_consumer_cancelled_at_every_await_leaves_nothing_and_loses_nothing(
    cluster: ServedCluster, group: str, orderly: bool
) -> None:
    topic, acknowledged = cluster.topic(), []

    async def life() -> None:
        async with PushConsumer(
            cluster.namesrv, group=group, topics={topic: "*"}, orderly=orderly, options=FIRST
        ) as consumer:
            async for message in consumer:
                await asyncio.sleep(0)
                await message.ack()
                acknowledged.append(message.queue_offset)
                await asyncio.sleep(0)
                break

    async def main() -> None:
        async with Producer(cluster.namesrv, group=group) as producer:
            for number in range(40):
                await producer.send(Message(topic, b"%d" % number))
        assert await at_every_await(life) >= 5
        done = len(acknowledged)
        assert acknowledged == list(range(done))  # each once, none passed over
        assert cluster.committed(group, topic) == done

    asyncio.run(main())


def test_a_polling_consumer_cancelled_at_every_await_loses_nothing(cluster: ServedCluster, group: str) -> None:
    topic, polled = cluster.topic(), []

    async def life() -> None:
        async with LitePullConsumer(
            cluster.namesrv, group=group, topics={topic: "*"}, options=FIRST, auto_commit=False
        ) as consumer:
            messages = await consumer.poll(timeout=3600, max_messages=1)
            await consumer.commit()
            polled.extend(message.queue_offset for message in messages)

    async def main() -> None:
        async with Producer(cluster.namesrv, group=group) as producer:
            for number in range(40):
                await producer.send(Message(topic, b"%d" % number))
        assert await at_every_await(life) >= 3
        committed = cluster.committed(group, topic)
        assert committed is not None and committed >= len(polled)  # a commit that was cancelled may have arrived
        assert sorted(set(polled)) == polled

    asyncio.run(main())


@pytest.mark.parametrize("made", [PushConsumer, LitePullConsumer])
def test_stopped_while_it_starts_a_consumer_leaves_nothing(cluster: ServedCluster, group: str, made: Any) -> None:
    topic = cluster.topic()

    async def main() -> None:
        for turns in range(12):
            consumer = made(cluster.namesrv, group=group, topics={topic: "*"})
            starting = asyncio.create_task(consumer.start())
            for _ in range(turns):
                await asyncio.sleep(0)
            await consumer.stop()
            await starting
            await consumer.stop()
            await let_end()
            assert left_in(asyncio.get_running_loop()) == []

    asyncio.run(main())


def test_many_starts_and_stops_leave_nothing_behind(cluster: ServedCluster, group: str) -> None:
    topic = cluster.topic()

    async def life() -> None:
        async with (
            Producer(cluster.namesrv, group=group) as producer,
            PushConsumer(cluster.namesrv, group=group, topics={topic: "*"}),
            LitePullConsumer(cluster.namesrv, group=f"{group}-2", topics={topic: "*"}),
        ):
            await producer.send(Message(topic, b"x"))

    async def main() -> None:
        await life()
        await asyncio.to_thread(cluster.settle)
        before = open_files(), threads(), left_in(asyncio.get_running_loop())
        for _ in range(ROUNDS):
            await life()
        await asyncio.to_thread(cluster.settle)
        assert (open_files(), threads(), left_in(asyncio.get_running_loop())) == before

    asyncio.run(main())


def test_a_child_of_a_fork_is_told_to_make_its_own(cluster: ServedCluster, group: str) -> None:
    topic = cluster.topic()

    async def in_child(producer: Producer) -> int:
        """0 where the parent's producer is refused, and one of the child's own works."""
        try:
            await producer.send(Message(topic, b"of the child"))
            return 1
        except ForkedProcess as error:
            if "after the fork" not in str(error):
                return 2
        async with Producer(cluster.namesrv, group=group) as own:
            return 0 if (await own.send(Message(topic, b"of the child"))).queue_offset == 1 else 3

    async def main() -> None:
        async with Producer(cluster.namesrv, group=group) as producer:
            await producer.send(Message(topic, b"of the parent"))
            child = os.fork()
            if not child:
                os._exit(asyncio.run(in_child(producer)))
            _, status = await asyncio.to_thread(os.waitpid, child, 0)
            assert os.waitstatus_to_exitcode(status) == 0
            assert (await producer.send(Message(topic, b"of the parent"))).queue_offset == 2

    asyncio.run(main())


def test_each_of_many_loops_has_its_own(cluster: ServedCluster, group: str) -> None:
    topic, seen = cluster.topic(), []

    async def main() -> None:
        async with Producer(cluster.namesrv, group=group) as producer:
            await producer.send(Message(topic, b"x"))
        async with PushConsumer(cluster.namesrv, group=group, topics={topic: "*"}, options=FIRST) as consumer:
            async for message in consumer:
                await message.ack()
                seen.append(message.queue_offset)
                break

    for _ in range(3):
        asyncio.run(main())
    assert seen == [0, 1, 2]


def test_on_uvloop(cluster: ServedCluster, group: str) -> None:
    topic = cluster.topic()

    async def main() -> None:
        assert type(asyncio.get_running_loop()).__module__.startswith("uvloop")
        host = f"localhost:{cluster.namesrv.rpartition(':')[2]}"
        async with Producer(host, group=group) as producer:
            await asyncio.gather(*(producer.send(Message(topic, b"x" * 100_000)) for _ in range(50)))
        async with PushConsumer(host, group=group, topics={topic: "*"}, options=FIRST) as consumer:
            seen = 0
            async for message in consumer:
                await message.ack()
                seen += 1
                if seen == 50:
                    break
        assert cluster.committed(group, topic) == 50

    uvloop.run(main())


def test_other_tasks_run_beside_messages_that_are_there_already(cluster: ServedCluster, group: str) -> None:
    topic = cluster.topic()

    async def main() -> None:
        async with Producer(cluster.namesrv, group=group) as producer:
            for _ in range(7):
                await producer.send_batch([Message(topic, b"x")] * 100)
        turns = itertools.count()

        async def tick() -> None:
            while True:
                next(turns)
                await asyncio.sleep(0)

        async with PushConsumer(cluster.namesrv, group=group, topics={topic: "*"}, options=FIRST) as consumer:
            messages = consumer.messages()
            await (await anext(messages)).ack()
            await asyncio.sleep(0.1)  # more is pulled
            ticking = asyncio.create_task(tick())
            for _ in range(600):
                await (await anext(messages)).ack()
            ticking.cancel()
        assert next(turns) >= 5

    asyncio.run(main())
