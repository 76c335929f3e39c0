"""Changed invisible times: the new receipt, when the message comes back, and what is refused with nothing changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.pop import BROKER_NAME, PopDesk, bodies, messages
from twisted_mq.protocol.bodies import AckMsg, PopCheckPoint, decode_body
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.protocol.names.system_topics import TIMER_TOPIC

ZEROS = {"popTime": "0", "invisibleTime": "0", "reviveQid": "0"}


@pytest.fixture
def desk(tmp_path: Path) -> PopDesk:
    desk = PopDesk(tmp_path)
    desk.send("a", "b", "c")
    return desk


def popped(desk: PopDesk, **more: Any) -> MessageExt:
    """The second of three messages that were popped; the others are acknowledged."""
    first, second, third = messages(desk.pop(queueId=0, **more))
    desk.ack(first)
    desk.ack(third)
    return second


def test_message_comes_back_at_its_new_time_and_not_at_the_old(desk: PopDesk) -> None:
    message = popped(desk)
    desk.pass_time(8)
    answer = desk.change(message, 20000)
    assert (answer.code, answer.ext_fields) == (
        0, {"popTime": str(desk.now), "invisibleTime": "20000", "reviveQid": "0"}
    )  # fmt: skip
    desk.pass_time(18)
    assert desk.pop().code == 210
    desk.pass_time(8)
    assert bodies(desk.pop()) == ["b"]


def test_message_comes_back_earlier_where_that_is_wanted(desk: PopDesk) -> None:
    desk.change(popped(desk), 1000)
    desk.pass_time(6)
    assert bodies(desk.pop()) == ["b"]
    desk.pass_time(10)
    assert [one.body for one in desk.stored("%RETRY%G_T")] == [b"b"]


def test_new_receipt_acknowledges_and_the_old_one_does_not(desk: PopDesk) -> None:
    message = popped(desk)
    answer = desk.change(message, 10000)
    old = message.properties["POP_CK"]
    desk.ack(message)
    desk.pass_time(16)
    assert bodies(desk.pop()) == ["b"]
    desk.send("d")
    message = messages(desk.pop(queueId=0))[0]
    answer = desk.change(message, 10000)
    message.properties["POP_CK"] = f"3 {answer.ext_fields['popTime']} 10000 0 0 broker-cap 0 3"
    assert old != message.properties["POP_CK"]
    desk.ack(message)
    desk.pass_time(6)
    assert bodies(desk.pop(topic="T", queueId=0)) == []


def test_check_point_and_acknowledgement_are_noted_as_apache_notes_them(desk: PopDesk) -> None:
    message = popped(desk)
    pop_time = desk.now
    desk.pass_time(1)
    desk.change(message, 5000)
    point, ack = desk.stored(TIMER_TOPIC)[-2:]
    assert decode_body(PopCheckPoint, point.body) == PopCheckPoint(
        1, desk.now, 5000, 0, 1, 0, "T", "G", 0, [0], BROKER_NAME
    )
    assert decode_body(AckMsg, ack.body) == AckMsg(1, 0, "G", "T", 0, pop_time, BROKER_NAME)
    assert ack.properties["TIMER_DELIVER_MS"] == str(pop_time + 10000)
    statistics = desk.controller.statistics
    assert (statistics.checkpoints["T@G"].messages, statistics.acks["T@G"].messages) == (2, 3)


BAD = [
    ({"topic": "Nowhere"}, 17, "topic[Nowhere] not exist, apply first please! ", ZEROS),
    ({"queueId": 9}, 13, "queueId[9] is illegal, topic:[T] topicConfig.readQueueNums:[4]", ZEROS),
    ({"offset": 3}, 208, "offset[3] is illegal, T@0 has 0 to 2", ZEROS),
    ({"offset": -1}, 208, "offset[-1] is illegal", ZEROS),
    ({"extraInfo": "1 2"}, 1, "extraInfo: 6 fields are needed at least, got 2 in '1 2'", {}),
    ({"extraInfo": "0 1 1 7 0 b 0 0"}, 13, "reviveQid[7] is illegal", ZEROS),
    ({"invisibleTime": 259200001}, 29, "invisibleTime[259200001] is illegal, 0 to 259200000 ms", ZEROS),
    ({"invisibleTime": -(1 << 62)}, 29, f"invisibleTime[{-(1 << 62)}] is illegal, 0 to 259200000 ms", ZEROS),
    ({"invisibleTime": "x"}, 1, "ChangeInvisibleTimeRequestHeader.invisibleTime: not of type", {}),
]


@pytest.mark.parametrize(("change", "code", "remark", "fields"), BAD)
def test_bad_change_is_refused_and_notes_nothing(
    desk: PopDesk, change: dict[str, Any], code: int, remark: str, fields: dict[str, str]
) -> None:
    message = popped(desk)
    before = len(desk.stored(TIMER_TOPIC))
    answer = desk.change(message, 5000, **change)
    assert (answer.code, (answer.remark or "")[: len(remark)], answer.ext_fields) == (code, remark, fields)
    assert len(desk.stored(TIMER_TOPIC)) == before


def test_change_that_cannot_be_noted_leaves_the_message_as_it_was(desk: PopDesk) -> None:
    message = popped(desk)
    desk.controller.pop.revive_log.put_check_point = lambda point, queue_id: False  # type: ignore[method-assign]
    answer = desk.change(message, 60000)
    assert (answer.code, answer.remark) == (1, "the check point was not stored, the message is not changed")
    desk.pass_time(16)
    assert [one.body for one in desk.stored("%RETRY%G_T")] == [b"b"]


def test_change_whose_acknowledgement_is_not_stored_is_undone(desk: PopDesk) -> None:
    message = popped(desk, invisibleTime=60000)
    points = desk.controller.statistics.checkpoints["T@G"].messages
    desk.broker.options.timer_max_delay_sec = 30
    answer = desk.change(message, 5000)
    remark = "the acknowledgement was not stored, acknowledge again: topic=T queue=0 offset=1"
    assert (answer.code, answer.remark) == (1, remark)
    assert desk.controller.statistics.checkpoints["T@G"].messages == points
    desk.broker.options.timer_max_delay_sec = 3600
    desk.pass_time(16)
    assert desk.stored("%RETRY%G_T") == []
    assert desk.ack(message).code == 0
    desk.pass_time(60)
    assert desk.stored("%RETRY%G_T") == []


def test_change_in_the_millisecond_of_the_pop_concerns_the_one_message_alone(desk: PopDesk) -> None:
    """Its check point would else replace the pop's, and the old receipt's acknowledgement would count for it."""
    first = messages(desk.pop(queueId=0))[0]
    again = first.properties["POP_CK"].split()
    for _ in range(2):
        answer = desk.change(first, 10000)
        again[0], again[1] = "0", answer.ext_fields["popTime"]
        first.properties["POP_CK"] = " ".join(again)
    desk.pass_time(20)
    assert sorted(bodies(desk.pop())) == ["a", "b", "c"]
