"""Requests that wait for their answers: each has its own time, and all together one timer."""

from __future__ import annotations

from typing import Any

import attrs
from twisted.internet import defer
from twisted.internet.task import Clock
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.shapes import OPAQUE_PART, Family, Streak
from twisted_mq.remoting.awaited_answers import _DUE_KEPT, AwaitedAnswers
from twisted_mq.remoting.errors import RemotingSendError, RemotingTimeoutError


@attrs.define(eq=False)
class Asked:
    """Asks, and keeps what it gets."""

    open: bool = True
    reads: str | None = "read"
    settled_ones: list[tuple[Any, object]] = attrs.Factory(list)
    together: list[tuple[list[Any], Any]] = attrs.Factory(list)

    def settled(self, request: Any, result: RemotingCommand | Failure) -> bool:
        self.settled_ones.append((request, result.type if isinstance(result, Failure) else result.code))
        return self.open

    def read(self, streak: Streak) -> str | None:
        return self.reads

    def settled_together(self, requests: list[Any], read: Any) -> None:
        self.together.append((requests, read))


class Answers(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.clock.advance(0.1)  # a start at which 3.1 - 0.1 is not 3
        self.late_since: list[float] = []
        self.awaited = AwaitedAnswers(self.clock, self.late_since.append)

    def expect(self, *timeouts: float) -> list[defer.Deferred[RemotingCommand]]:
        return [self.awaited.expect(self.awaited.take_opaque(), one, "b:1") for one in timeouts]

    def late(self, waiting: list[defer.Deferred[RemotingCommand]]) -> list[bool]:
        """Return the requests that failed by their timeout."""
        failed = [one.called for one in waiting]
        for one in (one for one in waiting if one.called):
            self.failureResultOf(one, RemotingTimeoutError)
        return failed

    def test_each_fails_at_its_own_time_whatever_came_before(self) -> None:
        waiting = self.expect(3, 1, 2, 1)
        for seconds, failed in ((0.9, [0, 0, 0, 0]), (0.1, [0, 1, 0, 1]), (1, [0, 1, 1, 1]), (1, [1, 1, 1, 1])):
            self.clock.advance(seconds)
            self.assertEqual([one.called for one in waiting], [bool(one) for one in failed])
        errors = [str(self.failureResultOf(one, RemotingTimeoutError).value) for one in waiting]
        self.assertEqual(errors[0], "no answer from b:1 within 3 s")
        self.assertEqual((len(self.awaited.requests), self.clock.getDelayedCalls()), (0, []))

    def test_all_that_are_due_fail_when_the_reactor_comes_back_late(self) -> None:
        waiting = self.expect(3, 1, 2)
        self.clock.advance(10)
        self.assertEqual(self.late(waiting), [True, True, True])

    def test_one_timer_serves_all(self) -> None:
        self.expect(3, 1, 2, 5)
        self.assertEqual([call.getTime() for call in self.clock.getDelayedCalls()], [1.1])

    def test_an_answer_that_came_does_not_fail_those_that_are_due_later(self) -> None:
        first, second = self.expect(1, 2)
        self.assertTrue(self.awaited.answered(RemotingCommand(0, opaque=1)))
        self.assertFalse(self.awaited.answered(RemotingCommand(0, opaque=1)))
        self.clock.advance(1)
        self.assertEqual(self.successResultOf(first).opaque, 1)
        self.assertNoResult(second)
        self.clock.advance(1)
        self.failureResultOf(second, RemotingTimeoutError)

    def test_postponed_ones_wait_longer_those_behind_them_do_not(self) -> None:
        first = self.expect(1)
        self.awaited.postpone(1)
        second = self.expect(1.5)
        self.clock.advance(1.5)
        self.assertEqual(self.late(first + second), [False, True])
        self.clock.advance(0.5)
        self.assertEqual(self.late(first), [True])

    def test_a_number_that_is_given_again_has_its_own_time(self) -> None:
        self.awaited.expect(7, 1, "b:1")
        self.awaited.answered(RemotingCommand(0, opaque=7))
        again = self.awaited.expect(7, 2, "b:1")
        self.clock.advance(1)
        self.assertNoResult(again)
        self.clock.advance(1)
        self.failureResultOf(again, RemotingTimeoutError)

    def test_answered_requests_leave_nothing_that_grows(self) -> None:
        for _ in range(3 * _DUE_KEPT):
            self.expect(3)
            self.awaited.answered(RemotingCommand(0, opaque=self.awaited._last_opaque))
        self.assertLessEqual(len(self.awaited._due), _DUE_KEPT + 2)
        (waiting,) = self.expect(1)
        self.clock.advance(1)
        self.failureResultOf(waiting, RemotingTimeoutError)

    def test_the_connections_end_fails_all_and_takes_the_timer_along(self) -> None:
        waiting = self.expect(3, 1)
        self.awaited.fail("gone")
        for one in waiting:
            self.assertEqual(str(self.failureResultOf(one, RemotingSendError).value), "gone")
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def ask_together(self, asker: Asked, *timeouts: float) -> list[bytes]:
        requests = [(lambda opaque: b"%d" % opaque, one, number) for number, one in enumerate(timeouts)]
        return self.awaited.expect_together(asker, requests, "b:1")

    def test_requests_that_leave_together_have_their_numbers_and_times(self) -> None:
        asker = Asked()
        self.assertEqual(self.ask_together(asker, 3, 1, 3), [b"1", b"2", b"3"])
        self.assertTrue(self.awaited.answered(RemotingCommand(7, opaque=1)))
        self.clock.advance(1)
        self.clock.advance(2)
        self.assertEqual(asker.settled_ones, [(0, 7), (1, RemotingTimeoutError), (2, RemotingTimeoutError)])
        self.assertEqual((self.clock.getDelayedCalls(), len(self.late_since)), ([], 2))

    def test_a_late_request_that_had_ended_is_not_late(self) -> None:
        self.ask_together(Asked(open=False), 1)
        self.clock.advance(1)
        self.assertEqual((self.late_since, len(self.awaited.requests)), ([], 0))

    def test_the_connections_end_settles_what_left_together(self) -> None:
        asker = Asked()
        self.ask_together(asker, 3, 3)
        self.awaited.fail("gone")
        self.assertEqual(asker.settled_ones, [(0, RemotingSendError), (1, RemotingSendError)])

    def streak(self, *opaques: int) -> Streak:
        """Return a streak of answers whose only part that varies is the opaque."""
        parts: list[tuple[bytes, ...]] = [(b"", b"%d" % one, b"") for one in opaques]
        return Streak(Family(0, (OPAQUE_PART,), False), 0, [(*one, b"") for one in parts])

    def test_answers_of_one_shape_go_to_their_asker_together(self) -> None:
        asker = Asked()
        self.ask_together(asker, 3, 3, 3)
        self.assertTrue(self.awaited.answered_together(self.streak(3, 1)))
        self.assertEqual((asker.together, [*self.awaited.requests]), ([([2, 0], "read")], [2]))

    def test_answers_of_several_askers_or_of_none_are_passed_on_one_by_one(self) -> None:
        asker, other = Asked(), Asked()
        self.ask_together(asker, 3)
        self.ask_together(other, 3)
        self.expect(3)
        for opaques in ((1, 2), (1, 3), (1, 9), (3, 3), (1, 1)):
            self.assertFalse(self.awaited.answered_together(self.streak(*opaques)))
        odd = self.streak(1)
        odd.rows[:] = [(b"", b"01", b"", b"")]
        self.assertFalse(self.awaited.answered_together(odd))
        asker.reads = None
        self.assertFalse(self.awaited.answered_together(self.streak(1)))
        self.assertEqual((asker.together, len(self.awaited.requests)), ([], 3))

    def test_a_listener_of_a_failure_may_ask_again(self) -> None:
        again: list[defer.Deferred[RemotingCommand]] = []
        (waiting,) = self.expect(1)
        waiting.addErrback(lambda _: again.extend(self.expect(1)))
        self.clock.advance(1)
        self.assertNoResult(again[0])
        self.clock.advance(1)
        self.failureResultOf(again[0], RemotingTimeoutError)
