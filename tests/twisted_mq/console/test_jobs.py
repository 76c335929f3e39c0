"""Work behind a page: counted, stopped, one of a name at a time, its failure told."""

from __future__ import annotations

from collections.abc import AsyncIterator

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from twisted_mq.console.jobs import KEPT, Job, Jobs


class JobsTest(SynchronousTestCase):
    def setUp(self) -> None:
        self.jobs = Jobs(lambda error: f"told: {error}")
        self.steps: list[Deferred[None]] = []

    async def work(self, count: int) -> AsyncIterator[int]:
        for number in range(count):
            self.steps.append(Deferred())
            await self.steps[-1]
            yield number

    def start(self, name: str = "audit", count: int = 3) -> Job:
        return self.jobs.start(name, count, self.work(count))

    def test_steps_are_counted_until_all_are_done(self) -> None:
        job = self.start()
        seen = [(job.done, job.running, job.ratio)]
        for _ in range(3):
            self.steps[-1].callback(None)
            seen.append((job.done, job.running, round(job.ratio, 2)))
        self.assertEqual(seen, [(0, True, 0.0), (1, True, 0.33), (2, True, 0.67), (3, False, 1.0)])
        self.assertEqual(job.problem, "")

    def test_one_of_a_name_runs_at_a_time(self) -> None:
        job = self.start()
        self.assertIs(self.start(), job)
        self.assertEqual(len(self.steps), 1)
        self.assertIsNot(self.start("other"), job)

    def test_a_stopped_job_says_so_and_another_one_may_follow(self) -> None:
        job = self.start()
        self.steps[0].callback(None)
        job.stop()
        job.stop()
        self.assertEqual((job.running, job.problem, job.done), (False, "stopped", 1))
        self.assertIsNot(self.start(), job)

    def test_a_failure_is_told_and_logged(self) -> None:
        job = self.start()
        self.steps[0].errback(ValueError("no broker"))
        self.assertEqual((job.running, job.problem), (False, "told: no broker"))
        self.assertEqual(len(self.flushLoggedErrors(ValueError)), 1)

    def test_jobs_that_ended_are_forgotten_past_a_number(self) -> None:
        for number in range(KEPT + 9):
            self.start(f"group-{number}", 0)
        self.assertIsNone(self.jobs.find("group-0"))
        self.assertIsNotNone(self.jobs.find(f"group-{KEPT + 8}"))
