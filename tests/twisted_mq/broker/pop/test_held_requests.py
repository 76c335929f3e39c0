"""Pops and notifications that wait: woken by what arrives, answered when their time is up, refused where too many wait."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.broker import Peer
from tests.support.pop import PopDesk, bodies, messages
from twisted_mq.broker.waiting_requests import WaitingKind
from twisted_mq.protocol.codes import RequestCode, ResponseCode
from twisted_mq.protocol.wire.command import RemotingCommand

NO_MESSAGE = {"hasMsg": "false", "pollingFull": "false"}
MESSAGE = {"hasMsg": "true", "pollingFull": "false"}


@pytest.fixture
def desk(tmp_path: Path) -> PopDesk:
    desk = PopDesk(tmp_path)
    desk.send("old")
    desk.pop()
    return desk


def received(peer: Peer) -> list[str]:
    """Return the messages of the only answer."""
    (answer,) = peer.received()
    return bodies(answer)


def notification(desk: PopDesk, **more: object) -> dict[str, str]:
    fields = {"consumerGroup": "G", "topic": "T", "queueId": "-1", "pollTime": "0", "bornTime": str(desk.now)}
    return fields | {name: str(value) for name, value in more.items()}


def test_pop_waits_and_gets_the_whole_batch_that_arrives(desk: PopDesk) -> None:
    consumer = desk.broker.connect()
    desk.hold_pop(consumer)
    desk.send("a")
    assert received(consumer) == ["a"]
    assert (desk.controller.polling.count(WaitingKind.POP), desk.committed()) == (0, 2)


def test_pop_of_one_queue_is_woken_by_that_queue_alone(desk: PopDesk) -> None:
    one, other = desk.broker.connect(), desk.broker.connect()
    desk.hold_pop(one, queueId=1)
    desk.hold_pop(other, queueId=2)
    desk.send("a", queue=2)
    assert (received(other), one.received()) == (["a"], [])


def test_message_wakes_one_pop_that_wants_it_and_the_first_to_end(desk: PopDesk) -> None:
    later, first, other = (desk.broker.connect() for _ in range(3))
    desk.hold_pop(later, exp="A", expType="TAG", pollTime=15000)
    desk.hold_pop(first, exp="A", expType="TAG", pollTime=10000)
    desk.hold_pop(other, exp="B", expType="TAG", pollTime=5000)
    desk.send("a", TAGS="A")
    assert (received(first), later.received(), other.received()) == (["a"], [], [])


def test_pop_by_expression_goes_on_waiting_for_what_it_wants(desk: PopDesk) -> None:
    consumer = desk.broker.connect()
    desk.hold_pop(consumer, exp="n > 1", expType="SQL92")
    desk.send("a", n="1")
    assert consumer.received() == []
    desk.send("b", n="2")
    assert received(consumer) == ["b"]


def test_each_group_gets_its_own(desk: PopDesk) -> None:
    desk.pop(consumerGroup="H")
    one, other = desk.broker.connect(), desk.broker.connect()
    desk.hold_pop(one)
    desk.hold_pop(other, consumerGroup="H")
    desk.send("a")
    assert (received(one), received(other)) == (["a"], ["a"])


@pytest.mark.parametrize("version_2", [False, True])
def test_revived_message_wakes_its_groups_pop(tmp_path: Path, version_2: bool) -> None:
    """This applies to retry topics of both versions; Apache's broker wakes no pop for version 1."""
    desk = PopDesk(tmp_path, enable_retry_topic_v2=version_2, retrieve_message_from_pop_retry_topic_v1=False)
    desk.send("a")
    desk.pop()
    consumer = desk.broker.connect()
    desk.hold_pop(consumer, pollTime=30000)
    desk.pass_time(16)
    assert received(consumer) == ["a"]


def test_what_a_woken_pop_took_is_noted_at_once(desk: PopDesk) -> None:
    consumer = desk.broker.connect()
    desk.hold_pop(consumer)
    desk.send("a")
    received(consumer)
    desk.pass_time(16)
    assert sorted(bodies(desk.pop())) == ["a", "old"]


