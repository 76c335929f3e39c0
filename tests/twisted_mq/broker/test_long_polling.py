"""Waiting requests and their answers; with their processors: processors/test_pull, pop/test_held_requests."""

from __future__ import annotations

from collections.abc import Callable, Collection
from unittest.mock import patch

import attrs
import pytest
from twisted.internet import defer
from twisted.internet.task import Clock

from twisted_mq.broker.long_polling import END_MS, TURN_SECONDS, LongPolling
from twisted_mq.broker.waiting_requests import WaitingKind, WaitingLine
from twisted_mq.remoting.late_answers import LateAnswers

PULLS = WaitingLine(WaitingKind.PULL, "T", "", 0)


@attrs.define(eq=False)
class Connection:
    """Notes what is written to it."""

    connected_now: bool = True
    share_address: str = "127.0.0.1"
    writes: list[list[bytes]] = attrs.field(factory=list)

    def write_answers(self, answers: list[bytes]) -> None:
        self.writes.append(answers)


@attrs.define(eq=False)
class Request:
    """Answers with its name, which `found` may forbid unless it is the last attempt."""

    name: str
    line: WaitingLine = PULLS
    tags_codes: Collection[int] | None = None
    expires_ms: int = 100_000
    channel: Connection = attrs.field(factory=Connection)
    found: Callable[[], bool] = lambda: True

    def attempt(self, last: bool) -> bytes | None:
        return self.name.encode() if last or self.found() else None


@attrs.define(eq=False)
class Desk:
    """Long polling by itself, and who was answered with what."""

    clock: Clock = attrs.field(factory=Clock)
    answers: list[object] = attrs.field(factory=list)
    dispatched: int = 0
    late: LateAnswers = attrs.field(factory=LateAnswers)
    polling: LongPolling = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.polling = LongPolling(self.clock, lambda: int(self.clock.seconds() * 1000), self.late, self.dispatch)

    def dispatch(self) -> None:
        self.dispatched += 1

    def hold(self, request: Request) -> defer.Deferred[object]:
        done = self.polling.hold(request)
        done.addCallbacks(self.answers.append, lambda reason: self.answers.append(reason.type.__name__))
        return done

    def arrive(self, queue_id: int = 0, tags_code: int = 0, topic: str = "T", count: int = 1) -> None:
        for offset in range(count):
            self.polling.arrived(topic, queue_id, offset, tags_code, 1)
        self.polling.answer_woken()


def pop(name: str, queue_id: int = -1, kind: WaitingKind = WaitingKind.POP, **more: object) -> Request:
    return Request(name, WaitingLine(kind, "T", "G", queue_id), **more)


def broken() -> bool:
    raise ValueError("broken")


def test_arrival_answers_the_queues_pulls_once_after_the_batch() -> None:
    desk = Desk()
    desk.hold(Request("a"))
    desk.hold(Request("b", WaitingLine(WaitingKind.PULL, "T", "", 1)))
    for offset in range(3):
        desk.polling.arrived("T", 0, offset, 0, 1)
    assert desk.answers == []
    desk.polling.answer_woken()
    assert (desk.answers, desk.polling.count(WaitingKind.PULL)) == ([b"a"], 1)
    desk.polling.answer_woken()
    assert desk.answers == [b"a"]


def test_arrival_with_another_tag_leaves_a_pull_waiting() -> None:
    desk = Desk()
    desk.hold(Request("a", tags_codes={7}))
    desk.arrive(tags_code=8)
    assert desk.answers == []
    desk.arrive(tags_code=7)
    assert desk.answers == [b"a"]


def test_time_limit_answers_and_lost_connections_are_forgotten() -> None:
    desk = Desk()
    desk.hold(Request("late", expires_ms=50))
    desk.hold(Request("early", expires_ms=200))
    desk.hold(Request("gone", channel=Connection(connected_now=False)))
    desk.polling.answer_expired(60)
    assert (desk.answers, desk.polling.count(WaitingKind.PULL)) == ([None, b"late"], 1)


def test_failing_answer_reaches_its_own_pull_alone() -> None:
    desk = Desk()
    desk.hold(Request("a", found=broken))
    desk.hold(Request("b"))
    desk.arrive(tags_code=8)
    assert (desk.answers, desk.polling.count(WaitingKind.PULL)) == (["ValueError", b"b"], 0)


def test_pull_that_finds_nothing_of_what_arrived_goes_on_waiting() -> None:
    desk, finds = Desk(), list[bool]([False, True])
    desk.hold(Request("a", found=lambda: finds.pop(0)))
    desk.arrive()
    assert (desk.answers, desk.polling.count(WaitingKind.PULL)) == ([], 1)
    desk.arrive()
    assert (desk.answers, desk.polling.lines) == ([b"a"], {})


