"""Acknowledgements: what is noted, what never comes back, and what is refused with nothing changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.pop import BROKER_NAME, PopDesk, bits, bodies, messages
from twisted_mq.protocol.bodies import AckMsg, BatchAck, BatchAckMsg, decode_body
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.protocol.names.system_topics import TIMER_TOPIC


@pytest.fixture
def desk(tmp_path: Path) -> PopDesk:
    desk = PopDesk(tmp_path)
    desk.send("a", "b", "c")
    return desk


def waiting(desk: PopDesk) -> list[MessageExt]:
    """Return the messages that wait in the timer's topic."""
    return desk.stored(TIMER_TOPIC)


def batch(popped: list, *indexes: int, **more: Any) -> BatchAck:
    pop_time = int(popped[0].properties["POP_CK"].split()[1])
    values = {"consumer_group": "G", "topic": "T", "retry": "0", "start_offset": 0, "queue_id": 0, "revive_queue_id": 0,
              "pop_time": pop_time, "invisible_time": 10000, "bit_set": bits(*indexes)}  # fmt: skip
    return BatchAck(**{**values, **more})


def test_acknowledged_messages_do_not_come_back(desk: PopDesk) -> None:
    first, _, third = messages(desk.pop(queueId=0))
    assert [desk.ack(one).code for one in (first, third)] == [0, 0]
    desk.pass_time(16)
    assert bodies(desk.pop()) == ["b"]


def test_acknowledgement_waits_in_the_timer_as_apache_stores_it(desk: PopDesk) -> None:
    popped = messages(desk.pop(queueId=0))
    desk.ack(popped[1])
    noted = waiting(desk)[-1]
    due = desk.now + 10000
    assert decode_body(AckMsg, noted.body) == AckMsg(1, 0, "G", "T", 0, desk.now, BROKER_NAME)
    assert noted.properties == {
        "TAGS": "ack", "UNIQ_KEY": f"T@0@1@G@{desk.now}@broker-cap@ack", "TIMER_DELIVER_MS": str(due),
        "TIMER_OUT_MS": str(due - 1000), "REAL_TOPIC": "rmq_sys_REVIVE_LOG_CapCluster", "REAL_QID": "0",
    }  # fmt: skip
    assert desk.controller.statistics.acks["T@G"].messages == 1


def test_batch_acknowledges_what_its_bits_say(desk: PopDesk) -> None:
    popped = messages(desk.pop(queueId=0))
    assert desk.ack_batch(batch(popped, 0, 2)).code == 0
    noted = waiting(desk)[-1]
    assert decode_body(BatchAckMsg, noted.body) == BatchAckMsg(-1, 0, "G", "T", 0, desk.now, BROKER_NAME, [0, 2])
    assert (noted.tags, noted.unique_key) == ("bAck", f"T@0@-1@G@{desk.now}@broker-cap@ack")
    assert desk.controller.statistics.acks["T@G"].messages == 2
    desk.pass_time(16)
    assert bodies(desk.pop()) == ["b"]


def test_batch_reaches_the_retry_topics_too(desk: PopDesk) -> None:
    desk.pop(queueId=0)
    desk.pass_time(16)
    popped = messages(desk.pop())
    assert [message.reconsume_times for message in popped] == [1, 1, 1]
    assert desk.ack_batch(batch(popped, 0, 1, retry="1")).code == 0
    desk.pass_time(16)
    (message,) = messages(desk.pop())
    assert (message.body, message.reconsume_times) == (b"c", 2)


def test_late_acknowledgement_counts_while_the_message_has_not_come_back(desk: PopDesk) -> None:
    popped = messages(desk.pop(queueId=0))
    desk.pass_time(10.5)
    assert desk.stored()[-1].tags == "ck"
    desk.ack(popped[0])
    assert (desk.stored()[-1].tags, desk.stored()[-1].properties.get("TIMER_OUT_MS")) == ("ack", None)
    desk.pass_time(8)
    assert sorted(bodies(desk.pop())) == ["b", "c"]


