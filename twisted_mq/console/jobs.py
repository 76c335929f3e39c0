"""Work that goes on behind a page: dead letters that are sent again, with their number and how far it is."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import attrs
from twisted.internet.defer import CancelledError, Deferred

from twisted_mq.logs import Logger

KEPT = 64
"""So many jobs that ended are remembered."""


@attrs.define(eq=False)
class Job:
    """One piece of work. `problem` says why it ended early; `done` counts steps of `total`."""

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
        """End it after the step that is under way. A second call does nothing."""
        if self._work is not None and self.running:
            self._work.cancel()


class Jobs:
    """Jobs by name: one of a name runs at a time, whoever asks for it."""

    log = Logger()

    def __init__(self, explained: Callable[[Exception], str]) -> None:
        """`explained` says what an exception means to people."""
        self._explained = explained
        self._jobs: dict[str, Job] = {}

    def find(self, name: str) -> Job | None:
        return self._jobs.get(name)

    def start(self, name: str, total: int, steps: AsyncIterator[object]) -> Job:
        """Run the steps, which are counted; the job that runs already where there is one."""
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
        """At the console's end."""
        for job in self._jobs.values():
            job.stop()
