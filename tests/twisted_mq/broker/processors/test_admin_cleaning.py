"""Cleans that operators ask for leave a line in the log."""

from __future__ import annotations

import pytest
from twisted.logger import capturedLogs, formatEvent

from tests.support.broker import BrokerInMemory
from tests.twisted_mq.broker.processors.test_send import send
from twisted_mq.protocol.codes import RequestCode

LINES = {
    RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE: "expired queues deleted: count=0 peer=127.0.0.1:52174",
    RequestCode.CLEAN_UNUSED_TOPIC: "queues of deleted topics deleted: topics=1 peer=127.0.0.1:52174",
    RequestCode.DELETE_EXPIRED_COMMITLOG: "expired log files are to be deleted: peer=127.0.0.1:52174",
}


@pytest.mark.parametrize("code", LINES, ids=lambda code: code.name)
def test_log_says_what_was_cleaned_and_for_whom(code: RequestCode) -> None:
    broker = BrokerInMemory()
    peer = broker.connect()
    send(peer, topic="gone")
    del broker.controller.topics.topics["gone"]
    with capturedLogs() as events:
        assert peer.ask(code).code == 0
    assert [formatEvent(event) for event in events] == [LINES[code]]