def test_receipt_of_another_pop_acknowledges_nothing(desk: PopDesk) -> None:
    popped = messages(desk.pop(queueId=0))
    receipt = popped[0].properties["POP_CK"].split()
    for field, value in ((0, "9"), (1, "5"), (5, "other")):
        foreign = [*receipt[:field], value, *receipt[field + 1 :]]
        assert desk.ack(popped[0], extraInfo=" ".join(foreign)).code == 0
    assert desk.ack(popped[0], consumerGroup="Other").code == 0
    desk.pass_time(16)
    assert sorted(bodies(desk.pop())) == ["a", "b", "c"]


NOT_STORED = "the acknowledgement was not stored, acknowledge again: topic=T queue=0 offset="


def test_acknowledgement_that_is_not_stored_is_refused_and_counts_when_it_comes_again(desk: PopDesk) -> None:
    popped = messages(desk.pop(queueId=0))
    in_flight, acks = desk.controller.pop.in_flight, desk.controller.statistics.acks["T@G"]
    desk.broker.options.timer_wheel_enable = False
    answer = desk.ack(popped[1])
    assert (answer.code, answer.remark) == (1, NOT_STORED + "1")
    assert (in_flight.count("T", "G", 0), acks.messages) == (3, 0)
    desk.broker.options.timer_wheel_enable = True
    assert desk.ack(popped[1]).code == 0
    assert (in_flight.count("T", "G", 0), acks.messages) == (2, 1)
    desk.pass_time(16)
    assert bodies(desk.pop()) == ["a", "c"]


def test_refused_entry_of_a_batch_is_named_and_the_others_count(desk: PopDesk) -> None:
    first = messages(desk.pop(queueId=0, maxMsgNums=1))
    desk.pass_time(1)
    later = messages(desk.pop(queueId=0, invisibleTime=60000))
    entries = batch(first, 0), batch(later, 0, 1, start_offset=1, invisible_time=60000)
    in_flight = desk.controller.pop.in_flight
    desk.broker.options.timer_max_delay_sec = 30
    answer = desk.ack_batch(*reversed(entries))
    assert (answer.code, answer.remark) == (1, NOT_STORED + "1, 2")
    assert (in_flight.count("T", "G", 0), desk.controller.statistics.acks["T@G"].messages) == (2, 1)
    desk.broker.options.timer_max_delay_sec = 3600
    assert desk.ack_batch(entries[1]).code == 0
    desk.pass_time(80)
    assert desk.pop().code == 210


BAD = [
    ({"topic": "Nowhere"}, 17, "topic[Nowhere] not exist, apply first please! "),
    ({"queueId": 9}, 13, "queueId[9] is illegal, topic:[T] topicConfig.readQueueNums:[4] consumer:[/127.0.0.1:52174]"),
    ({"queueId": -1}, 13, "queueId[-1] is illegal"),
    ({"offset": 4}, 208, "offset is illegal, key:T@0, commit:4, store:0~3"),
    ({"offset": -1}, 208, "offset is illegal, key:T@0, commit:-1, store:0~3"),
    ({"extraInfo": "1 2 3"}, 1, "extraInfo: 6 fields are needed at least, got 3 in '1 2 3'"),
    ({"extraInfo": "0 x 1 0 0 b 0 0"}, 1, "extraInfo: field popTime: a number is needed, got 'x'"),
    ({"extraInfo": "0 1 1 7 0 b 0 0"}, 13, "reviveQid[7] is illegal, rmq_sys_REVIVE_LOG_CapCluster has 1 queues"),
    ({"offset": "x"}, 1, "AckMessageRequestHeader.offset: not of type"),
]


@pytest.mark.parametrize(("change", "code", "remark"), BAD)
def test_bad_acknowledgement_is_refused_and_notes_nothing(
    desk: PopDesk, change: dict[str, Any], code: int, remark: str
) -> None:
    popped = messages(desk.pop(queueId=0))
    before = len(waiting(desk))
    answer = desk.ack(popped[0], **change)
    assert (answer.code, (answer.remark or "")[: len(remark)]) == (code, remark)
    assert len(waiting(desk)) == before


