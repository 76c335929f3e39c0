"""Sends that are refused because of their topic."""

from __future__ import annotations

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