def test_pop_whose_time_is_up_is_answered_a_moment_before(desk: PopDesk) -> None:
    consumer = desk.broker.connect()
    desk.hold_pop(consumer, pollTime=3000)
    desk.broker.clock.advance(2.9)
    assert consumer.received() == []
    desk.broker.clock.advance(0.05)
    (answer,) = consumer.received()
    assert (answer.code, answer.remark, answer.ext_fields["popTime"]) == (210, "NO_MESSAGE_IN_QUEUE", str(desk.now))
    assert (answer.ext_fields["startOffsetInfo"], answer.ext_fields["msgOffsetInfo"]) == ("", "")


def test_pop_that_came_too_late_to_wait_is_answered_at_once(desk: PopDesk) -> None:
    assert desk.pop(pollTime=1000, bornTime=desk.now - 960).code == 210
    assert desk.pop(pollTime=1000, bornTime=desk.now - 1501).remark == (
        "the broker[127.0.0.2] pop message is timeout too much"
    )


def test_too_many_pops_are_refused(tmp_path: Path) -> None:
    desk = PopDesk(tmp_path, max_pop_polling_size=3, pop_polling_size=0)
    desk.send("a")
    desk.pop()
    peers = [desk.broker.connect() for _ in range(4)]
    desk.hold_pop(peers[0])
    of_queue = desk.pop(pollTime=1000)
    assert (of_queue.code, of_queue.remark) == (209, "NO_MESSAGE_IN_QUEUE")
    desk.hold_pop(peers[1], queueId=0)
    desk.hold_pop(peers[2], queueId=1)
    assert desk.pop(pollTime=1000, queueId=2).code == 209
    assert desk.controller.polling.count(WaitingKind.POP) == 3


def test_lost_connection_takes_no_message(desk: PopDesk) -> None:
    lost, other = desk.broker.connect(), desk.broker.connect()
    desk.hold_pop(lost, pollTime=10000)
    desk.hold_pop(other, pollTime=15000)
    lost.channel.connectionLost()
    desk.send("a")
    assert (received(other), desk.controller.polling.count(WaitingKind.POP)) == (["a"], 0)


def test_waiting_pop_of_a_deleted_topic_is_told_so(desk: PopDesk) -> None:
    consumer = desk.broker.connect()
    desk.hold_pop(consumer, pollTime=1000)
    desk.controller.topics.delete("T")
    desk.pass_time(1)
    (answer,) = consumer.received()
    assert answer.code == 17


def test_all_are_answered_when_the_broker_stops(desk: PopDesk) -> None:
    popping, asking = desk.broker.connect(), desk.broker.connect()
    desk.hold_pop(popping)
    asking.send(RemotingCommand(RequestCode.NOTIFICATION, ext_fields=notification(desk, pollTime=15000)))
    desk.stop()
    (popped,), (told,) = popping.received(), asking.received()
    assert (popped.code, told.code, told.ext_fields) == (210, 0, NO_MESSAGE)


# notifications


def test_notification_tells_of_messages_and_takes_none(desk: PopDesk) -> None:
    def ask(**more: object) -> dict[str, str]:
        answer = desk.peer.ask(RequestCode.NOTIFICATION, notification(desk, **more))
        assert answer.code == 0
        return answer.ext_fields

    assert ask() == NO_MESSAGE
    desk.send("a", queue=2)
    assert (ask(), ask(queueId=2), ask(queueId=1)) == (MESSAGE, MESSAGE, NO_MESSAGE)
    assert ask(consumerGroup="New") == MESSAGE
    desk.pop()
    assert ask() == NO_MESSAGE
    desk.pass_time(16)
    assert (ask(), ask(queueId=1)) == (MESSAGE, MESSAGE)


