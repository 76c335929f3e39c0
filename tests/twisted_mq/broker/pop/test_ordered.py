"""Ordered pops: a queue is held until its messages are acknowledged or visible again, and comes back in order."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.ordered_groups import shortened
from tests.support.pop import PopDesk, bits, bodies, messages
from twisted_mq.broker.pop.order_info import NOT_POPPED, NOTHING_TO_COMMIT, ConsumerOrderInfoTable, OrderInfo
from twisted_mq.protocol.bodies import BatchAck
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.protocol.names.pop_receipt import parse_order_counts
from twisted_mq.protocol.names.system_topics import TIMER_TOPIC


@pytest.fixture
def desk(tmp_path: Path) -> PopDesk:
    desk = PopDesk(tmp_path)
    desk.send("a", "b", "c", "d")
    return desk


def pop(desk: PopDesk, count: int = 2, **more: object) -> list[MessageExt]:
    return messages(desk.pop(**{"order": "true", "queueId": 0, "maxMsgNums": count, **more}))


def texts(popped: list[MessageExt]) -> list[str]:
    return [message.body.decode() for message in popped]


def test_queue_is_held_until_all_its_messages_are_acknowledged(desk: PopDesk) -> None:
    first, second = pop(desk)
    assert (texts([first, second]), first.properties["POP_CK"].split()[3]) == (["a", "b"], "999")
    assert pop(desk) == []
    desk.ack(second)
    assert (pop(desk), desk.committed()) == ([], 0)
    desk.ack(first)
    assert (desk.committed(), texts(pop(desk))) == (2, ["c", "d"])
    assert desk.stored(TIMER_TOPIC) == []


def test_messages_come_again_in_order_after_their_time_with_their_counts(desk: PopDesk) -> None:
    first, _ = pop(desk)
    desk.ack(first)
    desk.pass_time(9.9)
    assert pop(desk) == []
    desk.pass_time(0.2)
    answer = desk.pop(order="true", queueId=0, maxMsgNums=2)
    assert bodies(answer) == ["b", "c"]
    counts = parse_order_counts(answer.ext_fields["orderCountInfo"])
    assert counts == {("0", "qo0%1"): 1, ("0", "0"): 0}
    desk.pass_time(10.1)
    answer = desk.pop(order="true", queueId=0, maxMsgNums=2)
    counts = parse_order_counts(answer.ext_fields["orderCountInfo"])
    assert counts == {("0", "qo0%1"): 2, ("0", "qo0%2"): 1, ("0", "0"): 1}


def test_same_attempt_gets_the_same_messages_at_once(desk: PopDesk) -> None:
    assert texts(pop(desk, attemptId="one")) == ["a", "b"]
    assert pop(desk, attemptId="two") == []
    again = desk.pop(order="true", queueId=0, maxMsgNums=2, attemptId="one")
    assert (bodies(again), again.ext_fields["orderCountInfo"]) == (["a", "b"], "0 0 0")


def test_held_queue_lets_others_through(desk: PopDesk) -> None:
    pop(desk)
    desk.send("x", queue=3)
    answer = desk.pop(order="true")
    assert (bodies(answer), answer.ext_fields["restNum"], answer.ext_fields["reviveQid"]) == (["x"], "0", "999")


def test_changed_time_holds_the_queue_longer_or_frees_it(desk: PopDesk) -> None:
    first, second = pop(desk)
    pop_time = desk.now
    desk.pass_time(2)
    answer = desk.change(first, 20000)
    assert (answer.code, answer.ext_fields) == (
        0, {"popTime": str(pop_time), "invisibleTime": str(desk.now + 20000 - pop_time), "reviveQid": "999"}
    )  # fmt: skip
    desk.pass_time(10)
    assert pop(desk) == []
    desk.change(first, 0)
    assert (texts(pop(desk)), second.queue_offset) == (["a", "b"], 1)


def test_change_of_what_is_acknowledged_or_popped_anew_does_nothing(desk: PopDesk) -> None:
    first, second = pop(desk)
    desk.ack(first)
    answer = desk.change(first, 60000)
    assert (answer.code, answer.ext_fields) == (0, {"popTime": "0", "invisibleTime": "0", "reviveQid": "0"})
    desk.pass_time(10.1)
    assert texts(pop(desk, 1)) == ["b"]
    assert desk.change(second, 60000).code == 0
    desk.pass_time(10.1)
    assert texts(pop(desk, 1)) == ["b"]


def test_waiting_pop_is_woken_by_the_last_acknowledgement_and_by_time(desk: PopDesk) -> None:
    first, second = pop(desk)
    consumer = desk.broker.connect()
    desk.hold_pop(consumer, order="true", maxMsgNums=2, pollTime=30000)
    desk.ack(first)
    desk.ack(second)
    desk.pass_time(0.1)
    (answer,) = consumer.received()
    assert bodies(answer) == ["c", "d"]
    desk.hold_pop(consumer, order="true", maxMsgNums=2, pollTime=30000)
    desk.pass_time(10.1)
    (answer,) = consumer.received()
    assert bodies(answer) == ["c", "d"]


def test_batch_acknowledges_in_order_too(desk: PopDesk) -> None:
    pop(desk)
    ack = BatchAck("G", "T", "0", 0, 0, 999, desk.now, 10000, bits(0, 1))
    assert (desk.ack_batch(ack).code, desk.committed()) == (0, 2)


def test_acknowledgement_of_what_was_not_popped_is_refused(desk: PopDesk) -> None:
    first, _ = pop(desk)
    answer = desk.ack(first, offset=3)
    assert (answer.code, answer.remark) == (
        13, "offset is illegal, key:T@G@0, old:0, commit:3, next:-1, /127.0.0.1:52174"
    )  # fmt: skip
    batch = BatchAck("G", "T", "0", 0, 0, 999, desk.now, 10000, bits(3, 0))
    assert (desk.ack_batch(batch).code, desk.committed()) == (13, 1)


def test_acknowledgement_of_an_older_pop_counts_for_nothing(desk: PopDesk) -> None:
    first, second = pop(desk)
    desk.pass_time(10.1)
    pop(desk)
    assert [desk.ack(one).code for one in (first, second)] == [0, 0]
    assert desk.committed() == 0


def test_reset_frees_the_queue(desk: PopDesk) -> None:
    first, _ = pop(desk)
    desk.controller.offsets.reset("G", "T", 0, 3)
    desk.ack(first)
    assert desk.committed() == 3
    assert texts(pop(desk)) == ["d"]


def test_what_is_held_lasts_over_a_restart(desk: PopDesk, tmp_path: Path) -> None:
    table = ConsumerOrderInfoTable(str(tmp_path / "consumerOrderInfo.json"))
    desk.stop()
    desk = PopDesk(tmp_path, restarted=desk, tables={"orders": table})
    first, second = pop(desk)
    desk.ack(first)
    desk.controller.pop.orders.save()
    written = json.loads((tmp_path / "consumerOrderInfo.json").read_text().replace("{0:", '{"0":'))
    assert written == {"table": {"T@G": {"0": {
        "cm": 1, "i": 10000, "l": desk.now, "o": [0, 1], "popTime": desk.now}}}}  # fmt: skip
    desk.stop()
    table = ConsumerOrderInfoTable(str(tmp_path / "consumerOrderInfo.json"))
    table.load()
    again = PopDesk(tmp_path, restarted=desk, tables={"orders": table})
    assert pop(again) == []
    consumer = again.broker.connect()
    again.hold_pop(consumer, order="true", maxMsgNums=2)
    again.pass_time(10.1)
    (answer,) = consumer.received()
    assert (bodies(answer), second.queue_offset) == (["b", "c"], 1)


def test_popped_messages_that_the_log_lost_hold_and_acknowledge_nothing_of_those_in_their_place(
    desk: PopDesk, tmp_path: Path
) -> None:
    table = ConsumerOrderInfoTable(str(tmp_path / "consumerOrderInfo.json"))
    desk.stop()
    desk = PopDesk(tmp_path, restarted=desk, tables={"orders": table})
    *_, last = pop(desk, 4)
    desk.controller.pop.orders.save()
    desk.stop()
    desk.broker.store = shortened(desk.broker.store, 3)
    for name in ("consumerOrderInfo.json", "consumerOrderInfo.json.bak"):
        table = ConsumerOrderInfoTable(str(tmp_path / name))
        table.load()
        again = PopDesk(tmp_path, restarted=desk, tables={"orders": table})
        again.stop()
        table.load()
        assert [(row.offsets, row.pop_time) for row in table.queues["T@G"].values()] == [([], desk.now)]
    again = PopDesk(tmp_path, restarted=desk, tables={"orders": table})
    again.send("x", "y", "z")
    again.ack(last)
    assert again.committed() == 0
    assert texts(pop(again, 9)) == ["a", "x", "y", "z"]


@pytest.mark.parametrize(
    ("code", "fields", "popped"),
    [
        (RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": "T"}, ["e"]),
        (RequestCode.DELETE_SUBSCRIPTIONGROUP, {"groupName": "G", "cleanOffset": "true"}, ["a", "b"]),
    ],
)
def test_topic_or_group_made_anew_at_once_holds_nothing(
    desk: PopDesk, code: int, fields: dict[str, str], popped: list[str]
) -> None:
    pop(desk)
    assert desk.peer.ask(code, fields).code == 0
    desk.send("e")
    assert texts(pop(desk)) == popped


def test_unused_queues_are_forgotten(desk: PopDesk, tmp_path: Path) -> None:
    table, orders = desk.broker.tables["orders"], desk.controller.pop.orders
    pop(desk)
    pop(desk, consumerGroup="Gone")
    desk.controller.groups.delete("Gone")
    orders.save()
    assert list(table.queues) == ["T@G"]
    desk.broker.clock.advance(24 * 3600 + 1)
    orders.save()
    assert table.queues == {}


def test_rules_of_one_queue() -> None:
    info = OrderInfo.of_pop("one", 1000, 1000, 5000, [8, 10, 13])
    assert (info.offsets, info.queue_offsets) == ([8, 2, 5], [8, 10, 13])
    assert [info.visible_again_ms(now) for now in (1000, 5999, 6000)] == [6000, 6000, None]
    assert (info.commit(9, 1000), info.commit(8, 999)) == (NOT_POPPED, NOTHING_TO_COMMIT)
    assert [info.commit(offset, 1000) for offset in (10, 8, 13)] == [8, 13, 14]
    assert info.visible_again_ms(1000) is None
    empty = OrderInfo()
    assert (empty.commit(0, 0), empty.visible_again_ms(0, 5)) == (NOT_POPPED, None)
