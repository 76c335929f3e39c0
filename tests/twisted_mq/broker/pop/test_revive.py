"""Messages without an acknowledgement: time and form of their return, and failures of it."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from tests.support.pop import BROKER_NAME, REVIVE_TOPIC, PopDesk, bodies, messages
from twisted_mq.broker.pop.revive_log import ReviveLog
from twisted_mq.protocol.bodies import AckMsg, PopCheckPoint, SubscriptionGroupConfig
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.layouts.batch_entry import encode_entry
from twisted_mq.protocol.names.system_topics import REVIVE_GROUP
from twisted_mq.protocol.text.properties import encode_properties
from twisted_mq.storage.interfaces import InnerMessage, PutResult, PutStatus

RETRY, RETRY_V2 = "%RETRY%G_T", "%RETRY%G+T"


@pytest.fixture
def desk(tmp_path: Path) -> PopDesk:
    return PopDesk(tmp_path)


def settled(desk: PopDesk) -> int | None:
    return desk.controller.offsets.query(REVIVE_GROUP, REVIVE_TOPIC, 0)


def test_message_comes_back_after_its_invisible_time_with_its_receipt(desk: PopDesk) -> None:
    desk.send("a", TAGS="A", color="red")
    first = desk.now
    (message,) = messages(desk.pop(queueId=0))
    desk.pass_time(10)
    assert desk.pop().code == 210
    desk.pass_time(6)
    answer = desk.pop()
    (again,) = messages(answer)
    assert (answer.ext_fields["startOffsetInfo"], answer.ext_fields["msgOffsetInfo"]) == ("1 0 0", "1 0 0")
    assert (again.topic, again.body, again.queue_id, again.queue_offset, again.reconsume_times) == ("T", b"a", 0, 0, 1)
    assert again.born_timestamp == message.born_timestamp
    assert again.properties == {
        "UNIQ_KEY": "Ka", "TAGS": "A", "color": "red", "CLUSTER": "CapCluster", "MSG_REGION": "DefaultRegion",
        "TRACE_ON": "true", "1ST_POP_TIME": str(first), "POP_CK": f"0 {desk.now} 10000 0 1 broker-cap 0 0",
    }  # fmt: skip
    (stored,) = desk.stored(RETRY)
    assert (stored.born_host, stored.properties.get("POP_CK")) == ("127.0.0.2:20911", None)


def test_message_comes_back_again_and_again_until_it_is_acknowledged(desk: PopDesk) -> None:
    desk.send("a")
    first = desk.now
    message = None
    for times in range(4):
        (message,) = messages(desk.pop())
        assert (message.reconsume_times, message.properties.get("1ST_POP_TIME", str(first))) == (times, str(first))
        desk.pass_time(17)
    (message,) = messages(desk.pop())
    assert desk.ack(message).code == 0
    desk.pass_time(20)
    assert desk.pop().code == 210
    config = desk.controller.topics.get(RETRY)
    assert (config.read_queue_nums, config.write_queue_nums, config.perm) == (1, 1, 6)


def test_retry_topic_is_read_first_by_chance_and_then_only_once(tmp_path: Path) -> None:
    desk = PopDesk(tmp_path, pop_from_retry_probability=100)
    desk.send("a", "b")
    desk.pop()
    desk.pass_time(16)
    desk.send("c")
    answer = desk.pop(maxMsgNums=2)
    assert (bodies(answer), answer.ext_fields["startOffsetInfo"]) == (["a", "b"], "1 0 0")
    assert bodies(desk.pop()) == ["c"]


def test_version_2_has_its_own_topic_and_empties_that_of_version_1(tmp_path: Path) -> None:
    desk = PopDesk(tmp_path)
    desk.send("a")
    desk.pop()
    desk.pass_time(16)
    desk.broker.options.enable_retry_topic_v2 = True
    desk.send("b")
    assert "b" in bodies(desk.pop(queueId=0, maxMsgNums=1))
    desk.pass_time(16)
    assert [one.body for one in desk.stored(RETRY_V2)] == [b"b"]
    found = [body for _ in range(20) for body in bodies(desk.pop())]
    assert sorted(found) == ["a", "b"]
    desk.pass_time(16)
    assert sorted(one.body for one in desk.stored(RETRY_V2)) == [b"b", b"b"]
    assert [one.body for one in desk.stored(RETRY)] == [b"a", b"a"]


def test_retried_messages_keep_their_topics_name_where_that_is_wanted(tmp_path: Path) -> None:
    desk = PopDesk(tmp_path, pop_response_return_actual_retry_topic=True)
    desk.send("a")
    desk.pop()
    desk.pass_time(16)
    (message,) = messages(desk.pop())
    assert (message.topic, message.properties["POP_CK"]) == (RETRY, f"0 {desk.now} 10000 0 1 broker-cap 0 0")


@pytest.mark.parametrize("gone", ["topic", "group"])
def test_what_has_no_topic_or_group_any_more_is_settled_without_coming_back(tmp_path: Path, gone: str) -> None:
    desk = PopDesk(tmp_path, auto_create_subscription_group=False)
    desk.controller.groups.update(SubscriptionGroupConfig(group_name="G"))
    desk.send("a")
    desk.pop()
    if gone == "topic":
        desk.controller.topics.delete("T")
    else:
        desk.controller.groups.delete("G")
    desk.pass_time(16)
    assert (settled(desk), desk.stored(RETRY)) == (0, [])


def test_revive_groups_offset_is_that_of_the_last_settled_check_point(desk: PopDesk) -> None:
    desk.send("a", "b")
    (first,) = messages(desk.pop(maxMsgNums=1))
    desk.ack(first)
    desk.pass_time(4)
    desk.pop(maxMsgNums=1)
    assert settled(desk) is None
    desk.pass_time(16)
    assert [message.tags for message in desk.stored()] == ["ck", "ack", "ck"]
    assert settled(desk) == 2


def test_message_that_the_store_does_not_take_is_tried_again_later(desk: PopDesk) -> None:
    desk.send("a")
    desk.pop()
    put, refused = desk.broker.store.put_message, []

    def refuse(message: InnerMessage) -> PutResult:
        if message.topic == RETRY and len(refused) < 2:
            refused.append(desk.now)
            return PutResult(PutStatus.OS_PAGE_CACHE_BUSY)
        return put(message)

    desk.broker.store.put_message = refuse  # type: ignore[method-assign]
    desk.pass_time(45)
    (message,) = messages(desk.pop())
    assert (message.body, message.reconsume_times) == (b"a", 1)
    first, second = refused
    assert 9000 <= second - first <= 12000


def test_message_that_left_the_store_is_given_up(desk: PopDesk) -> None:
    desk.send("a")
    desk.pop()
    desk.broker.store.delete_topics(["T"])
    desk.pass_time(16)
    assert (settled(desk), desk.stored(RETRY)) == (0, [])


def test_damaged_entries_of_the_revive_log_are_passed_over(desk: PopDesk) -> None:
    for tag, body in (("ck", b"{"), ("ck", b"{}"), ("ack", b"[]"), ("other", b"x"), ("", b"")):
        properties = {"TAGS": tag} if tag else {}
        text = f"TAGS\x01{tag}\x02".encode() if tag else b""
        desk.broker.store.put_message(InnerMessage(REVIVE_TOPIC, 0, body, text, properties, 0))
    desk.controller.dispatch()
    desk.send("a")
    desk.pop()
    desk.pass_time(16)
    assert (bodies(desk.pop()), settled(desk)) == (["a"], 5)


FORGED: list[dict[str, object]] = [
    {"n": 33}, {"n": -1}, {"n": 2, "d": [0]}, {"d": [5, 5, 5]}, {"d": [-1]}, {"d": [0] * 100_000}, {"so": -1}, {"q": -1},
    {"pt": 1 << 62}, {"it": 1 << 62}, {"pt": -(1 << 62)}, {"it": -(1 << 62)}, {"pt": 1 << 63}, {"rp": "-100"},
    {"t": "Nowhere"}, {"c": "Nobody"}, {"t": "../../T"}, {"n": "one"},
]  # fmt: skip
"""Differences from a check point of one message of T that G popped."""


@pytest.mark.parametrize("changed", FORGED, ids=lambda changed: str(changed)[:24])
def test_a_forged_check_point_stops_nothing_and_is_told_once_a_start(
    tmp_path: Path, changed: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    desk = PopDesk(tmp_path)
    desk.send("a")
    forge(desk, "ck", json.dumps(check_point(desk.now) | changed).encode())
    desk.pop(queueId=0)
    desk.pass_time(16)
    assert bodies(desk.pop()) == ["a"]
    assert len([one for one in caplog.records if "messages skipped" in one.message]) == 1
    assert {*desk.controller.groups.groups}.isdisjoint({"Nobody", "Nowhere"})
    desk.stop()
    again = PopDesk(tmp_path, restarted=desk)
    again.pass_time(16)
    assert bodies(again.pop()) == ["a"]


def check_point(popped: int) -> dict[str, object]:
    """Return the check point of the first message of T, as a broker writes it."""
    return {
        "so": 0,
        "pt": popped,
        "it": 10000,
        "bm": 0,
        "n": 1,
        "q": 0,
        "t": "T",
        "c": "G",
        "d": [0],
        "bn": BROKER_NAME,
    }


def test_a_check_point_whose_revive_time_is_forged_has_that_of_its_pop(desk: PopDesk) -> None:
    """Apache's reads no reviveTime either."""
    desk.send("a", "b")
    desk.pop(maxMsgNums=1)
    forge(desk, "ck", json.dumps(check_point(desk.now + 1) | {"reviveTime": 1 << 62}).encode())
    desk.pass_time(1)
    assert bodies(desk.pop(queueId=0)) == ["b"]
    desk.pass_time(20)
    assert [one.body for one in desk.stored(RETRY)] == [b"a", b"a", b"b"]


