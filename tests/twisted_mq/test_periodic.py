"""Jobs that go on whatever becomes of one turn."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet import defer
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from twisted_mq.periodic import LONG_SECONDS, PeriodicJob


class PeriodicJobCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.turns = 0
        self.result: Callable[[], object] = lambda: None
        self.job = PeriodicJob("saving", self.clock, 5, self._turn)

    def _turn(self) -> object:
        self.turns += 1
        return self.result()

    def _fail(self) -> object:
        raise OSError("disk full")

    def test_the_first_turn_comes_after_the_interval(self) -> None:
        self.assertEqual(self.turns, 0)
        self.clock.pump([5, 5])
        self.assertEqual(self.turns, 2)

    def test_a_failure_is_said_once_and_the_job_goes_on(self) -> None:
        for fail in (self._fail, lambda: defer.fail(OSError("disk full"))):
            self.result = fail
            with self.assertLogs("twisted_mq.periodic", "CRITICAL") as logged:
                self.clock.pump([5, 5, 5])
            self.assertEqual(len(logged.output), 1)
            self.assertIn("saving failed", logged.output[0])
            self.result = lambda: None
            self.clock.advance(5)
        self.assertEqual(self.turns, 8)

    def test_work_that_takes_long_is_logged(self) -> None:
        for seconds, lines in ((LONG_SECONDS + 0.001, ["long turn: seconds=0.101 job=saving"]), (LONG_SECONDS / 2, [])):
            self.result = lambda seconds=seconds: setattr(self.clock, "rightNow", self.clock.rightNow + seconds)
            with (
                self.assertLogs("twisted_mq.periodic") if lines else self.assertNoLogs("twisted_mq.periodic") as logged
            ):
                self.clock.advance(5)
            self.assertEqual([one.getMessage() for one in logged.records] if lines else [], lines)

    def test_a_turn_that_waits_is_not_overtaken(self) -> None:
        waiting: defer.Deferred[None] = defer.Deferred()
        self.result = lambda: waiting
        self.clock.pump([5, 5, 5])
        self.assertEqual(self.turns, 1)
        waiting.callback(None)
        self.clock.advance(5)
        self.assertEqual(self.turns, 2)

    def test_stopped_twice_it_leaves_no_timer(self) -> None:
        self.job.stop()
        self.job.stop()
        self.assertEqual(self.clock.getDelayedCalls(), [])
