"""Kinds of topics and their order."""

from __future__ import annotations

from twisted_mq.spark.jobs.topics import TopicKind, report_order, topic_kind


def test_kinds() -> None:
    topics = ("Orders", "%RETRY%g", "%DLQ%g", "SCHEDULE_TOPIC_XXXX", "rmq_sys_SYNC_BROKER_MEMBER_x", "RMQ_SYS_MINE")
    assert [topic_kind(topic).words for topic in topics] == ["user", "retry", "dead letter", "system", "system", "user"]


def test_users_topics_come_first() -> None:
    topics = ["SELF_TEST_TOPIC", "%DLQ%a", "b", "%RETRY%a", "a"]
    assert sorted(topics, key=report_order) == ["a", "b", "%RETRY%a", "%DLQ%a", "SELF_TEST_TOPIC"]
    assert list(TopicKind) == sorted(TopicKind)
