"""Steps of a stop that raise, fail or never end: the next one is taken."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet import defer
from twisted.internet.task import Clock
from twisted.logger import LogLevel, capturedLogs, formatEvent
from twisted.trial.unittest import SynchronousTestCase

from twisted_mq.stopping import STEP_SECONDS, Step, stop_all, take


class StepsTest(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.taken: list[str] = []

    def step(self, name: str, answer: Callable[[], object] = lambda: None) -> Step:
        def work() -> object:
            self.taken.append(name)
            return answer()

        return name, work

    def stop(self, *steps: Step, seconds: float = 0) -> list[str]:
        """Take the steps, whose whole takes no longer; what was logged."""
        with capturedLogs() as events:
            stopped = defer.ensureDeferred(stop_all(self.clock, steps))
            self.clock.advance(seconds)
            self.assertIsNone(self.successResultOf(stopped))
        self.assertEqual(self.taken, [name for name, _ in steps])
        return [formatEvent(event) for event in events if event["log_level"] >= LogLevel.error]

    def test_steps_are_taken_in_turn_each_when_the_one_before_has_ended(self) -> None:
        ends: defer.Deferred[None] = defer.Deferred()
        steps = [self.step("one", lambda: ends), self.step("two")]
        stopped = defer.ensureDeferred(stop_all(self.clock, steps))
        self.assertEqual(self.taken, ["one"])
        ends.callback(None)
        self.assertEqual((self.taken, self.successResultOf(stopped)), (["one", "two"], None))

    def test_step_that_raises(self) -> None:
        def fail() -> None:
            raise ZeroDivisionError

        lines = self.stop(self.step("one", fail), self.step("two"))
        self.assertEqual(lines, ["stop: one failed, the stop continues without"])
        self.assertEqual(len(self.flushLoggedErrors(ZeroDivisionError)), 1)

    def test_step_whose_deferred_fails(self) -> None:
        lines = self.stop(self.step("one", lambda: defer.fail(OSError("disk full"))), self.step("two"))
        self.assertEqual(lines, ["stop: one failed, the stop continues without: disk full"])

    def test_step_whose_coroutine_fails(self) -> None:
        async def fail() -> None:
            raise OSError("disk full")

        lines = self.stop(self.step("one", fail), self.step("two"))
        self.assertEqual(lines, ["stop: one failed, the stop continues without: disk full"])

    def test_step_that_never_ends_is_cancelled(self) -> None:
        cancelled: list[defer.Deferred[None]] = []
        lines = self.stop(
            self.step("one", lambda: defer.Deferred(cancelled.append)), self.step("two"), seconds=STEP_SECONDS
        )
        self.assertEqual(lines, ["stop: one took more than 10.0 s, the stop continues without"])
        self.assertEqual(len(cancelled), 1)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_step_that_cannot_be_cancelled_is_left_behind(self) -> None:
        waiting = defer.gatherResults([]).addCallback(lambda _: defer.Deferred())
        lines = self.stop(self.step("one", lambda: waiting), self.step("two"), seconds=STEP_SECONDS)
        self.assertEqual(lines, ["stop: one took more than 10.0 s, the stop continues without"])

    def test_answer_says_whether_it_ended_well(self) -> None:
        answers = [
            self.successResultOf(defer.ensureDeferred(take(self.clock, "it", work, 1)))
            for work in (lambda: 5, lambda: defer.fail(OSError()))
        ]
        self.assertEqual(answers, [True, False])
