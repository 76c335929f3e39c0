"""Runs listener calls side by side, and starts and ends them."""

from __future__ import annotations

import abc
import collections
from collections.abc import Sequence

import attrs
from twisted.internet import defer, interfaces
from twisted.python import failure

from twisted_mq.client.consuming.consumer_options import ConsumeContext, ConsumerOptions, ConsumeStatus
from twisted_mq.client.consuming.listener_calls import ListenerCalls
from twisted_mq.client.consuming.process_queue import ProcessQueue
from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.messages.message import MessageExt

CALLS_A_TURN = 64
"""Listener calls before the reactor gets a turn."""


@attrs.frozen(eq=False, slots=False)
class Work:
    """The messages of one listener call, with their queue."""

    messages: Sequence[MessageExt]
    process_queue: ProcessQueue
    queue: MessageQueue
    since: float
    """Clock seconds at which the messages came."""


class CallPump(abc.ABC):
    """Has work consumed in the order it came, at most `concurrency` calls at a time."""

    log = Logger()

    def __init__(self, calls: ListenerCalls[ConsumeContext, ConsumeStatus], options: ConsumerOptions) -> None:
        self.calls = calls
        self._clock = calls.clock
        self._group = calls.group
        self._options = options
        self._waiting: collections.deque[Work] = collections.deque()
        self._running: dict[defer.Deferred[None], None] = {}
        self._timers: dict[interfaces.IDelayedCall, None] = {}
        self._turn: interfaces.IDelayedCall | None = None
        self._idle: defer.Deferred[None] | None = None
        self._pumping = False

    @abc.abstractmethod
    def _consume(self, work: Work) -> defer.Deferred[None] | None:
        """Call the listener and settle its answer. Return None if that is done."""

    def submit(self, messages: Sequence[MessageExt], process_queue: ProcessQueue, queue: MessageQueue) -> None:
        """Have these messages consumed, in calls of at most consume_message_batch_max_size."""
        size = self._options.consume_message_batch_max_size
        for start in range(0, len(messages), size):
            work = Work(messages[start : start + size], process_queue, queue, self._clock.seconds())
            self._waiting.append(work)
        self._pump()

    async def consume_directly(self, message: MessageExt, queue: MessageQueue) -> ConsumeStatus:
        """Return the listener's answer to one message, without settling the message. Raises what the listener raises."""
        return await self.calls.call([message], ConsumeContext(queue))

    async def stop(self, finish_seconds: float) -> None:
        """Begin no further call; let the open ones finish for that long, then cancel them."""
        self.calls.stopped = True
        self._waiting.clear()
        for timer in [*self._timers, *([self._turn] if self._turn is not None else [])]:
            timer.cancel()
        self._timers.clear()
        self._turn = None
        if self._running:
            self._idle = defer.Deferred()
            await self._idle.addTimeout(finish_seconds, self._clock, onTimeoutCancel=lambda *_: None)
        for running in list(self._running):
            running.cancel()
        await self.calls.close(finish_seconds)

    # open calls

    def _pump(self) -> None:
        """Begin as many calls as may be open. Give the reactor a turn after some of them."""
        if self._pumping:  # a call that ended at once made room: the loop below continues
            return
        self._pumping = True
        try:
            self._pump_some()
        finally:
            self._pumping = False

    def _pump_some(self) -> None:
        begun = 0
        while self._waiting and len(self._running) < self._options.concurrency and not self.calls.stopped:
            if begun == CALLS_A_TURN:
                if self._turn is None:
                    self._turn = self._clock.callLater(0, self._next_turn)
                return
            begun += 1
            self._begin(self._waiting.popleft())

    def _begin(self, work: Work) -> None:
        try:
            running = self._consume(work)
        except BaseException:
            self._report(failure.Failure())
            return
        if running is not None:
            self._running[running] = None
            running.addBoth(self._ended, running)

    def _next_turn(self) -> None:
        self._turn = None
        self._pump()

    def _ended(self, result: failure.Failure | None, running: defer.Deferred[None]) -> None:
        self._running.pop(running, None)
        if isinstance(result, failure.Failure):
            self._report(result)
        if self._idle is not None and not self._running and not self._idle.called:
            self._idle.callback(None)
        self._pump()

    def _report(self, reason: failure.Failure) -> None:
        if not reason.check(defer.CancelledError):
            self.log.failure("consume result not settled: group={group}", reason, group=self._group)


def consumed_count(status: ConsumeStatus, context: ConsumeContext, count: int) -> int:
    """Return how many messages of a call were consumed, counted from its first."""
    if status is not ConsumeStatus.CONSUME_SUCCESS:
        return 0
    return count if context.ack_index is None else min(context.ack_index + 1, count)