def test_offset_of_the_next_message_is_taken(desk: PopDesk) -> None:
    """Apache's broker takes the end of the queue, too."""
    assert desk.ack(messages(desk.pop(queueId=0))[0], offset=3).code == 0


@pytest.mark.parametrize("field", ["consumerGroup", "topic", "queueId", "extraInfo", "offset"])
def test_missing_field_is_named(desk: PopDesk, field: str) -> None:
    fields = desk.ack_fields(messages(desk.pop(queueId=0))[0])
    del fields[field]
    answer = desk.peer.ask(RequestCode.ACK_MESSAGE, fields)
    assert (answer.code, answer.remark) == (1, f"AckMessageRequestHeader.{field}: required, but missing, got None")


BAD_BATCHES = [
    ({"bit_set": None}, 1, "BatchAck.b: a bit set is needed, got none"),
    ({"bit_set": "*"}, 1, "BatchAck.b: "),
    ({"bit_set": "A" * 12000}, 1, "BatchAck.b: at most 8192 bytes are taken, got 9000"),
    ({"bit_set": bits(*range(33))}, 1, "BatchAck.b: a pop gives at most 32 messages, got 33 bits"),
    ({"retry": "7"}, 1, "acks[1].r: 0, 1 or 2 is needed, got '7'"),
    ({"retry": None}, 1, "acks[1]: c, t and r are needed, got BatchAck("),
    ({"revive_queue_id": 7}, 13, "reviveQid[7] is illegal"),
]


@pytest.mark.parametrize(("change", "code", "remark"), BAD_BATCHES)
def test_bad_entry_of_a_batch_refuses_the_whole(desk: PopDesk, change: dict[str, Any], code: int, remark: str) -> None:
    popped = messages(desk.pop(queueId=0))
    before = len(waiting(desk))
    answer = desk.ack_batch(batch(popped, 0), batch(popped, 1, **change))
    assert (answer.code, (answer.remark or "")[: len(remark)]) == (code, remark)
    assert len(waiting(desk)) == before


@pytest.mark.parametrize("body", [b"", b"{}", b'{"acks":[]}'])
def test_batch_without_entries_is_refused(desk: PopDesk, body: bytes) -> None:
    answer = desk.peer.ask(RequestCode.BATCH_ACK_MESSAGE, body=body)
    assert (answer.code, answer.remark) == (208, "acks: none in the body")


def test_batch_that_is_no_json_is_refused(desk: PopDesk) -> None:
    answer = desk.peer.ask(RequestCode.BATCH_ACK_MESSAGE, body=b'{"acks":')
    assert (answer.code, (answer.remark or "")[:43]) == (1, "BatchAckMessageRequestBody: no JSON: expect")


def test_offsets_that_the_queue_does_not_have_are_passed_over(desk: PopDesk) -> None:
    popped = messages(desk.pop(queueId=0))
    before = len(waiting(desk))
    assert desk.ack_batch(batch(popped, 50), batch(popped, 0, topic="Nowhere", queue_id=3, start_offset=5)).code == 0
    assert len(waiting(desk)) == before


def test_an_entry_acknowledges_as_many_messages_as_a_pop_gives(tmp_path: Path) -> None:
    desk = PopDesk(tmp_path)
    desk.send(*map(str, range(33)))
    popped = messages(desk.pop(queueId=0))
    assert desk.ack_batch(batch(popped, *range(32))).code == 0
    assert decode_body(BatchAckMsg, waiting(desk)[-1].body).ack_offsets == [*range(32)]


def test_slave_refuses_what_writes_the_revive_log(tmp_path: Path) -> None:
    desk = PopDesk(tmp_path, broker_role="SLAVE", broker_id=1)
    codes = (RequestCode.POP_MESSAGE, RequestCode.ACK_MESSAGE, RequestCode.BATCH_ACK_MESSAGE,
             RequestCode.CHANGE_MESSAGE_INVISIBLETIME)  # fmt: skip
    assert [desk.peer.ask(code).code for code in codes] == [2, 2, 2, 2]
