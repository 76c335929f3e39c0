"""`Admin` against Apache's servers and against this project's: the same calls, the same answers."""

from __future__ import annotations

import time

import pytest

from interop.peers.clients import unique
from interop.peers.servers import Cluster
from twisted_mq.blocking import (
    Admin,
    ConsumeFromWhere,
    ConsumerOptions,
    GroupNotFound,
    Message,
    Producer,
    PushConsumer,
    TopicExists,
    TopicNotFound,
)


def test_topics(cluster: Cluster) -> None:
    topic = unique("Admin")
    with Admin(cluster.name_server) as admin:
        created = admin.create_topic(topic, queues=3, order=True, attributes={"message.type": "FIFO"})
        (settings,) = created.settings
        assert (settings.read_queues, settings.order, dict(settings.attributes)) == (3, True, {"message.type": "FIFO"})
        assert admin.describe_topic(topic) == created
        with pytest.raises(TopicExists):
            admin.create_topic(topic)
        (settings,) = admin.alter_topic(topic, queues=5, writable=False).settings
        assert (settings.write_queues, settings.readable, settings.writable) == (5, True, False)
        assert topic in admin.list_topics()
        admin.delete_topic(topic)
        assert topic not in admin.list_topics()
        with pytest.raises(TopicNotFound):
            admin.describe_topic(topic)


def test_groups_offsets_messages_and_dead_letters(cluster: Cluster) -> None:
    topic, group = unique("Admin"), unique("AdminGroup")
    options = ConsumerOptions(consume_from_where=ConsumeFromWhere.FIRST_OFFSET)
    with Admin(cluster.name_server) as admin, Producer(cluster.name_server, group=unique("AdminP")) as producer:
        admin.create_topic(topic, queues=1)
        admin.create_group(group, retry_max_times=3)
        assert admin.describe_group(group).retry_max_times == 3
        results = [producer.send(Message(topic, b"%d" % number, keys=["order-17"])) for number in range(3)]
        with PushConsumer(cluster.name_server, group=group, topics={topic: "*"}, options=options) as consumer:
            received = consumer.messages(timeout=60)
            next(received).retry(delay_level=-1)
            for _ in range(2):
                next(received).ack()
            described = admin.describe_group(group)
            assert (len(described.members), described.subscriptions[topic]) == (1, "*")
            while not admin.dead_letters(group):
                time.sleep(0.1)
        (lag,) = admin.lag(group, topic)
        assert (lag.committed, lag.end, lag.waiting) == (3, 3, 0)
        queue = results[0].queue
        (plan,) = admin.reset_offsets(group, topic, to="earliest")
        assert (plan.before, plan.after, plan.again) == (3, 0, 3)
        admin.reset_offsets(group, topic, to={queue: 2}, preview=False)
        assert [one.committed for one in admin.lag(group, topic)] == [2]
        admin.copy_offsets(group, f"{group}-2", topic, preview=False)
        assert [one.committed for one in admin.lag(f"{group}-2", topic)] == [2]
        assert [one.body for one in admin.messages(topic, message_id=results[1].msg_id)] == [b"1"]
        assert {one.body for one in admin.messages(topic, key="order-17")} == {b"0", b"1", b"2"}
        assert len(admin.messages(topic, since=time.time() - 3600, until=time.time() + 3600)) == 3
        assert [one.body for one in admin.dead_letters(group)] == [b"0"]
        assert [one.message.body for one in admin.resend_dead_letters(group)] == [b"0"]
        assert admin.resend_dead_letters(group) == []
        assert group in admin.list_groups()
        admin.delete_group(group)
        assert group not in admin.list_groups()
        with pytest.raises(GroupNotFound):
            admin.describe_group(group)


def test_clusters_and_brokers(cluster: Cluster) -> None:
    with Admin(cluster.name_server) as admin:
        (names,) = admin.list_clusters().values()
        (broker,) = admin.list_brokers()
        assert (names, broker.is_master, broker.problem) == ([broker.name], True, None)
        assert admin.broker_settings(broker.address)["brokerName"] == broker.name