def test_a_forged_time_of_delivery_settles_nothing_early(desk: PopDesk) -> None:
    desk.send("a")
    desk.pop(queueId=0)
    desk.pass_time(9.5)
    forge(desk, "ack", b"{}", TIMER_DELIVER_MS=str(1 << 62))
    desk.pass_time(1)
    assert desk.stored(RETRY) == []
    desk.pass_time(5)
    assert [one.body for one in desk.stored(RETRY)] == [b"a"]


def test_an_acknowledgement_of_what_was_not_popped_is_one_line(desk: PopDesk, caplog: pytest.LogCaptureFixture) -> None:
    desk.send("a")
    popped = desk.now
    desk.pop(queueId=0)
    ack = {"so": 0, "c": "G", "t": "T", "q": 0, "pt": popped, "bn": BROKER_NAME, "aol": list(range(1, 50_000))}
    desk.pass_time(9.5)
    forge(desk, "bAck", json.dumps(ack).encode())
    desk.pass_time(6)
    (told,) = [one.message for one in caplog.records if "not popped" in one.message]
    assert told.startswith("revive log's messages skipped: queue=0 count=1 first=acknowledgement at ")
    assert [one.body for one in desk.stored(RETRY)] == [b"a"]


def forge(desk: PopDesk, tag: str, body: bytes, **properties: str) -> None:
    """Put into the revive log what no broker puts there."""
    properties = {"TAGS": tag, "TIMER_DELIVER_MS": str(desk.now), **properties}
    text = encode_properties(properties).encode()
    desk.broker.store.put_message(InnerMessage(REVIVE_TOPIC, 0, body, text, properties, 0))
    desk.controller.dispatch()


