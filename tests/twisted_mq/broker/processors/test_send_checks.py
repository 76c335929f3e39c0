"""Sends that are refused because of their topic."""

from __future__ import annotations

import re

import pytest

from tests.support.broker import BrokerInMemory
from tests.twisted_mq.broker.processors.test_send import send
from twisted_mq.protocol.bodies import TopicConfig
from twisted_mq.protocol.codes import ResponseCode

FORBIDDEN = (ResponseCode.NO_PERMISSION, "the broker[127.0.0.2] sending message is forbidden")


@pytest.mark.parametrize(
    ("order", "permission", "outcome"),
    [(False, 6, (0, None)), (False, 4, (0, None)), (True, 6, (0, None)), (True, 4, FORBIDDEN)],
    ids=["plain", "plain, read-only broker", "in order", "in order, read-only broker"],
)
def test_read_only_broker_refuses_sends_to_topics_in_order(
    order: bool, permission: int, outcome: tuple[int, str | None]
) -> None:
    broker = BrokerInMemory(broker_permission=permission)
    broker.controller.topics.update([TopicConfig(topic_name="T", order=order)])
    answer = send(broker.connect())
    assert (answer.code, answer.remark) == outcome


def test_broker_that_does_not_accept_sends_yet_says_from_when_on_to_the_millisecond() -> None:
    broker = BrokerInMemory(start_accept_send_request_time_stamp=4_102_444_800_123)
    answer = send(broker.connect())
    expected = r"broker unable to service, until 2\d{3}-\d\d-\d\d \d\d:\d\d:00,123"
    assert (answer.code, bool(re.fullmatch(expected, answer.remark or ""))) == (ResponseCode.SYSTEM_ERROR, True)


@pytest.mark.parametrize(("queue", "code"), [("7", 0), ("8", ResponseCode.INVALID_PARAMETER)])
def test_queues_of_a_send_are_those_of_its_topic(queue: str, code: int) -> None:
    """A topic has as many queues as there are to write or to read, whichever are more."""
    broker = BrokerInMemory()
    broker.controller.topics.update([TopicConfig(topic_name="T", read_queue_nums=8, write_queue_nums=4)])
    answer = send(broker.connect(), queue=queue)
    assert (answer.code, f"queueId[{queue}] is illegal" in (answer.remark or "")) == (code, code != 0)