def test_all_of_a_kind_are_answered_at_the_end() -> None:
    desk = Desk()
    desk.hold(Request("a", found=broken))
    desk.hold(pop("b", found=lambda: False))
    desk.polling.answer_all(WaitingKind.POP, WaitingKind.NOTIFICATION)
    assert desk.answers == [b"b"]
    desk.polling.answer_all(WaitingKind.PULL)
    assert (desk.answers, desk.polling.lines, desk.clock.getDelayedCalls()) == ([b"b", b"a"], {}, [])


def test_pulls_of_one_queue_are_answered_when_a_reader_is_to_go_elsewhere() -> None:
    desk = Desk()
    desk.hold(Request("a"))
    desk.hold(Request("b", WaitingLine(WaitingKind.PULL, "T", "", 1)))
    desk.hold(pop("c", queue_id=0))
    desk.polling.answer_queue("T", 0)
    assert desk.answers == [b"a"]


def test_cancelled_request_is_answered_no_more() -> None:
    desk = Desk()
    for cancelled in (desk.hold(Request("a")), desk.hold(pop("p"))):
        cancelled.cancel()
    desk.hold(Request("b"))
    desk.polling.answer_all(*WaitingKind)
    assert desk.answers == ["CancelledError", "CancelledError", b"b"]
    assert (desk.polling.lines, desk.clock.getDelayedCalls()) == ({}, [])


def test_request_whose_answer_is_not_durable_yet_can_be_cancelled() -> None:
    @attrs.define(eq=False)
    class Late(Request):
        """Its answer comes once its message is on the disk."""

        answer: defer.Deferred[bytes] = attrs.field(factory=defer.Deferred)

        def attempt(self, last: bool) -> defer.Deferred[bytes]:  # type: ignore[override]
            return self.answer

    desk, late = Desk(), Late("p", line=pop("p").line)
    held = desk.hold(late)
    desk.arrive()
    assert (desk.answers, desk.polling.lines) == ([], {})
    held.cancel()
    late.answer.callback(b"p")
    late.answer.addErrback(desk.answers.append)
    assert (desk.answers, desk.clock.getDelayedCalls()) == (["CancelledError"], [])


def test_as_many_pops_are_answered_as_messages_came_and_pulls_all() -> None:
    desk = Desk()
    for name in "ab":
        desk.hold(Request(name))
    for name, expires_ms in (("later", 9000), ("first", 5000), ("last", 12000)):
        desk.hold(pop(name, expires_ms=expires_ms))
    desk.arrive(count=2)
    assert desk.answers == [b"a", b"b", b"first", b"later"]


def test_notifications_come_before_pops_the_last_to_end_first() -> None:
    desk = Desk()
    desk.hold(pop("p", expires_ms=9000))
    for name, expires_ms in (("first", 5000), ("last", 9000)):
        desk.hold(pop(name, kind=WaitingKind.NOTIFICATION, expires_ms=expires_ms))
    desk.arrive()
    assert desk.answers == [b"last", b"p"]


def test_pop_of_all_queues_and_of_retry_topics_is_woken() -> None:
    desk = Desk()
    desk.hold(pop("all"))
    desk.hold(pop("one", queue_id=3))
    desk.arrive(queue_id=5)
    assert desk.answers == [b"all"]
    desk.arrive(queue_id=3, topic="%RETRY%G_T")
    assert desk.answers == [b"all", b"one"]


def test_pop_whose_time_is_up_is_tried_once_more_and_what_it_put_is_shown() -> None:
    desk = Desk()
    desk.hold(pop("p", expires_ms=3000, found=lambda: False))
    desk.clock.advance(2.9)
    assert (desk.answers, desk.dispatched) == ([], 0)
    desk.clock.advance(0.06)
    assert (desk.answers, desk.dispatched) == ([b"p"], 1)


def test_answers_of_one_connection_leave_in_one_piece() -> None:
    desk, one, other = Desk(), Connection(), Connection()
    for queue_id in range(3):
        request = Request(f"a{queue_id}", WaitingLine(WaitingKind.PULL, "T", "", queue_id), channel=one)
        desk.polling.hold(request).addCallback(lambda answer: desk.late.write(one, answer))
    desk.hold(Request("b", channel=other, found=lambda: False))
    for queue_id in range(3):
        desk.polling.arrived("T", queue_id, 0, 0, 1)
    desk.polling.answer_woken()
    assert (one.writes, other.writes) == ([[b"a0", b"a1", b"a2"]], [])


class SlowDesk(Desk):
    """Each attempt takes three quarters of a turn."""

    def slow(self) -> bool:
        self.clock.rightNow += 0.75 * TURN_SECONDS
        return True

    def turn(self) -> list[object]:
        """Return the requests that are answered in the next turn."""
        (due,) = [call for call in self.clock.getDelayedCalls() if call.getTime() <= self.clock.seconds()]
        self.clock.calls.remove(due)
        self.answers.clear()
        due.called = 1
        due.func()
        return self.answers


