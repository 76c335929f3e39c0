"""Notices of name servers that the lowest id of the broker's name changed."""

from __future__ import annotations

import pytest

from tests.support.broker import BrokerInMemory
from twisted_mq.protocol.codes import RequestCode, ResponseCode


@pytest.mark.parametrize(
    ("lowest", "code", "looks"), [("1", ResponseCode.SUCCESS, 1), ("one", ResponseCode.SYSTEM_ERROR, 0)]
)
def test_a_malformed_notice_is_refused_and_nobody_is_asked(lowest: str, code: int, looks: int) -> None:
    broker = BrokerInMemory()
    asked: list[None] = []
    broker.controller.ha.group_changed = lambda: asked.append(None)
    answer = broker.connect().ask(RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE, {"minBrokerId": lowest})
    assert (answer.code, len(asked)) == (code, looks)
