"""A broker whose clock is set by an hour: nothing stops, and what is measured by timers is as long as it was to be."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.pop import PopDesk, messages
from tests.twisted_mq.broker.transaction.test_transactions import Desk
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.layouts.record_codec import decode_message
from twisted_mq.protocol.wire.command import RemotingCommand

HOUR_MS = 3_600_000

both_ways = pytest.mark.parametrize("jump_ms", [-HOUR_MS, HOUR_MS], ids=["back", "forward"])


@pytest.fixture
def desk(tmp_path: Path) -> PopDesk:
    return PopDesk(tmp_path)


def delivered(desk: PopDesk) -> list[str]:
    return [message.body.decode() for message in desk.stored("T")]


def after(desk: PopDesk, seconds: float) -> list[str]:
    desk.pass_time(seconds)
    return delivered(desk)


@both_ways
def test_messages_are_stamped_with_the_time_of_day(desk: PopDesk, jump_ms: int) -> None:
    desk.broker.jumped_ms = jump_ms
    desk.send("a")
    (record,) = desk.broker.store.get_message("T", 0, 0, 1, 9999, None).records
    assert decode_message(record).store_timestamp == desk.now + jump_ms


@both_ways
def test_timed_messages_come_in_their_time(desk: PopDesk, jump_ms: int) -> None:
    desk.send("before", TIMER_DELAY_SEC="20")
    desk.pass_time(5)
    desk.broker.jumped_ms = jump_ms
    desk.send("after", TIMER_DELAY_SEC="20")
    desk.send("at", TIMER_DELIVER_MS=str(desk.broker.wall_ms() + 25_000))
    assert after(desk, 13) == []
    assert after(desk, 3) == ["before"]
    assert after(desk, 2) == ["before"]
    assert after(desk, 3) == ["before", "after"]
    assert after(desk, 5) == ["before", "after", "at"]


@both_ways
def test_recall_finds_its_message(tmp_path: Path, jump_ms: int) -> None:
    desk = PopDesk(tmp_path, recall_message_enable=True)
    desk.broker.jumped_ms = jump_ms
    fields = {"a": "P", "b": "T", "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "0", "h": "0",
              "i": "UNIQ_KEY\x01K\x02TIMER_DELAY_SEC\x0120\x02", "j": "0"}  # fmt: skip
    handle = desk.peer.ask(RequestCode.SEND_MESSAGE_V2, fields, b"x").ext_fields["recallHandle"]
    desk.broker.jumped_ms = 0
    answer = desk.peer.ask(RequestCode.RECALL_MESSAGE, {"topic": "T", "producerGroup": "P", "recallHandle": handle})
    assert answer.code == 0
    assert after(desk, 30) == []


@both_ways
def test_delay_levels_are_early_by_their_delay_at_most(desk: PopDesk, jump_ms: int) -> None:
    desk.send("before", DELAY="3")
    desk.pass_time(1)
    desk.broker.jumped_ms = jump_ms
    desk.pass_time(0.2)
    desk.send("after", DELAY="3")
    assert after(desk, 9) == ["before"]
    assert after(desk, 2) == ["before", "after"]


@both_ways
def test_popped_messages_come_back_after_their_invisible_time(desk: PopDesk, jump_ms: int) -> None:
    desk.send("a", "b")
    popped = messages(desk.pop(queueId=0, maxMsgNums=1))
    desk.pass_time(2)
    desk.broker.jumped_ms = jump_ms
    later = messages(desk.pop(queueId=0, maxMsgNums=1))
    assert [message.body for message in popped + later] == [b"a", b"b"]
    desk.pass_time(5)
    assert messages(desk.pop()) == []
    desk.pass_time(25)
    assert sorted(message.body for message in messages(desk.pop())) == [b"a", b"b"]
    assert desk.controller.pop.in_flight.count("T", "G", 0) == 0


@both_ways
def test_ordered_queue_is_free_after_its_invisible_time(desk: PopDesk, jump_ms: int) -> None:
    desk.send("a")
    ordered = {"order": "true", "queueId": 0}
    assert len(messages(desk.pop(**ordered))) == 1
    desk.pass_time(2)
    desk.broker.jumped_ms = jump_ms
    desk.pass_time(7)
    assert messages(desk.pop(**ordered)) == []
    desk.pass_time(2)
    (again,) = messages(desk.pop(**ordered))
    desk.broker.jumped_ms = 0
    desk.change(again, 20_000)
    desk.pass_time(19)
    assert messages(desk.pop(**ordered)) == []
    desk.pass_time(2)
    assert len(messages(desk.pop(**ordered))) == 1


@both_ways
def test_held_pops_end_in_their_time(desk: PopDesk, jump_ms: int) -> None:
    desk.send("a")
    consumer = desk.broker.connect()
    desk.hold_pop(consumer, queueId=1)
    desk.broker.jumped_ms = jump_ms
    desk.pass_time(14.8)
    assert consumer.received() == []
    desk.pass_time(0.4)
    assert [answer.code for answer in consumer.received()] == [210]


def test_undecided_transactions_are_checked_after_the_clock_was_set_back() -> None:
    desk = Desk()
    desk.prepare("K1")
    desk.broker.jumped_ms = -HOUR_MS
    checks: list[RemotingCommand] = desk.check(60)
    assert [check.code for check in checks] == [RequestCode.CHECK_TRANSACTION_STATE]
