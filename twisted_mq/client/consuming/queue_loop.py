"""One queue that is asked for messages again and again, from its assignment until it is given up."""

from __future__ import annotations

import abc

from twisted.internet import defer, interfaces, task
from twisted.python import failure

from twisted_mq.client.consuming.process_queue import ProcessQueue
from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import MessageQueue

PAUSED_SECONDS = 1.0
"""PULL_TIME_DELAY_MILLS_WHEN_SUSPEND"""
AFTER_ERROR_SECONDS = 3.0
"""pullTimeDelayMillsWhenException"""
AFTER_LOST_SECONDS = 0.3
"""Where the broker could not be reached: so soon after its return it is asked again (Apache: as after every error)."""
FLOW_CONTROL_SECONDS = 0.05
"""PULL_TIME_DELAY_MILLS_WHEN_CACHE_FLOW_CONTROL"""
BROKER_FLOW_CONTROL_SECONDS = 0.02
"""PULL_TIME_DELAY_MILLS_WHEN_BROKER_FLOW_CONTROL"""


class QueueLoop(abc.ABC):
    """Takes steps until it is stopped; what a step brought is in `process_queue` until it is consumed."""

    log = Logger()
    pops = False

    def __init__(self, clock: interfaces.IReactorTime, queue: MessageQueue, process_queue: ProcessQueue) -> None:
        self.queue = queue
        self.process_queue = process_queue
        self._clock = clock
        self._running: defer.Deferred[None] | None = None

    @property
    def lag(self) -> int | None:
        """Messages of the queue that are not consumed; None where nobody has said."""
        return None

    @abc.abstractmethod
    async def _step(self) -> float:
        """Ask once, or not; return the seconds to wait before the next step."""

    def start(self, delay_seconds: float) -> None:
        """Go on from now, after a delay in which the queue's last owner may finish."""
        self._running = defer.Deferred.fromCoroutine(self._run(delay_seconds))
        self._running.addErrback(self._report)

    def stop(self) -> None:
        """Ask no more; what is asked now is forgotten. What came may still be consumed."""
        if self._running is not None:
            self._running.cancel()

    def drop(self) -> None:
        """The queue is no longer ours: ask no more, and let no result of it commit."""
        self.process_queue.dropped = True
        self.stop()

    def expired(self, now_seconds: float) -> bool:
        """Whether asking has come to a halt, against all expectation."""
        return self.process_queue.pull_expired(now_seconds)

    def _report(self, reason: failure.Failure) -> None:
        if not reason.check(defer.CancelledError):
            self.log.failure("nothing more comes of a queue: queue={queue}", reason, queue=self.queue)

    async def _run(self, delay_seconds: float) -> None:
        while not self.process_queue.dropped:
            if delay_seconds:
                await task.deferLater(self._clock, delay_seconds)
            delay_seconds = await self._step()
