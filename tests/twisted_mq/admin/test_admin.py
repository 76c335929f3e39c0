"""`Admin` in its three faces, against a broker and a name server on another thread."""

from __future__ import annotations

import asyncio
import inspect
import uuid
from collections.abc import Iterator

import pytest
from twisted.internet.defer import Deferred

from tests.support.faces import ServedCluster
from twisted_mq import aio, blocking, client
from twisted_mq.blocking import (
    Admin,
    AdminError,
    ClientOptionIllegal,
    ClientStateError,
    GroupNotFound,
    Message,
    NameServerUnreachable,
    Producer,
    PushConsumer,
    TopicExists,
    TopicKind,
    TopicNotFound,
)


@pytest.fixture(scope="module")
def admin(cluster: ServedCluster) -> Iterator[Admin]:
    with Admin(cluster.namesrv) as started:
        yield started


@pytest.fixture
def name() -> str:
    return f"T-{uuid.uuid4().hex[:12]}"


def methods(face: type) -> set[str]:
    return {name for name, value in inspect.getmembers(face, callable) if not name.startswith("_")}


def test_the_faces_have_the_same_methods_and_arguments() -> None:
    core = methods(client.Admin)
    assert core >= {"create_topic", "list_topics", "lag"}
    assert core == methods(aio.Admin) == methods(blocking.Admin)
    for name in core - {"start", "stop"}:
        signatures = {str(inspect.signature(getattr(face, name))) for face in (client.Admin, aio.Admin, blocking.Admin)}
        assert len(signatures) == 1, name


def test_creates_describes_alters_lists_and_deletes_a_topic(admin: Admin, name: str) -> None:
    created = admin.create_topic(name, queues=3, order=True, attributes={"message.type": "FIFO"})
    (settings,) = created.settings
    assert (settings.read_queues, settings.write_queues, settings.order) == (3, 3, True)
    assert dict(settings.attributes) == {"message.type": "FIFO"}
    assert created == admin.describe_topic(name)
    assert (created.kind, len(created.queues), created.messages) == (TopicKind.NORMAL, 3, 0)
    assert {(one.begin, one.end, one.last_stored) for one in created.queues} == {(0, 0, None)}
    altered = admin.alter_topic(name, queues=5, writable=False).settings[0]
    assert (altered.write_queues, altered.readable, altered.writable, altered.order) == (5, True, False, True)
    assert dict(altered.attributes) == {"message.type": "FIFO"}
    assert name in admin.list_topics()
    admin.delete_topic(name)
    assert name not in admin.list_topics()
    with pytest.raises(TopicNotFound, match=name):
        admin.describe_topic(name)


def test_a_description_counts_messages_and_names_when_the_last_was_stored(
    cluster: ServedCluster, admin: Admin, name: str
) -> None:
    admin.create_topic(name, queues=1)
    with Producer(cluster.namesrv, group=f"P-{name}") as producer:
        for number in range(3):
            producer.send(Message(name, b"%d" % number))
    described = admin.describe_topic(name)
    (queue,) = described.queues
    assert (described.messages, queue.begin, queue.end) == (3, 0, 3)
    assert queue.last_stored is not None and queue.last_stored.tzinfo is not None


def test_errors_are_those_of_the_client(admin: Admin, name: str) -> None:
    admin.create_topic(name)
    with pytest.raises(TopicExists, match="alter_topic"):
        admin.create_topic(name)
    with pytest.raises(ClientOptionIllegal, match="queues"):
        admin.create_topic(f"{name}-2", queues=0)
    with pytest.raises(ClientOptionIllegal, match="topic"):
        admin.create_topic("no topic!")
    with pytest.raises(AdminError, match="DefaultCluster"):
        admin.create_topic(f"{name}-2", cluster="Unknown")
    with pytest.raises(TopicNotFound):
        admin.delete_topic(f"{name}-2")
    with Admin("127.0.0.1:1") as other, pytest.raises(NameServerUnreachable, match=r"127\.0\.0\.1:1"):
        other.list_topics()
    with pytest.raises(ClientStateError):
        Admin("127.0.0.1:1").list_topics()


def test_creates_describes_lists_and_deletes_a_group(admin: Admin, group: str) -> None:
    admin.create_group(group, retry_max_times=3, order=True)
    described = admin.describe_group(group)
    assert (described.members, described.subscriptions, described.message_model) == ((), {}, None)
    assert (described.retry_max_times, described.order) == (3, True)
    assert group in admin.list_groups()
    assert not {one for one in admin.list_groups() if one.startswith("CID_RMQ_SYS_TRANS")}
    admin.delete_group(group)
    assert group not in admin.list_groups()
    with pytest.raises(GroupNotFound, match=group):
        admin.describe_group(group)
    with pytest.raises(GroupNotFound, match=group):
        admin.delete_group(group)


def test_a_group_has_members_subscriptions_and_a_lag(
    cluster: ServedCluster, admin: Admin, group: str, name: str
) -> None:
    admin.create_topic(name, queues=1)
    options = client.ConsumerOptions(consume_from_where=client.ConsumeFromWhere.FIRST_OFFSET)
    with Producer(cluster.namesrv, group=f"P-{name}") as producer:
        for number in range(4):
            producer.send(Message(name, b"%d" % number, tags="new"))
    with PushConsumer(
        cluster.namesrv, group=group, topics={name: "new || old"}, options=options, instance_name=name
    ) as consumer:
        next(iter(consumer.messages(timeout=20))).ack()
        described = admin.describe_group(group)
        assert [one.client_id.partition("@")[2] for one in described.members] == [name]
        assert described.subscriptions[name] in ("new || old", "old || new")
        assert described.message_model == "CLUSTERING"
    (one,) = admin.lag(group, name)
    assert (one.queue.topic, one.committed, one.end, one.waiting) == (name, 1, 4, 3)


def test_asyncio_awaits_the_same_answers(cluster: ServedCluster, name: str) -> None:
    async def main() -> None:
        async with aio.Admin(cluster.namesrv) as admin:
            created = await admin.create_topic(name, queues=2)
            assert await admin.describe_topic(name) == created
            assert name in await admin.list_topics()
            with pytest.raises(aio.TopicExists):
                await admin.create_topic(name)
            await admin.delete_topic(name)
        with pytest.raises(aio.ClientStateError):
            await admin.list_topics()

    asyncio.run(main())


def test_deferreds_have_the_same_answers(cluster: ServedCluster, name: str) -> None:
    async def work() -> None:
        admin = client.Admin(cluster.reactor, cluster.namesrv)
        await admin.start()
        created = admin.create_topic(name, queues=2)
        assert isinstance(created, Deferred)
        assert (await created).name == name
        await admin.stop()
        await admin.stop()
        with pytest.raises(ClientStateError):
            await admin.list_topics()

    cluster.run(work)