def test_notification_waits_for_a_message_the_last_to_end_first(desk: PopDesk) -> None:
    first, last = desk.broker.connect(), desk.broker.connect()
    for peer, poll_time in ((last, 10000), (first, 5000)):
        peer.send(RemotingCommand(RequestCode.NOTIFICATION, ext_fields=notification(desk, pollTime=poll_time)))
    desk.send("a")
    (told,) = last.received()
    assert (told.code, told.ext_fields, first.received()) == (0, MESSAGE, [])
    desk.pop()
    desk.pass_time(5)
    (told,) = first.received()
    assert (told.code, told.ext_fields) == (0, NO_MESSAGE)


def test_notification_says_where_too_many_wait(tmp_path: Path) -> None:
    desk = PopDesk(tmp_path, max_pop_polling_size=0)
    desk.send("a")
    desk.pop()
    answer = desk.peer.ask(RequestCode.NOTIFICATION, notification(desk, pollTime=1000))
    assert (answer.code, answer.ext_fields) == (0, {"hasMsg": "false", "pollingFull": "true"})


def test_polling_info_counts_the_pops_that_wait(desk: PopDesk) -> None:
    def count(queue: int) -> str:
        fields = {"consumerGroup": "G", "topic": "T", "queueId": str(queue)}
        return desk.peer.ask(RequestCode.POLLING_INFO, fields).ext_fields["pollingNum"]

    for queue in (-1, -1, 0):
        desk.hold_pop(desk.broker.connect(), queueId=queue)
    assert [count(queue) for queue in (-1, 0, 1)] == ["2", "1", "0"]


@pytest.mark.parametrize(
    ("change", "code", "remark"),
    [
        ({"topic": "Nowhere"}, 17, "topic[Nowhere] not exist, apply first please! "),
        ({"queueId": 4}, 29, "queueId[4] is illegal, topic:[T] topicConfig.readQueueNums:[4]"),
    ],
)
def test_bad_question_is_refused(desk: PopDesk, change: dict[str, object], code: int, remark: str) -> None:
    for request, zeros in (
        (RequestCode.NOTIFICATION, NO_MESSAGE),
        (RequestCode.POLLING_INFO, {"pollingNum": "0"}),
        (RequestCode.PEEK_MESSAGE, {"popTime": "0", "invisibleTime": "0", "reviveQid": "0", "restNum": "0"}),
    ):
        answer = desk.peer.ask(request, notification(desk, maxMsgNums=9, **change))
        assert (answer.code, (answer.remark or "")[: len(remark)], answer.ext_fields) == (code, remark, zeros)
        missing = desk.peer.ask(request, {"consumerGroup": "G"})
        assert (missing.code, ".topic: required, but missing" in (missing.remark or "")) == (1, True)


def test_who_may_not_read_is_told_so(desk: PopDesk) -> None:
    desk.broker.options.broker_permission = 2
    for request in (RequestCode.NOTIFICATION, RequestCode.POLLING_INFO, RequestCode.PEEK_MESSAGE):
        answer = desk.peer.ask(request, notification(desk, maxMsgNums=9))
        assert (answer.code, answer.remark) == (16, "the broker[127.0.0.2] peeking message is forbidden")


def test_order_that_waits_for_an_acknowledgement_is_not_told_of(desk: PopDesk) -> None:
    desk.send("a", "b")
    assert bodies(desk.pop(queueId=0, maxMsgNums=1, order="true")) == ["a"]
    told = [
        desk.peer.ask(RequestCode.NOTIFICATION, notification(desk, pollTime=0, queueId=0, order=order)).ext_fields[
            "hasMsg"
        ]
        for order in ("true", "false")
    ]
    assert told == ["false", "true"]


# peeks