def test_a_forged_receipt_in_a_message_is_no_receipt_of_its_next_pop(desk: PopDesk) -> None:
    """Clients acknowledge with the receipt in the message; sends in batches may bring one."""
    body = encode_entry(0, b"a", b"POP_CK\x010 1 2 0 0 b 3 7\x02")
    fields = {"a": "P", "b": "T", "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": str(desk.now), "h": "0", "i": "",
              "j": "0", "m": "true"}  # fmt: skip
    assert desk.peer.ask(RequestCode.SEND_BATCH_MESSAGE, fields, body).code == 0
    desk.pop(queueId=0)
    desk.pass_time(16)
    (again,) = messages(desk.pop())
    assert again.properties["POP_CK"] == f"0 {desk.now} 10000 0 1 broker-cap 0 0"
    assert desk.ack(again).code == 0
    desk.pass_time(20)
    assert desk.pop().code == 210


def test_check_point_of_another_broker_revives_nothing(desk: PopDesk) -> None:
    desk.send("a")
    point = PopCheckPoint(0, desk.now - 9000, 5000, 0, 1, 0, "T", "G", 0, [0], "other")
    assert desk.controller.pop.revive_log.put_check_point(point, 0)
    desk.controller.dispatch()
    desk.pass_time(8)
    assert (settled(desk), desk.stored(RETRY)) == (0, [])


