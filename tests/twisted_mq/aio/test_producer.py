"""Producers in an asyncio program, against a broker on another thread."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from tests.support.faces import ServedCluster
from twisted_mq.aio import (
    ClientOptionIllegal,
    ClientStateError,
    LitePullConsumer,
    Message,
    MessageIllegal,
    MQClient,
    NameServerUnreachable,
    Producer,
    PushConsumer,
    SendStatus,
    TransactionProducer,
    TransactionState,
)

FACES = [Producer, PushConsumer, LitePullConsumer]


def test_sends_one_by_one_and_at_once(cluster: ServedCluster, group: str) -> None:
    async def main() -> None:
        topic = cluster.topic()
        async with Producer(cluster.namesrv, group=group) as producer:
            first = await producer.send(Message(topic, b"one", tags="new"))
            rest = await asyncio.gather(*(producer.send(Message(topic, b"%d" % number)) for number in range(100)))
            batch = await producer.send_batch([Message(topic, b"a"), Message(topic, b"b")])
            by_key = await producer.send_by_key(Message(topic, b"k"), "order-1")
            await producer.send_one_way(Message(topic, b"w"))
            queues = await producer.publish_queues(topic)
        assert (first.status, first.queue_offset) == (SendStatus.SEND_OK, 0)
        assert sorted(result.queue_offset for result in rest) == list(range(1, 101))
        assert (batch.queue_offset, by_key.queue_offset) == (101, 103)
        assert queues == (first.queue,)

    asyncio.run(main())


def test_errors_are_those_of_the_client(cluster: ServedCluster, group: str) -> None:
    async def main() -> None:
        async with Producer(cluster.namesrv, group=group) as producer:
            with pytest.raises(MessageIllegal, match="the body is empty"):
                await producer.send(Message("T", b""))
            with pytest.raises(MessageIllegal, match="handle"):
                await producer.recall("T", "no handle")
        async with Producer("127.0.0.1:1", group=group) as producer:
            with pytest.raises(NameServerUnreachable, match=r"127\.0\.0\.1:1"):
                await producer.send(Message("T", b"x"))

    asyncio.run(main())


@pytest.mark.parametrize("made", FACES)
def test_misspelt_argument_names_the_class_that_was_called(made: type) -> None:
    with pytest.raises(TypeError, match=rf"^{made.__name__}.__init__\(\) got an unexpected keyword argument 'grupo'"):
        made("127.0.0.1:1", group="g", grupo="h")


@pytest.mark.parametrize("made", FACES)
def test_bad_arguments_are_refused_before_anything_runs(made: type) -> None:
    with pytest.raises(ClientOptionIllegal, match="a b"):
        made("127.0.0.1:1", group="a b")
    with pytest.raises(ClientOptionIllegal, match="no port"):
        made("no port", group="g")


def test_used_before_the_start_and_after_the_stop_it_says_so(cluster: ServedCluster, group: str) -> None:
    async def main() -> None:
        producer = Producer(cluster.namesrv, group=group)
        with pytest.raises(ClientStateError, match="start"):
            await producer.send(Message("T", b"x"))
        async with producer:
            pass
        with pytest.raises(ClientStateError, match="not running"):
            await producer.send(Message("T", b"x"))
        await producer.stop()

    asyncio.run(main())


def test_started_again_in_another_loop_it_works_there(cluster: ServedCluster, group: str) -> None:
    topic, producer = cluster.topic(), Producer(cluster.namesrv, group=group)

    async def main() -> int:
        async with producer:
            return (await producer.send(Message(topic, b"x"))).queue_offset

    assert [asyncio.run(main()), asyncio.run(main())] == [0, 1]


def test_another_loop_than_that_of_its_start_is_refused(cluster: ServedCluster, group: str) -> None:
    async def main() -> None:
        async with Producer(cluster.namesrv, group=group) as producer:

            async def elsewhere() -> None:
                for call in (producer.send(Message("T", b"x")), producer.start(), producer.stop()):
                    with pytest.raises(ClientStateError, match="another event loop"):
                        await call

            await asyncio.to_thread(asyncio.run, elsewhere())

    asyncio.run(main())


def test_members_of_one_client_share_its_connections(cluster: ServedCluster, group: str) -> None:
    async def main() -> None:
        topic, client = cluster.topic(), MQClient(cluster.namesrv)
        async with (
            Producer(group=group, client=client) as one,
            Producer(group=f"{group}-2", client=client) as other,
        ):
            await one.send(Message(topic, b"x"))
            await other.send(Message(topic, b"x"))
            channels = client.core.remoting._channels
            assert sorted(channels) == sorted([cluster.namesrv, cluster.cluster.broker_address])

    asyncio.run(main())


def test_local_transactions_are_coroutines_of_the_loop(cluster: ServedCluster, group: str) -> None:
    booked: list[bytes] = []

    async def book(message: Message) -> TransactionState:
        await asyncio.sleep(0)
        booked.append(message.body)
        return TransactionState.COMMIT

    async def fail(message: Message) -> TransactionState:
        await asyncio.sleep(0)
        raise ValueError("no room")

    async def was_booked(message: object) -> TransactionState:
        await asyncio.sleep(0)
        return TransactionState.ROLLBACK

    async def main() -> None:
        topic = cluster.topic()
        async with TransactionProducer(cluster.namesrv, group=group, check=was_booked) as producer:
            done = await producer.send_in_transaction(Message(topic, b"room 12"), book)
            failed = await producer.send_in_transaction(Message(topic, b"room 13"), fail)
        assert (done.state, done.error, booked) == (TransactionState.COMMIT, None, [b"room 12"])
        assert (failed.state, repr(failed.error)) == (TransactionState.UNKNOWN, "ValueError('no room')")

    asyncio.run(main())


def test_a_send_that_is_cancelled_leaves_nothing_waiting(cluster: ServedCluster, group: str) -> None:
    async def main() -> None:
        topic = cluster.topic()
        async with Producer(cluster.namesrv, group=group) as producer:
            await producer.send(Message(topic, b"x"))
            sending = asyncio.create_task(producer.send(Message(topic, b"y")))
            await asyncio.sleep(0)
            sending.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await sending
            await asyncio.sleep(0)
            (broker,) = (
                channel
                for address, channel in producer._core.client.remoting._channels.items()
                if address == cluster.cluster.broker_address
            )
            assert (await producer.send(Message(topic, b"z"))).status is SendStatus.SEND_OK
            assert len(broker._awaited.requests) == 0
            assert (producer._core.window.count, producer.metrics.in_flight) == (0, 0)

    asyncio.run(main())
