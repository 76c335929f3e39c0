"""Peeks count as reads of the group that asks."""

from __future__ import annotations

from pathlib import Path

from tests.support.pop import PopDesk
from twisted_mq.protocol.codes import RequestCode


def test_only_a_peek_that_shows_messages_is_counted_as_a_read(tmp_path: Path) -> None:
    desk = PopDesk(tmp_path)
    desk.send("a", "b", queue=1)
    fields = {"consumerGroup": "G", "topic": "T", "maxMsgNums": "9"}
    assert [desk.peer.ask(RequestCode.PEEK_MESSAGE, {**fields, "queueId": str(n)}).code for n in range(2)] == [19, 0]
    statistics = desk.controller.statistics
    counted = {queue_id: one.messages for queue_id, one in statistics.gets["T@G"].items()}
    assert (statistics.get_found, statistics.get_messages, counted) == (1, 2, {1: 2})
