"""Room for sends in flight."""

from __future__ import annotations

from twisted.internet import defer
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from twisted_mq.client.core.pace import Pace
from twisted_mq.client.producing.send_window import SendWindow


class Window(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.stalls: list[float] = []
        self.window = SendWindow(self.clock, 2, 100, self.stalls.append)

    def enter(self, size: int = 1, *, at_once: bool = True) -> defer.Deferred[None] | None:
        return self.window.enter(size, at_once=at_once)

    def test_sends_past_the_count_wait_for_one_that_ends(self) -> None:
        self.assertEqual([self.enter(), self.enter()], [None, None])
        third, fourth = self.enter(), self.enter()
        self.assertEqual((self.window.count, self.window.waiting), (2, 2))
        self.window.leave(1)
        self.successResultOf(third)
        self.assertNoResult(fourth)
        self.assertEqual((self.window.count, self.window.waiting), (2, 1))

    def test_sends_keep_a_pace_whatever_room_there_is(self) -> None:
        window = SendWindow(self.clock, 100, 1000, self.stalls.append, Pace(10))
        turns = [window.enter(1, at_once=True) for _ in range(8)]
        went = []
        for _ in range(80):
            went.append(sum(turn is None or bool(turn.called) for turn in turns))
            self.clock.advance(0.0125)
        self.assertEqual([went[step] for step in (0, 16, 40, 79)], [2, 4, 7, 8])
        window.enter(1, at_once=True), window.enter(1, at_once=True), window.enter(1, at_once=True)
        window.stop()
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_sends_past_the_bytes_wait_and_who_comes_later_does_not_overtake(self) -> None:
        self.assertIsNone(self.enter(60))
        large, small = self.enter(60), self.enter(1)
        self.assertNoResult(large)
        self.assertNoResult(small)
        self.window.leave(60)
        self.successResultOf(large)
        self.successResultOf(small)
        self.assertEqual((self.window.count, self.window.bytes), (2, 61))

    def test_body_larger_than_all_bytes_goes_alone(self) -> None:
        self.assertIsNone(self.enter(1000))
        other = self.enter(1)
        self.assertNoResult(other)
        self.window.leave(1000)
        self.successResultOf(other)

    def test_send_that_gives_up_waiting_takes_no_room(self) -> None:
        self.enter()
        self.enter()
        third, fourth = self.enter(), self.enter()
        third.cancel()
        self.failureResultOf(third, defer.CancelledError)
        self.window.leave(1)
        self.successResultOf(fourth)
        self.assertEqual((self.window.count, self.window.waiting), (2, 0))

    def test_sends_that_end_at_once_make_room_for_any_number(self) -> None:
        self.enter()
        self.enter()
        ended = []
        for number in range(5000):
            turn = self.enter()
            turn.addCallback(lambda _, number=number: (ended.append(number), self.window.leave(1)))
        self.window.leave(1)
        self.assertEqual((ended, self.window.count), (list(range(5000)), 1))

    def test_who_may_not_go_at_once_waits_for_the_next_turn(self) -> None:
        turn = self.enter(at_once=False)
        self.assertNoResult(turn)
        self.clock.advance(0)
        self.successResultOf(turn)

    def test_a_turn_that_starts_several_sends_and_takes_long_is_told(self) -> None:
        self.enter()
        self.assertEqual(self.clock.getDelayedCalls(), [])  # a send by itself costs no timer
        self.enter()
        self.clock.advance(4)
        self.assertEqual(self.stalls, [4.0])
        self.enter()
        self.clock.advance(0)
        self.assertEqual(self.stalls, [4.0])
