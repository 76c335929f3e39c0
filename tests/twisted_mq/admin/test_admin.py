"""`Admin` in its three faces, against a broker and a name server on another thread."""

from __future__ import annotations

import asyncio
import inspect
import json
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
import pytest
from twisted.internet.defer import Deferred

from tests.support.faces import ServedCluster, stopped
from twisted_mq import aio, blocking, client
from twisted_mq.blocking import (
    Admin,
    AdminError,
    BrokerError,
    ClientOptionIllegal,
    ClientStateError,
    GroupNotFound,
    Message,
    NameServerUnreachable,
    Producer,
    PushConsumer,
    SendResult,
    TopicExists,
    TopicKind,
    TopicNotFound,
    User,
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
    assert dict(admin.alter_topic(name, attributes={"message.type": None}).settings[0].attributes) == {}
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


# offsets


def sent(cluster: ServedCluster, topic: str, count: int, **more: Any) -> list[SendResult]:
    with Producer(cluster.namesrv, group=f"P-{topic}") as producer:
        return [producer.send(Message(topic, b"%d" % number, **more)) for number in range(count)]


def test_offsets_are_previewed_and_moved(cluster: ServedCluster, admin: Admin, group: str, name: str) -> None:
    admin.create_topic(name, queues=1)
    queue = sent(cluster, name, 4)[0].queue
    admin.create_group(group)
    (plan,) = admin.reset_offsets(group, name, to="latest")
    assert (plan.queue, plan.before, plan.after, plan.skipped, plan.again, plan.stored) == (queue, None, 4, 4, 0, None)
    assert cluster.committed(group, name) is None
    admin.reset_offsets(group, name, to="latest", preview=False)
    assert cluster.committed(group, name) == 4
    (moved,) = admin.reset_offsets(group, name, to={queue: 1}, preview=False)
    assert (moved.before, moved.after, moved.again, moved.skipped) == (4, 1, 3, 0)
    assert cluster.committed(group, name) == 1
    (moved,) = admin.reset_offsets(group, name, to=datetime.now(UTC) + timedelta(days=1), preview=False)
    assert moved.after == cluster.committed(group, name) == 4
    (moved,) = admin.reset_offsets(group, name, to="earliest", preview=False)
    assert moved.after == cluster.committed(group, name) == 0
    assert moved.stored is not None and abs(moved.stored.timestamp() - time.time()) < 3600
    (plan,) = admin.reset_offsets(group, name, to=time.time() + 3600)
    assert plan.after == 4


def test_a_reset_refuses_what_cannot_be_meant_and_moves_nothing(
    cluster: ServedCluster, admin: Admin, group: str, name: str
) -> None:
    admin.create_topic(name, queues=1)
    queue = sent(cluster, name, 2)[0].queue
    wrong: list[Any] = [
        5.0,
        time.time() * 1000,
        "beginning",
        {queue: 3},
        {queue: -1},
        {attrs.evolve(queue, queue_id=9): 0},
    ]
    for to in [*wrong, {attrs.evolve(queue, topic="Other"): 0}]:
        with pytest.raises(ClientOptionIllegal, match="to"):
            admin.reset_offsets(group, name, to=to, preview=False)
    assert cluster.committed(group, name) is None
    with pytest.raises(TopicNotFound):
        admin.reset_offsets(group, f"{name}-2", to="latest")


def test_offsets_are_copied_to_a_group_that_no_broker_knows(
    cluster: ServedCluster, admin: Admin, group: str, name: str
) -> None:
    admin.create_topic(name, queues=1)
    queue = sent(cluster, name, 3)[0].queue
    admin.reset_offsets(group, name, to={queue: 2}, preview=False)
    assert [one.after for one in admin.copy_offsets(group, f"{group}-2", name)] == [2]
    assert cluster.committed(f"{group}-2", name) is None
    admin.copy_offsets(group, f"{group}-2", name, preview=False)
    assert cluster.committed(f"{group}-2", name) == 2


def test_a_member_continues_where_its_group_was_moved(
    cluster: ServedCluster, admin: Admin, group: str, name: str
) -> None:
    admin.create_topic(name, queues=1)
    sent(cluster, name, 3)
    options = client.ConsumerOptions(consume_from_where=client.ConsumeFromWhere.FIRST_OFFSET)
    with PushConsumer(cluster.namesrv, group=group, topics={name: "*"}, options=options) as consumer:
        received = consumer.messages(timeout=30)
        for number in range(3):
            message = next(received)
            message.ack()
            assert message.body == b"%d" % number
        admin.reset_offsets(group, name, to="earliest", preview=False)
        sent(cluster, name, 1)
        assert next(received).queue_offset == 0


# messages and dead letters


def test_finds_messages_by_id_key_and_time(cluster: ServedCluster, admin: Admin, name: str) -> None:
    admin.create_topic(name, queues=2)
    begin = time.time() - 60
    results = sent(cluster, name, 5, keys=["order-17"])
    (one,) = admin.messages(name, message_id=results[3].msg_id)
    assert one.body == b"3"
    (one,) = admin.messages(name, message_id=results[3].offset_msg_id)
    assert one.body == b"3"
    assert {one.body for one in admin.messages(name, key="order-17")} == {b"0", b"1", b"2", b"3", b"4"}
    assert admin.messages(name, key="order-18") == admin.messages(name, message_id="0" * 32) == []
    assert len(admin.messages(name, since=begin)) == len(admin.messages(name)) == 5
    assert len(admin.messages(name, limit=3)) == 3
    assert admin.messages(name, until=begin) == admin.messages(name, since=begin + 3600) == []
    for wrong in ({"since": begin * 1000}, {"limit": 0}, {"message_id": "A", "key": "B"}):
        with pytest.raises(ClientOptionIllegal, match=next(iter(wrong))):
            admin.messages(name, **wrong)  # type: ignore[arg-type]
    with pytest.raises(TopicNotFound):
        admin.messages(f"{name}-2")


def test_lists_exports_and_resends_dead_letters(cluster: ServedCluster, admin: Admin, group: str, name: str) -> None:
    admin.create_topic(name, queues=1)
    admin.create_group(group, retry_max_times=0)
    sent(cluster, name, 2, tags="new")
    assert admin.dead_letters(group) == admin.export_dead_letters(group) == []
    with pytest.raises(AdminError, match="dead_letter_groups"):
        admin.resend_dead_letters(group)
    options = client.ConsumerOptions(consume_from_where=client.ConsumeFromWhere.FIRST_OFFSET)
    with PushConsumer(cluster.namesrv, group=group, topics={name: "*"}, options=options) as consumer:
        received = consumer.messages(timeout=30)
        for _ in range(2):
            next(received).retry(delay_level=-1)
        while len(admin.dead_letters(group)) < 2:
            time.sleep(0.05)
    assert [one.body for one in admin.dead_letters(group)] == [b"0", b"1"]
    assert len(admin.dead_letters(group, limit=1)) == 1
    assert [json.loads(line)["body"] for line in admin.export_dead_letters(group)] == ["0", "1"]
    (held,) = (one for one in admin.dead_letter_groups() if one.group == group)
    assert (held.messages, held.not_resent) == (2, 2)
    assert [one.result for one in admin.resend_dead_letters(group, preview=True)] == [None, None]
    (again,) = admin.resend_dead_letters(group, message_id=admin.dead_letters(group)[1].msg_id)
    assert (again.message.topic, again.message.body, again.message.tags) == (name, b"1", "new")
    assert [one.message.body for one in admin.resend_dead_letters(group)] == [b"0", b"1"]
    assert admin.resend_dead_letters(group) == []
    assert admin.describe_topic(name).messages == 5


# the cluster


def test_lists_clusters_and_brokers(cluster: ServedCluster, admin: Admin) -> None:
    assert admin.list_clusters() == {"DefaultCluster": ["broker-a"]}
    (broker,) = admin.list_brokers()
    assert (broker.cluster, broker.name, broker.is_master, broker.problem) == ("DefaultCluster", "broker-a", True, None)
    assert broker.version
    assert admin.broker_settings(broker.address)["brokerName"] == "broker-a"


SECRET = "long-enough-for-a-root"
ACCESS = {
    "authentication_enabled": True,
    "authorization_enabled": True,
    "init_authentication_user": json.dumps({"username": "root", "password": SECRET}),
    "inner_client_authentication_credentials": json.dumps({"accessKey": "inner", "secretKey": "of-the-servers"}),
}


def test_creates_users_and_their_rights(name: str) -> None:
    with stopped(ServedCluster(broker_options=ACCESS)) as guarded:
        with Admin(guarded.namesrv, options=client.ClientOptions(access_key="root", secret_key=SECRET)) as admin:
            admin.create_user(name, "secret-of-17")
            assert [one for one in admin.list_users() if one.name == name] == [User(name, "Normal", "enable")]
            admin.grant(name, "Topic:Orders", ["Pub", "Sub"])
            admin.grant(name, "Group:audit", ["Sub"], allow=False)
            rights = {one.resource: one for one in admin.list_rights(name)}
            assert set(rights) == {"Topic:Orders", "Group:audit"}
            assert (rights["Topic:Orders"].actions, rights["Topic:Orders"].allowed) == (("Pub", "Sub"), True)
            assert not rights["Group:audit"].allowed
            admin.revoke(name, "Topic:Orders")
            assert [one.resource for one in admin.list_rights(name)] == ["Group:audit"]
            admin.delete_user(name)
            assert name not in [one.name for one in admin.list_users()]
        with Admin(guarded.namesrv) as unsigned, pytest.raises(BrokerError):
            unsigned.list_users()
