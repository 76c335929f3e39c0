"""Pops of new messages: what comes, from where, what is noted of it, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.support.pop import PopDesk, bodies, messages
from twisted_mq.protocol.bodies import BrokerStatsData, PopCheckPoint, TopicConfig, decode_body
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.layouts.record_codec import decode_message
from twisted_mq.protocol.names.system_topics import TIMER_TOPIC
from twisted_mq.protocol.wire.command import RemotingCommand

ZEROS = {"popTime": "0", "invisibleTime": "0", "reviveQid": "0", "restNum": "0"}


@pytest.fixture
def desk(tmp_path: Path) -> PopDesk:
    return PopDesk(tmp_path)


def test_popped_messages_come_as_stored_with_what_receipts_are_made_of(desk: PopDesk) -> None:
    desk.send("a", "b", "c")
    answer = desk.pop(queueId=0, maxMsgNums=2)
    assert (answer.code, answer.remark, bodies(answer)) == (0, "FOUND", ["a", "b"])
    assert answer.ext_fields == {
        "popTime": str(desk.now), "invisibleTime": "10000", "reviveQid": "0", "restNum": "1",
        "startOffsetInfo": "0 0 0", "msgOffsetInfo": "0 0 0,1",
    }  # fmt: skip
    assert bodies(desk.pop(queueId=0)) == ["c"]
    assert desk.committed() == 3


def test_check_point_waits_in_the_timer_as_apache_stores_it(desk: PopDesk) -> None:
    desk.send("a", "b", TAGS="A")
    desk.send("c", TAGS="B")
    desk.send("d", TAGS="A")
    assert bodies(desk.pop(queueId=0, exp="A", expType="TAG")) == ["a", "b", "d"]
    (record,) = desk.broker.store.get_message(TIMER_TOPIC, 0, 0, 9, 9999, None).records
    noted = decode_message(record)
    due = desk.now + 9000
    assert noted.properties == {
        "TAGS": "ck", "UNIQ_KEY": f"T@0@0@G@{desk.now}@broker-cap@ck", "TIMER_DELIVER_MS": str(due),
        "TIMER_OUT_MS": str(due - 1000), "REAL_TOPIC": "rmq_sys_REVIVE_LOG_CapCluster", "REAL_QID": "0",
    }  # fmt: skip
    assert noted.born_host == "127.0.0.2:20911"
    point = PopCheckPoint(0, desk.now, 10000, 0, 3, 0, "T", "G", 0, [0, 1, 3], "broker-cap")
    assert decode_body(PopCheckPoint, noted.body) == point


def test_pop_of_all_queues_begins_with_any_and_says_what_is_left(desk: PopDesk) -> None:
    for queue in range(4):
        desk.send(f"{queue}a", f"{queue}b", queue=queue)
    answer = desk.pop(maxMsgNums=5)
    assert (len(bodies(answer)), answer.ext_fields["restNum"]) == (5, "3")
    assert sorted(bodies(answer) + bodies(desk.pop())) == ["0a", "0b", "1a", "1b", "2a", "2b", "3a", "3b"]


@pytest.mark.parametrize(
    ("exp", "kind", "found"),
    [("*", "TAG", "abc"), ("A || C", "TAG", "ac"), ("n > 1", "SQL92", "bc"), ("", "SQL92", "abc"), ("X", "", "")],
)
def test_pop_takes_what_its_expression_selects(desk: PopDesk, exp: str, kind: str, found: str) -> None:
    for number, body in enumerate("abc", 1):
        desk.send(body, TAGS=body.upper(), n=str(number))
    assert bodies(desk.pop(exp=exp, expType=kind)) == list(found)
    assert desk.committed() == 3


def test_sql_is_served_to_pops_also_where_pulls_may_not_use_it(tmp_path: Path) -> None:
    desk = PopDesk(tmp_path, enable_property_filter=False)
    desk.send("a", n="1")
    assert bodies(desk.pop(exp="n = 1", expType="SQL92")) == ["a"]


def test_new_group_begins_at_the_first_or_the_last_message(desk: PopDesk) -> None:
    desk.send("a", "b", "c")
    assert bodies(desk.pop(consumerGroup="First", initMode=0)) == ["a", "b", "c"]
    assert bodies(desk.pop(consumerGroup="InMemory", initMode=1)) == ["a", "b", "c"]
    desk.broker.options.init_pop_offset_by_check_msg_in_mem = False
    assert bodies(desk.pop(consumerGroup="Last", initMode=1)) == ["c"]


def test_reset_moves_the_next_pop(desk: PopDesk) -> None:
    desk.send("a", "b", "c")
    assert bodies(desk.pop(queueId=0)) == ["a", "b", "c"]
    desk.controller.offsets.reset("G", "T", 0, 1)
    assert bodies(desk.pop(queueId=0)) == ["b", "c"]
    assert (desk.controller.offsets.has_reset("G", "T", 0), desk.committed()) == (False, 3)


def test_offset_outside_of_the_queue_is_put_right(desk: PopDesk) -> None:
    desk.send("a", "b")
    desk.controller.offsets.commit("G", "T", 0, 77)
    assert desk.pop(queueId=0).code == 210
    assert desk.committed() == 2
    desk.send("c")
    assert bodies(desk.pop(queueId=0)) == ["c"]


def test_unordered_pops_take_turns_on_the_revive_logs_queues(tmp_path: Path) -> None:
    desk = PopDesk(tmp_path, revive_queue_num=3)
    assert [desk.pop(topic="CapCluster").ext_fields["reviveQid"] for _ in range(4)] == ["0", "1", "2", "0"]


def test_group_that_holds_too_much_gets_no_more_until_it_acknowledges(tmp_path: Path) -> None:
    desk = PopDesk(tmp_path, enable_pop_message_threshold=True, pop_inflight_message_threshold=1)
    desk.send("a", "b", "c")
    held = messages(desk.pop(queueId=0, maxMsgNums=2))
    refused = desk.pop(queueId=0)
    assert (refused.code, refused.ext_fields["restNum"], desk.committed()) == (210, "1", 2)
    desk.ack(held[0])
    assert bodies(desk.pop(queueId=0)) == ["c"]


def test_statistics_count_pops_and_check_points(desk: PopDesk) -> None:
    desk.send("a", "b")
    desk.pop(queueId=0)
    desk.ack(messages(desk.pop(consumerGroup="H", queueId=0))[0], consumerGroup="H")
    statistics = desk.controller.statistics
    assert (statistics.gets["T@G"].messages, statistics.checkpoints["T@G"].messages) == (2, 1)
    desk.broker.clock.advance(10)
    desk.broker.controller.take_sample(desk.broker.clock.seconds())

    def last_minute(name: str, key: str) -> int:
        fields = {"statsName": name, "statsKey": key}
        answer = desk.peer.ask(RequestCode.VIEW_BROKER_STATS_DATA, fields)
        return decode_body(BrokerStatsData, answer.body).stats_minute.sum

    assert [last_minute(name, "T@H") for name in ("GROUP_CK_NUMS", "GROUP_ACK_NUMS")] == [1, 1]
    assert [last_minute(name, "CapCluster") for name in ("BROKER_CK_NUMS", "BROKER_ACK_NUMS")] == [2, 1]


def test_pop_without_its_time_of_birth_is_taken_as_new(desk: PopDesk) -> None:
    desk.send("a", "b")
    fields = desk.pop_fields(maxMsgNums=1, queueId=0)
    del fields["bornTime"]
    assert bodies(desk.peer.ask(RequestCode.POP_MESSAGE, fields)) == ["a"]
    assert bodies(desk.pop(bornTime=0, queueId=0)) == ["b"]


BAD = [
    ({"topic": "Nowhere"}, 17, "topic[Nowhere] not exist, apply first please! "),
    ({"queueId": 4}, 29, "queueId[4] is illegal, topic:[T] topicConfig.readQueueNums:[4] consumer:[/127.0.0.1:52174]"),
    ({"maxMsgNums": 33}, 29, "the broker[127.0.0.2] pop message's num is greater than 32"),
    ({"exp": "||", "expType": "TAG"}, 23, "parse the consumer's subscription failed"),
    ({"exp": "a > > 1", "expType": "SQL92"}, 23, "parse the consumer's subscription failed"),
    ({"exp": "a", "expType": "GROOVY"}, 23, "parse the consumer's subscription failed"),
    ({"invisibleTime": 259200001}, 29, "invisibleTime[259200001] is illegal, 0 to 259200000 ms"),
    ({"invisibleTime": -1}, 29, "invisibleTime[-1] is illegal, 0 to 259200000 ms"),
]


@pytest.mark.parametrize(("change", "code", "remark"), BAD)
def test_bad_pop_is_refused_and_takes_nothing(desk: PopDesk, change: dict[str, Any], code: int, remark: str) -> None:
    desk.send("a")
    answer = desk.pop(**change)
    assert (answer.code, (answer.remark or "")[: len(remark)], answer.ext_fields) == (code, remark, ZEROS)
    assert desk.committed() in (None, 0)
    assert bodies(desk.pop()) == ["a"]


def test_pop_that_its_client_gave_up_is_refused(desk: PopDesk) -> None:
    desk.send("a")
    answer = desk.pop(bornTime=desk.now - 501)
    assert (answer.code, answer.remark) == (210, "the broker[127.0.0.2] pop message is timeout too much")
    assert bodies(desk.pop()) == ["a"]


@pytest.mark.parametrize("hours", [-1, 1])
def test_client_whose_clock_is_wrong_by_an_hour_is_served(desk: PopDesk, hours: int) -> None:
    desk.send("a")
    born = desk.now + hours * 3_600_000
    assert bodies(desk.pop(bornTime=born, invisibleTime=60_000)) == ["a"]
    held = desk.broker.connect()
    desk.hold_pop(held, bornTime=born)
    desk.pass_time(14.8)
    assert held.received() == []
    desk.pass_time(0.4)
    assert [answer.code for answer in held.received()] == [210]


@pytest.mark.parametrize(
    "field", ["consumerGroup", "topic", "queueId", "maxMsgNums", "invisibleTime", "pollTime", "initMode"]
)
def test_missing_field_is_named(desk: PopDesk, field: str) -> None:
    desk.send("a")
    fields = desk.pop_fields()
    del fields[field]
    answer = desk.peer.ask(RequestCode.POP_MESSAGE, fields)
    assert (answer.code, answer.remark) == (
        1, f"PopMessageRequestHeader.{field}: required, but missing, got None"
    )  # fmt: skip


def test_who_may_not_read_gets_nothing(tmp_path: Path) -> None:
    desk = PopDesk(tmp_path, auto_create_subscription_group=False)
    desk.send("a")
    unknown = desk.pop()
    assert (unknown.code, (unknown.remark or "").split(",")[0]) == (26, "subscription group [G] does not exist")
    desk.controller.groups.update(attrs.evolve(desk.controller.groups.find("CID_ONSAPI_OWNER"), group_name="G"))
    group = desk.controller.groups.find("G")
    desk.controller.groups.update(attrs.evolve(group, consume_enable=False))
    assert (desk.pop().code, desk.pop().remark) == (16, "subscription group no permission, G")
    desk.controller.groups.update(attrs.evolve(group, consume_enable=True))
    topic = desk.controller.topics.get("T")
    desk.controller.topics.update([attrs.evolve(topic, perm=2)])
    assert (desk.pop().code, desk.pop().remark) == (16, "the topic[T] peeking message is forbidden")
    desk.controller.topics.update([topic])
    desk.broker.options.broker_permission = 2
    assert (desk.pop().code, desk.pop().remark) == (16, "the broker[127.0.0.2] pop message is forbidden")
    desk.broker.options.broker_permission = 6
    assert bodies(desk.pop()) == ["a"]


def test_topic_of_batches_is_refused(desk: PopDesk) -> None:
    """Its records are many messages each, of which a check point knows one; Apache's client fails on what it pops there."""
    desk.controller.topics.update([TopicConfig(topic_name="B", attributes={"queue.type": "BatchCQ"})])
    answer = desk.pop(topic="B")
    assert (answer.code, (answer.remark or "")[:22]) == (29, "topic[B] keeps batches")