def test_very_many_pulls_are_answered_in_several_turns() -> None:
    desk = SlowDesk()
    held = [desk.hold(Request(name, found=desk.slow)) for name in "abcdef"]
    desk.hold(Request("other tags", tags_codes={7}, found=desk.slow))
    desk.arrive()
    assert desk.answers == [b"a", b"b"]
    held[3].cancel()
    desk.arrive(queue_id=1)
    desk.answers.clear()
    assert desk.turn() == [b"c", b"e"]
    assert desk.turn() == [b"f"]
    assert (desk.polling.count(WaitingKind.PULL), desk.clock.getDelayedCalls(), desk.dispatched) == (1, [], 0)


def test_what_pops_put_in_later_turns_is_shown_after_each() -> None:
    desk = SlowDesk()
    for name in "abcde":
        desk.hold(pop(name, found=desk.slow))
    desk.arrive(count=4)
    assert (desk.answers, desk.dispatched) == ([b"a", b"b"], 0)
    assert (desk.turn(), desk.dispatched, desk.polling.count(WaitingKind.POP)) == ([b"c", b"d"], 1, 1)


def test_pulls_whose_time_is_up_together_are_answered_in_several_turns() -> None:
    desk = SlowDesk()
    for name in "abc":
        desk.hold(Request(name, found=desk.slow, expires_ms=50))
    slow = Request.attempt
    with patch.object(Request, "attempt", lambda self, last: (desk.slow(), slow(self, last))[1]):
        desk.polling.answer_expired(60)
        assert desk.answers == [b"a", b"b"]
        assert desk.turn() == [b"c"]


class Untouched(int):
    """A time that must not be compared with the present one."""

    def __le__(self, other: object) -> bool:
        raise AssertionError("a pull whose time is far was looked at")


def test_pulls_whose_time_is_far_are_not_looked_at() -> None:
    desk = Desk()
    for _ in range(3):
        desk.hold(Request("early", expires_ms=Untouched(10 * END_MS)))
    desk.hold(Request("later in this second", expires_ms=70))
    desk.hold(Request("due", expires_ms=50))
    desk.polling.answer_expired(60)
    assert (desk.answers, desk.polling.count(WaitingKind.PULL)) == ([b"due"], 4)
    desk.polling.answer_all(WaitingKind.PULL)
    assert desk.polling._ends == {}


def test_pulls_of_a_lost_connection_are_dropped_long_before_their_time() -> None:
    desk = Desk()
    gone = Connection()
    for connection in (gone, Connection(), gone):
        desk.hold(Request("a", channel=connection, expires_ms=10 * END_MS))
    gone.connected_now = False
    desk.polling.answer_expired(60)
    assert (desk.answers, desk.polling.count(WaitingKind.PULL)) == ([None, None], 1)


def test_the_end_answers_at_once_what_waits_for_its_turn_too() -> None:
    desk = SlowDesk()
    for name in "abcd":
        desk.hold(Request(name, found=desk.slow))
    desk.arrive()
    desk.hold(Request("e"))
    desk.polling.answer_all(WaitingKind.PULL)
    assert (desk.answers, desk.polling.lines, desk.clock.getDelayedCalls()) == ([b"a", b"b", b"c", b"d", b"e"], {}, [])


@pytest.mark.parametrize("kind", list(WaitingKind))
def test_nobody_waits_longer_than_five_minutes(kind: WaitingKind) -> None:
    desk = Desk()
    desk.hold(Request("a", WaitingLine(kind, "T", "G", 0), expires_ms=10**15))
    for now_ms in (299_000, 301_000):
        desk.clock.rightNow = now_ms / 1000
        desk.clock.advance(0)
        desk.polling.answer_expired(now_ms)
        assert desk.answers == ([] if now_ms < 300_000 else [b"a"])


def test_the_largest_share_gives_way_when_there_is_no_room() -> None:
    """A stranger's connections hold as many pulls as may wait; others' pulls wait all the same."""
    desk = Desk()
    stranger, honest = Connection(share_address="10.0.0.1"), Connection(share_address="10.0.0.2")
    for number in range(10):
        desk.hold(Request(f"stranger {number}", channel=stranger))
    mine = [Request(f"honest {number}", channel=honest) for number in range(6)]
    let_in = []
    for request in mine:
        let_in.append(desk.polling.has_room(request, 10))
        if let_in[-1]:
            desk.hold(request)
    assert (let_in, desk.answers) == ([True] * 5 + [False], [f"stranger {number}".encode() for number in range(5)])
    assert not desk.polling.has_room(Request("more", channel=stranger), 10)
    assert (desk.polling.count(WaitingKind.PULL), desk.polling.gave_way) == (10, 5)
