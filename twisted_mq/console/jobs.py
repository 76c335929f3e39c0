"""Runs work in the background of pages: dead letters that are sent again, with their number and progress."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import attrs
from twisted.internet.defer import CancelledError, Deferred

from twisted_mq.logs import Logger

KEPT = 64
"""The number of ended jobs that are kept."""


@attrs.define(eq=False)
class Job:
    """A job. `problem` says why it ended early; `done` counts steps of `total`."""

    name: str
    total: int
    done: int = 0
    problem: str = ""
    running: bool = True
    _work: Deferred[None] | None = None

    @property
    def ratio(self) -> float:
        return min(1.0, self.done / self.total) if self.total else 1.0

    def stop(self) -> None:
        """Stop after the current step. A second call does nothing."""
        if self._work is not None and self.running:
            self._work.cancel()


class Jobs:
    """Jobs by name. Only one job of a name runs at a time."""

    log = Logger()

    def __init__(self, explained: Callable[[Exception], str]) -> None:
        """Create the jobs. `explained` returns the text for an exception."""
        self._explained = explained
        self._jobs: dict[str, Job] = {}

    def find(self, name: str) -> Job | None:
        return self._jobs.get(name)

    def start(self, name: str, total: int, steps: AsyncIterator[object]) -> Job:
        """Start a job and count its steps, or return the one of that name that runs already."""
        known = self._jobs.pop(name, None)
        if known is not None and known.running:
            self._jobs[name] = known
            return known
        job = self._jobs[name] = Job(name, total)
        for old in [one for one in self._jobs.values() if not one.running][:-KEPT]:
            del self._jobs[old.name]
        job._work = Deferred.fromCoroutine(self._run(job, steps))
        return job

    async def _run(self, job: Job, steps: AsyncIterator[object]) -> None:
        try:
            async for _ in steps:
                job.done += 1
        except CancelledError:
            job.problem = "stopped"
        except Exception as error:
            job.problem = self._explained(error)
            self.log.failure("job failed: {name}", name=job.name)
        finally:
            job.running = False

    def stop_all(self) -> None:
        """Stop all jobs when the console ends."""
        for job in self._jobs.values():
            job.stop()
