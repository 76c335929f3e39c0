"""Messages with a priority, as in 5.4: each has the queue of its number, and pops begin with the highest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.pop import PopDesk, bodies, messages
from twisted_mq.protocol.bodies import SubscriptionGroupConfig, TopicConfig, encode_body
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.text.properties import encode_properties
from twisted_mq.protocol.wire.command import RemotingCommand

PRIORITY = "_SYS_MSG_PRIORITY_"
QUEUES = 4


def desk_of(root: Path, message_type: str = "PRIORITY", **options: Any) -> PopDesk:
    desk = PopDesk(root, **options)
    config = TopicConfig(
        topic_name="T", read_queue_nums=QUEUES, write_queue_nums=QUEUES, attributes={"message.type": message_type}
    )
    desk.controller.topics.update([config])
    return desk


def sent(desk: PopDesk, body: str, asked_queue: int = 0, topic: str = "T", **properties: str) -> RemotingCommand:
    fields = {"a": "P", "b": topic, "c": "TBW102", "d": "4", "e": str(asked_queue), "f": "0", "g": str(desk.now),
              "h": "0", "j": "0", "k": "false", "m": "false", "i": encode_properties(properties)}  # fmt: skip
    return desk.peer.ask(RequestCode.SEND_MESSAGE_V2, fields, body.encode())


def factor(desk: PopDesk, value: str) -> RemotingCommand:
    config = SubscriptionGroupConfig(group_name="G", attributes={"+priority.factor": value})
    return desk.peer.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=encode_body(config))


def stored(desk: PopDesk, queue_id: int) -> list[tuple[str, str | None]]:
    found = messages(desk.pop(queueId=queue_id))
    return [(one.body.decode(), one.properties.get(PRIORITY)) for one in found]


@pytest.mark.parametrize(
    ("priority", "queue"), [("0", 0), ("2", 2), ("3", 3), ("9", 3), ("-1", 1), ("soon", 1), ("2147483648", 1)]
)
def test_a_priority_is_the_number_of_the_queue_and_the_last_one_takes_all_above(
    tmp_path: Path, priority: str, queue: int
) -> None:
    desk = desk_of(tmp_path, "NORMAL")  # 5.4 looks at the message, not at its topic's type
    answer = sent(desk, "x", asked_queue=1, **{PRIORITY: priority})
    assert (answer.code, answer.ext_fields["queueId"]) == (0, str(queue))
    assert stored(desk, queue) == [("x", priority)]


@pytest.mark.parametrize("topic", ["New", "%RETRY%G"])
def test_the_answer_names_the_queue_also_in_a_new_topic_and_a_retry_topic(tmp_path: Path, topic: str) -> None:
    desk = desk_of(tmp_path)
    desk.controller.topics.update([TopicConfig("%RETRY%G", QUEUES, QUEUES)])
    desk.pop()  # creates the group
    answer = sent(desk, "x", topic=topic, **{PRIORITY: "2"})
    assert (answer.code, answer.ext_fields["queueId"]) == (0, "2")
    assert desk.broker.store.max_offset_in_queue(topic, 2) == 1


@pytest.mark.parametrize("other", [{"__SHARDINGKEY": "k"}, {"DELAY": "1"}, {"TRAN_MSG": "true"}])
def test_a_message_that_waits_or_has_an_order_loses_its_priority(tmp_path: Path, other: dict[str, str]) -> None:
    desk = desk_of(tmp_path)
    answer = sent(desk, "x", asked_queue=1, **{PRIORITY: "3"}, **other)
    assert (answer.code, answer.ext_fields["queueId"]) == (0, "1")
    desk.pass_time(2)
    assert desk.broker.store.max_offset_in_queue("T", 3) == 0
    if "TRAN_MSG" not in other:
        assert stored(desk, 1) == [("x", None)]


@pytest.mark.parametrize(("ascending", "order"), [(True, "dcba"), (False, "abcd")])
def test_pops_take_the_highest_priority_first(tmp_path: Path, ascending: bool, order: str) -> None:
    desk = desk_of(tmp_path, priority_order_asc=ascending)
    for priority, body in enumerate("abcd"):
        for _ in range(2):
            sent(desk, body, **{PRIORITY: str(priority)})
    for _ in range(5):  # wherever they would begin by chance
        assert bodies(desk.pop(consumerGroup=f"G{_}", maxMsgNums=3)) == [order[0], order[0], order[1]]
    assert [body for _ in range(8) for body in bodies(desk.pop(maxMsgNums=1))] == [one for one in order for _ in "12"]


def test_pops_of_a_group_without_a_share_and_of_other_topics_begin_anywhere(tmp_path: Path) -> None:
    firsts = {}
    for name, message_type, share in (("share", "PRIORITY", "0"), ("type", "NORMAL", "100")):
        desk = desk_of(tmp_path / name, message_type)
        for priority in range(QUEUES):
            for number in range(20):
                sent(desk, f"{priority}-{number}", **{PRIORITY: str(priority)})
        assert factor(desk, share).code == 0
        firsts[name] = {bodies(desk.pop(maxMsgNums=1))[0][0] for _ in range(20)}
    assert {name: len(found) > 1 for name, found in firsts.items()} == {"share": True, "type": True}


def test_a_share_is_a_number_up_to_100_and_stays_when_the_group_is_changed_otherwise(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    assert factor(desk, "50").code == 0
    assert factor(desk, "101").remark == "value is not in range(0, 100)"
    other = SubscriptionGroupConfig(group_name="G", retry_max_times=3)
    assert desk.peer.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=encode_body(other)).code == 0
    known = desk.controller.groups.groups["G"]
    assert (known.attributes, known.retry_max_times) == ({"priority.factor": "50"}, 3)
    unknown = SubscriptionGroupConfig(group_name="G", attributes={"+colour": "red"})
    refused = desk.peer.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=encode_body(unknown))
    assert (refused.code, refused.remark) == (1, "unsupported key: colour")


@pytest.mark.parametrize(("chance", "order"), [(0, ["high", "low", "again"]), (100, ["again", "high", "low"])])
def test_retried_messages_come_last_or_first(tmp_path: Path, chance: int, order: list[str]) -> None:
    desk = desk_of(tmp_path, pop_from_retry_probability=100, pop_from_retry_probability_for_priority=chance)
    sent(desk, "again", **{PRIORITY: "3"})
    assert bodies(desk.pop(invisibleTime=1000)) == ["again"]
    desk.pass_time(4)
    sent(desk, "low", **{PRIORITY: "0"})
    sent(desk, "high", **{PRIORITY: "3"})
    assert bodies(desk.pop()) == order
