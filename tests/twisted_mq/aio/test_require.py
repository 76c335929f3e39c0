"""`start(require=...)`: what has to be there before a producer or consumer counts as started."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.faces import ServedCluster
from twisted_mq.aio import (
    Admin,
    BrokersUnreachable,
    ClientOptionIllegal,
    LitePullConsumer,
    Message,
    NameServerUnreachable,
    Producer,
    PushConsumer,
    SendFailed,
    SubscriptionConflict,
    TopicNotFound,
    TransactionProducer,
    TransactionState,
)
from twisted_mq.aio.mq_client import ClientMember
from twisted_mq.client import ClientError, ProducerOptions


def nobody() -> str:
    """Return an address without a listener."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{held.getsockname()[1]}"


def failing(make: Callable[[], ClientMember], expected: type[Exception], require: Any = "cluster") -> str:
    """The text of what a start fails with; the member may be started again, which it is not."""

    async def main() -> str:
        with pytest.raises(expected) as caught:
            await make().start(require=require)
        assert len(asyncio.all_tasks()) == 1
        return str(caught.value)

    return asyncio.run(main())


MADE: list[Callable[[str], ClientMember]] = [
    lambda namesrv: Producer(namesrv, group="g"),
    lambda namesrv: PushConsumer(namesrv, group="g", topics=["T"]),
    lambda namesrv: LitePullConsumer(namesrv, group="g", topics=["T"]),
    Admin,
]


@pytest.mark.parametrize("made", MADE, ids=["producer", "push", "pull", "admin"])
def test_no_name_server(made: Callable[[str], ClientMember]) -> None:
    address = nobody()
    assert address in failing(lambda: made(address), NameServerUnreachable)


@pytest.mark.parametrize("made", MADE, ids=["producer", "push", "pull", "admin"])
def test_brokers_port_in_place_of_the_name_servers(cluster: ServedCluster, made: Callable[[str], ClientMember]) -> None:
    broker = f"127.0.0.1:{cluster.cluster.broker.port}"
    told = failing(lambda: made(broker), NameServerUnreachable)
    assert f"{broker}: the server is not a name server, perhaps a broker (port 10911)" in told
    assert "use the address of the name server, usually with port 9876" in told


def test_send_and_admin_calls_tell_the_same_of_a_brokers_port(cluster: ServedCluster) -> None:
    broker = f"127.0.0.1:{cluster.cluster.broker.port}"

    async def main() -> None:
        async with Producer(broker, group="g", options=ProducerOptions(send_timeout_seconds=0.5)) as producer:
            with pytest.raises((NameServerUnreachable, SendFailed), match="not a name server, perhaps a broker"):
                await producer.send(Message("T", b"x"))
        async with Admin(broker) as admin:
            with pytest.raises(NameServerUnreachable, match="not a name server, perhaps a broker"):
                await admin.list_clusters()

    asyncio.run(main())


def test_name_server_whose_broker_is_away() -> None:
    server = ServedCluster()

    async def stop_broker() -> None:
        await server.cluster.broker.stopService()

    try:
        server.run(stop_broker)
        told = failing(lambda: Producer(server.namesrv, group="g"), BrokersUnreachable)
    finally:
        server.stop()
    assert told == f"name server {server.namesrv} knows no master. Start a broker for it with mq up or twistd mqbroker"


@pytest.mark.parametrize("require", ["cluster", "topics"])
@pytest.mark.parametrize("made", MADE[:3], ids=["producer", "push", "pull"])
def test_what_is_there(cluster: ServedCluster, group: str, made: Callable[[str], ClientMember], require: Any) -> None:
    topic = cluster.topic()

    async def main() -> None:
        member: Any = made(cluster.namesrv)
        if hasattr(member, "subscribe"):
            member.unsubscribe("T")
            member.subscribe(topic)
        await member.start(require=require)
        await member.stop()

    asyncio.run(main())


def test_topic_that_does_not_exist(cluster: ServedCluster, group: str) -> None:
    def made() -> PushConsumer:
        return PushConsumer(cluster.namesrv, group=group, topics=["NoSuchTopic"])

    assert "topic NoSuchTopic does not exist" in failing(made, TopicNotFound, "topics")

    async def main() -> None:
        consumer = made()
        await consumer.start(require="cluster")
        await consumer.stop()

    asyncio.run(main())


def test_members_that_subscribe_to_something_else(cluster: ServedCluster, group: str) -> None:
    topic = cluster.topic()

    async def main() -> None:
        async with PushConsumer(cluster.namesrv, group=group, topics={topic: "paid"}):
            same = PushConsumer(cluster.namesrv, group=group, topics={topic: "paid"})
            await same.start(require="cluster")
            await same.stop()
            other = PushConsumer(cluster.namesrv, group=group, topics={topic: "*"})
            with pytest.raises(SubscriptionConflict) as caught:
                await other.start(require="cluster")
            assert f"its running members subscribe to {topic} (paid), this one to {topic} (*)" in str(caught.value)
        await other.start(require="cluster")  # they are gone
        await other.stop()

    asyncio.run(main())


def test_another_word_is_refused(cluster: ServedCluster) -> None:
    told = failing(lambda: Producer(cluster.namesrv, group="g"), ClientOptionIllegal, "brokers")
    assert told == 'require: \'brokers\' is not valid; write "cluster" or "topics"'


def test_transaction_function_that_returns_nothing(
    cluster: ServedCluster, group: str, caplog: pytest.LogCaptureFixture
) -> None:
    def charge(message: Message) -> Any:
        """Forgets its return."""

    async def charge_later(message: Message) -> Any:
        """As well."""

    async def main() -> list[Any]:
        producer = TransactionProducer(cluster.namesrv, group=group, check=lambda _: TransactionState.UNKNOWN)
        topic = cluster.topic()
        async with producer:
            return [await producer.send_in_transaction(Message(topic, b"x"), one) for one in (charge, charge_later)]

    with caplog.at_level(logging.ERROR):
        results = asyncio.run(main())
    for result, function in zip(results, (charge, charge_later), strict=True):
        assert result.state is TransactionState.UNKNOWN
        assert isinstance(result.error, ClientError)
        assert str(result.error) == (
            f"transaction function {function.__qualname__} returned None; return TransactionState.COMMIT, ROLLBACK or UNKNOWN"
        )
    assert "returned None; return TransactionState.COMMIT" in caplog.text