def test_without_the_timer_nothing_is_popped(tmp_path: Path) -> None:
    desk = PopDesk(tmp_path, timer_wheel_enable=False)
    desk.send("a")
    answer = desk.pop()
    remark = "the broker[127.0.0.2] pop message is forbidden because timerWheelEnable is false"
    assert (answer.code, answer.remark) == (1, remark)


def test_what_cannot_be_noted_is_not_handed_out(desk: PopDesk) -> None:
    desk.send("a")
    desk.controller.pop.revive_log.put_check_point = lambda point, queue_id: False  # type: ignore[method-assign]
    answer = desk.pop(queueId=0)
    assert (answer.code, answer.ext_fields["restNum"], desk.committed()) == (210, "1", 0)


def test_answer_leaves_when_the_check_point_is_on_disk(tmp_path: Path) -> None:
    desk = PopDesk(tmp_path, flush_disk_type="SYNC_FLUSH", hold_flushes=True)
    fields = {"a": "P", "b": "T", "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "1", "h": "0", "j": "0",
              "k": "false", "m": "false", "i": ""}  # fmt: skip
    desk.peer.send(RemotingCommand(RequestCode.SEND_MESSAGE_V2, ext_fields=fields, body=b"a"))
    desk.broker.store.flush()
    desk.peer.received()
    desk.peer.send(RemotingCommand(RequestCode.POP_MESSAGE, ext_fields=desk.pop_fields()))
    assert desk.peer.received() == []
    desk.broker.store.flush()
    (answer,) = desk.peer.received()
    assert bodies(answer) == ["a"]