def test_peek_shows_what_comes_next_and_takes_nothing(desk: PopDesk) -> None:
    desk.send("a", "b", "c")
    for _ in range(2):
        answer = desk.peer.ask(RequestCode.PEEK_MESSAGE, notification(desk, maxMsgNums=2))
        found = {name: answer.ext_fields[name] for name in ("restNum", "popTime")}
        assert (answer.code, answer.remark, found) == (0, "FOUND", {"restNum": "3", "popTime": "0"})
        assert answer.body.count(b"UNIQ_KEY") == 2
    assert bodies(desk.pop(queueId=0)) == ["a", "b", "c"]
    nothing = desk.peer.ask(RequestCode.PEEK_MESSAGE, notification(desk, maxMsgNums=2))
    assert (nothing.code, nothing.remark, nothing.body) == (19, "NO_MESSAGE_IN_QUEUE", b"")
    desk.pass_time(16)
    retried = desk.peer.ask(RequestCode.PEEK_MESSAGE, notification(desk, maxMsgNums=9))
    assert (retried.code, retried.body.count(b"%RETRY%G_T")) == (0, 4)


def test_peek_shows_no_more_of_many_queues_than_asked_for(desk: PopDesk) -> None:
    for queue_id in range(3):
        desk.send("a", "b", queue=queue_id)
    answer = desk.peer.ask(RequestCode.PEEK_MESSAGE, notification(desk, queueId=-1, maxMsgNums=3))
    assert (answer.code, answer.body.count(b"UNIQ_KEY"), answer.ext_fields["restNum"]) == (0, 3, "6")


@pytest.mark.parametrize(("chance", "first"), [(0, b"%RETRY%G_T"), (1, b"Kb"), (95, b"%RETRY%G_T")])
def test_peek_reads_retried_messages_first_one_time_in_five(desk: PopDesk, chance: int, first: bytes) -> None:
    desk.send("a")
    desk.pop()
    desk.pass_time(16)
    desk.send("b")
    desk.controller.random.randrange = lambda most: chance  # type: ignore[method-assign]
    answer = desk.peer.ask(RequestCode.PEEK_MESSAGE, notification(desk, maxMsgNums=1))
    assert (answer.code, first in answer.body) == (0, True)


def test_requests_of_lost_connections_make_room_for_others(tmp_path: Path) -> None:
    """However long they wanted to wait."""
    desk = PopDesk(tmp_path, max_pop_polling_size=1)
    desk.send("a")
    desk.pop()
    lost, other = desk.broker.connect(), desk.broker.connect()
    desk.hold_pop(lost, bornTime=desk.now + 10**15)
    lost.channel.connectionLost()
    desk.controller.polling.answer_expired(desk.now)
    desk.hold_pop(other, pollTime=15000)
    assert desk.controller.polling.count(WaitingKind.POP) == 1


def test_stopped_broker_has_no_timers_of_ordered_pops(desk: PopDesk) -> None:
    """Not of one either that takes messages when all are answered."""
    desk.send("a", "b")
    assert messages(desk.pop(order="true", queueId=0, maxMsgNums=2))
    consumer = desk.broker.connect()
    desk.hold_pop(consumer, order="true", queueId=0)
    desk.controller.pop.orders.clear("T", "G", 0)
    desk.stop()
    (answer,) = consumer.received()
    assert bodies(answer) == ["a", "b"]
    assert [call for call in desk.broker.clock.getDelayedCalls() if "_free" in repr(call.func)] == []


def test_pop_that_is_one_too_many_takes_nothing_that_arrives(desk: PopDesk) -> None:
    desk.broker.traffic.budget.options.max_held_requests = 0
    timers = len(desk.broker.clock.getDelayedCalls())
    consumer = desk.broker.connect()
    consumer.send(RemotingCommand(RequestCode.POP_MESSAGE, ext_fields=desk.pop_fields(pollTime=15000)))
    assert [answer.code for answer in consumer.received()] == [ResponseCode.SYSTEM_BUSY]
    assert (desk.controller.polling.count(WaitingKind.POP), len(desk.broker.clock.getDelayedCalls())) == (0, timers)
    desk.send("a")
    assert bodies(desk.pop()) == ["a"]
