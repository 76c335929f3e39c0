"""A notification that waits for a topic of very many queues."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.pop import PopDesk
from twisted_mq.broker.pop.reader import SLICE_QUEUES
from twisted_mq.protocol.bodies import TopicConfig
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.wire.command import RemotingCommand

QUEUES = 2 * SLICE_QUEUES


@pytest.mark.parametrize("found", [True, False])
def test_one_that_is_woken_is_answered_after_the_turns_of_its_look(tmp_path: Path, found: bool) -> None:
    """Also where it was woken for nothing: its client asks anew."""
    desk = PopDesk(tmp_path)
    desk.controller.topics.update([TopicConfig("T", QUEUES, QUEUES)])
    peer = desk.broker.connect()
    peer.send(RemotingCommand(RequestCode.NOTIFICATION, ext_fields=desk.pop_fields(pollTime=15000)))
    desk.pass_time(1)
    assert peer.received() == []
    if found:
        desk.send("late", queue=QUEUES - 1)
    else:
        desk.controller.polling.wake("T", "G", QUEUES - 1)
    assert peer.received() == []
    desk.pass_time(1)
    (answer,) = peer.received()
    assert (answer.code, answer.ext_fields["hasMsg"]) == (0, str(found).lower())