def test_lonely_acknowledgements_move_the_offset_only_where_that_is_wanted(tmp_path: Path) -> None:
    for wanted, expected in ((False, None), (True, 0)):
        desk = PopDesk(tmp_path / str(wanted), enable_skip_long_awaiting_ack=wanted, revive_ack_wait_ms=60_000)
        (tmp_path / str(wanted)).mkdir()
        desk.send("a")
        log: ReviveLog = desk.controller.pop.revive_log
        log.put_ack(AckMsg(0, 0, "G", "T", 0, 5, "broker-cap"), 0, desk.now - 61_000)
        desk.controller.dispatch()
        desk.pass_time(12)
        assert settled(desk) == expected


def test_many_messages_come_back_in_order(desk: PopDesk) -> None:
    """More than one turn revives."""
    desk.send(*(f"m{number:03}" for number in range(300)))
    while desk.pop(queueId=0).code == 0:
        pass
    desk.pass_time(16)
    assert [one.body.decode() for one in desk.stored(RETRY)] == [f"m{number:03}" for number in range(300)]


def test_restart_brings_back_what_was_not_acknowledged_and_nothing_else(desk: PopDesk, tmp_path: Path) -> None:
    desk.send("a", "b", "c")
    first, _, third = messages(desk.pop(queueId=0))
    desk.ack(first)
    desk.pass_time(2)
    desk.stop()
    again = PopDesk(tmp_path, restarted=desk)
    again.ack(third)
    again.pass_time(20)
    assert bodies(again.pop()) == ["b"]


def test_restart_between_return_and_settling_loses_and_doubles_nothing(desk: PopDesk, tmp_path: Path) -> None:
    desk.send("a", "b")
    first, _ = messages(desk.pop(queueId=0))
    desk.ack(first)
    desk.pass_time(10.5)
    desk.stop()
    again = PopDesk(tmp_path, restarted=desk)
    again.pass_time(20)
    assert bodies(again.pop()) == ["b"]


def test_revivals_rest_longer_while_nothing_is_popped(tmp_path: Path) -> None:
    desk = PopDesk(tmp_path)
    reads: list[int] = []
    get_message = desk.broker.store.get_message

    def counted(topic: str, *arguments: object) -> object:
        if topic == REVIVE_TOPIC:
            reads.append(desk.now)
        return get_message(topic, *arguments)  # type: ignore[arg-type]

    desk.broker.store.get_message = counted  # type: ignore[method-assign,assignment]
    desk.pass_time(20)
    gaps = [round((later - before) / 1000) for before, later in itertools.pairwise(reads)]
    assert gaps[:5] == [2, 3, 4, 4, 4]


@pytest.mark.parametrize("cleared", [True, False])
def test_deleted_topic_takes_the_retry_topics_of_its_pops_with_it(tmp_path: Path, cleared: bool) -> None:
    desk = PopDesk(tmp_path, clear_retry_topic_when_delete_topic=cleared)
    desk.send("a", "b")
    desk.pop(maxMsgNums=1)
    desk.pass_time(16)
    desk.pop(maxMsgNums=1)
    assert desk.controller.pop.in_flight.count("T", "G", 0) == 1
    assert desk.peer.ask(RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": "T"}).code == 0
    assert desk.controller.pop.in_flight.count("T", "G", 0) == 0
    assert (desk.controller.topics.get(RETRY) is None, desk.stored(RETRY) == []) == (cleared, cleared)


def test_deleted_group_holds_nothing_any_more(desk: PopDesk) -> None:
    desk.send("a")
    desk.pop()
    fields = {"groupName": "G", "cleanOffset": "true"}
    assert desk.peer.ask(RequestCode.DELETE_SUBSCRIPTIONGROUP, fields).code == 0
    assert desk.controller.pop.in_flight.count("T", "G", 0) == 0


def test_nothing_is_lost_or_doubled_while_the_store_takes_nothing(desk: PopDesk) -> None:
    """Neither the messages nor new check points of them: the old check point stays until the store works again."""
    desk.send("a", "b", "c")
    desk.pop()
    put, taken = desk.broker.store.put_message, 1

    def refuse(message: InnerMessage) -> PutResult:
        nonlocal taken
        if message.topic == RETRY and taken:
            taken -= 1
            return put(message)
        return PutResult(PutStatus.SERVICE_NOT_AVAILABLE)

    desk.pass_time(11)
    desk.broker.store.put_message = refuse  # type: ignore[method-assign]
    desk.pass_time(10)
    assert settled(desk) is None
    desk.broker.store.put_message = put  # type: ignore[method-assign]
    desk.pass_time(10)
    assert (sorted(bodies(desk.pop())), settled(desk)) == (["a", "b", "c"], 0)
