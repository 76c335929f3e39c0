"""When rebalancing happens. What it does is in test_push_consumer.py, on brokers in memory."""

from __future__ import annotations

from twisted.internet import defer
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from twisted_mq.client.consuming.rebalance_timer import RebalanceTimer


class Timer(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.runs: list[float] = []
        self.balanced = True
        self.waiting: defer.Deferred[None] | None = None
        self.timer = RebalanceTimer(self.clock, 20, self._work)

    async def _work(self) -> bool:
        self.runs.append(self.clock.seconds())
        if self.waiting is not None:
            await self.waiting
        return self.balanced

    def pass_time(self, seconds: int) -> None:
        self.clock.pump([1] * seconds)

    def test_runs_every_twenty_seconds(self) -> None:
        self.timer.now()
        self.pass_time(45)
        self.assertEqual(self.runs, [0, 20, 40])

    def test_notice_runs_at_once_and_the_time_counts_from_there(self) -> None:
        self.timer.now()
        self.pass_time(5)
        self.timer.now()
        self.pass_time(21)
        self.assertEqual(self.runs, [0, 5, 25])

    def test_notices_during_a_run_are_one_further_run(self) -> None:
        self.waiting = defer.Deferred()
        for _ in range(3):
            self.timer.now()
        self.assertEqual(self.runs, [0])
        self.waiting.callback(None)
        self.clock.advance(0)
        self.assertEqual(self.runs, [0, 0])

    def test_while_something_is_missing_it_runs_sooner_and_ever_more_seldom(self) -> None:
        self.balanced = False
        self.timer.now()
        self.pass_time(60)
        self.assertEqual(self.runs, [0, 1, 3, 7, 15, 31, 51])

    def test_success_makes_the_next_failure_a_first_one(self) -> None:
        self.balanced = False
        self.timer.now()
        self.pass_time(3)
        self.balanced = True
        self.pass_time(4)
        self.balanced = False
        self.pass_time(21)
        self.assertEqual(self.runs, [0, 1, 3, 7, 27, 28])

    def test_unexpected_failure_is_logged_and_tried_again(self) -> None:
        self.waiting = defer.fail(KeyError("bug"))
        self.timer.now()
        self.assertEqual(len(self.flushLoggedErrors(KeyError)), 1)
        self.waiting = None
        self.pass_time(1)
        self.assertEqual(self.runs, [0, 1])

    def test_stop_ends_the_timer_and_a_run_under_way(self) -> None:
        self.timer.now()
        self.timer.stop()
        self.timer.stop()
        self.timer.now()
        self.assertEqual((self.runs, self.clock.getDelayedCalls()), ([0], []))

    def test_stop_cancels_a_run(self) -> None:
        cancelled: list[object] = []
        self.waiting = defer.Deferred(cancelled.append)
        self.timer.now()
        self.timer.stop()
        self.assertEqual((len(cancelled), self.clock.getDelayedCalls()), (1, []))
