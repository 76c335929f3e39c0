"""A loop that asks for one queue's messages repeatedly, from its assignment until it is given up."""

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
"""The pause if the broker could not be reached: it is asked again this soon after its return (Apache: as after every error)."""
FLOW_CONTROL_SECONDS = 0.05
"""PULL_TIME_DELAY_MILLS_WHEN_CACHE_FLOW_CONTROL"""
BROKER_FLOW_CONTROL_SECONDS = 0.02
"""PULL_TIME_DELAY_MILLS_WHEN_BROKER_FLOW_CONTROL"""


class QueueLoop(abc.ABC):
    """Takes steps until it is stopped. Messages are in `process_queue` until they are consumed."""

    log = Logger()
    pops = False

    def __init__(self, clock: interfaces.IReactorTime, queue: MessageQueue, process_queue: ProcessQueue) -> None:
        self.queue = queue
        self.process_queue = process_queue
        self._clock = clock
        self._running: defer.Deferred[None] | None = None

    @property
    def lag(self) -> int | None:
        """Messages of the queue that are not consumed; None if it is not known."""
        return None

    @abc.abstractmethod
    async def _step(self) -> float:
        """Ask once, or not. Return the seconds to wait before the next step."""

    def start(self, delay_seconds: float) -> None:
        """Begin after a delay, in which the queue's previous owner may finish."""
        self._running = defer.Deferred.fromCoroutine(self._run(delay_seconds))
        self._running.addErrback(self._report)

    def stop(self) -> None:
        """Ask no more and cancel the pending request. Messages that came may still be consumed."""
        if self._running is not None:
            self._running.cancel()

    def drop(self) -> None:
        """Ask no more and let no result commit: the queue is no longer assigned here."""
        self.process_queue.dropped = True
        self.stop()

    def expired(self, now_seconds: float) -> bool:
        """Return whether the loop has unexpectedly come to a halt."""
        return self.process_queue.pull_expired(now_seconds)

    def _report(self, reason: failure.Failure) -> None:
        if not reason.check(defer.CancelledError):
            self.log.failure("no more messages are fetched from a queue: queue={queue}", reason, queue=self.queue)

    async def _run(self, delay_seconds: float) -> None:
        while not self.process_queue.dropped:
            if delay_seconds:
                await task.deferLater(self._clock, delay_seconds)
            delay_seconds = await self._step()
