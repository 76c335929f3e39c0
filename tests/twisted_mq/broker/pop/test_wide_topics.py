"""Pops, peeks and notifications over all queues of a topic of very many go through them in several turns."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.broker import Peer
from tests.support.pop import PopDesk, bodies
from twisted_mq.broker.pop.reader import SLICE_QUEUES
from twisted_mq.protocol.bodies import TopicConfig
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.names.system_topics import SCHEDULE_TOPIC
from twisted_mq.protocol.wire.command import RemotingCommand

QUEUES = 3 * SLICE_QUEUES + 10
LAST = 2 * SLICE_QUEUES + 150
"""Chance picks where a look begins, among the first hundred: it gets here in the third slice."""


@pytest.fixture
def desk(tmp_path: Path) -> PopDesk:
    desk = PopDesk(tmp_path)
    desk.controller.topics.update([TopicConfig("T", QUEUES, QUEUES)])
    return desk


def asked(desk: PopDesk, code: int, **more: object) -> tuple[Peer, list[RemotingCommand]]:
    """Ask, and return the client and the answers of the first turn."""
    peer = desk.broker.connect()
    fields = desk.pop_fields(**more)
    peer.send(RemotingCommand(code, ext_fields=fields))
    return peer, peer.received()


def test_pop_takes_one_slice_a_turn_and_gets_what_all_of_them_have(desk: PopDesk) -> None:
    desk.send("early", queue=120)
    desk.send("late", queue=LAST)
    looks = desk.controller.offsets
    peer, at_once = asked(desk, RequestCode.POP_MESSAGE)
    looked = sum(looks.query("G", "T", queue) is not None for queue in range(QUEUES))
    assert (at_once, looked) == ([], SLICE_QUEUES)
    desk.pass_time(1)
    (answer,) = peer.received()
    assert (bodies(answer), answer.ext_fields["restNum"]) == (["early", "late"], "0")
    assert all(looks.query("G", "T", queue) is not None for queue in range(QUEUES))


def test_pop_that_found_nothing_waits_and_what_wakes_it_is_found_in_several_turns(desk: PopDesk) -> None:
    peer, _ = asked(desk, RequestCode.POP_MESSAGE, pollTime=15000)
    desk.pass_time(1)
    assert peer.received() == []
    desk.send("late", queue=LAST)
    assert peer.received() == []
    desk.pass_time(1)
    (answer,) = peer.received()
    assert bodies(answer) == ["late"]


def test_pop_that_is_woken_for_nothing_is_answered_so_that_its_client_asks_anew(desk: PopDesk) -> None:
    peer, _ = asked(desk, RequestCode.POP_MESSAGE, pollTime=15000)
    desk.pass_time(1)
    desk.controller.polling.wake("T", "G", LAST)
    desk.pass_time(1)
    (answer,) = peer.received()
    assert answer.code == ResponseCode.POLLING_TIMEOUT


@pytest.mark.parametrize(("queue", "found"), [(LAST, "true"), (None, "false")])
def test_notification_looks_into_all_queues(desk: PopDesk, queue: int | None, found: str) -> None:
    if queue is not None:
        desk.send("late", queue=queue)
    peer, at_once = asked(desk, RequestCode.NOTIFICATION)
    assert at_once == []
    desk.pass_time(1)
    (answer,) = peer.received()
    assert answer.ext_fields["hasMsg"] == found


def test_peek_shows_what_all_queues_have(desk: PopDesk) -> None:
    desk.send("early", queue=120)
    desk.send("late", queue=LAST)
    peer, at_once = asked(desk, RequestCode.PEEK_MESSAGE)
    assert at_once == []
    desk.pass_time(1)
    (answer,) = peer.received()
    assert (answer.code, answer.ext_fields["restNum"], len(answer.body) > 0) == (0, "2", True)


@pytest.mark.parametrize("code", [RequestCode.PEEK_MESSAGE, RequestCode.NOTIFICATION])
def test_nothing_more_is_looked_into_for_a_connection_that_is_closed(
    desk: PopDesk, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer, at_once = asked(desk, code)
    looks: list[tuple[str, int]] = []
    store = desk.controller.store
    look = store.max_offset_in_queue
    monkeypatch.setattr(store, "max_offset_in_queue", lambda *queue: (looks.append(queue), look(*queue))[1])
    peer.channel.connectionLost()
    desk.pass_time(1)
    looked_into = [queue for queue in looks if queue[0] != SCHEDULE_TOPIC]  # which has its own turns
    assert (at_once, looked_into, desk.broker.traffic.pending_answers) == ([], [], 0)


def test_a_pop_whose_connection_is_closed_before_its_turn_takes_no_message(desk: PopDesk) -> None:
    desk.send("late", queue=LAST)
    first, _ = asked(desk, RequestCode.PEEK_MESSAGE)
    gone, _ = asked(desk, RequestCode.POP_MESSAGE)
    gone.channel.connectionLost()
    desk.pass_time(1)
    assert len(first.received()) == 1
    peer, _ = asked(desk, RequestCode.POP_MESSAGE)
    desk.pass_time(1)
    assert bodies(*peer.received()) == ["late"]
