"""Calls the listener and settles what it answered (Apache: ConsumeMessageConcurrentlyService).

A message that was not consumed goes back to the broker, which delivers it later; where it cannot go back it is handed
to the listener again after 5 s. Results of a dropped queue change nothing.
"""

from __future__ import annotations

import collections
from collections.abc import Awaitable, Callable, Iterable, Sequence

import attrs
from twisted.internet import defer, interfaces
from twisted.python import failure

from twisted_mq.client.consuming.consumer_options import (
    ConsumeContext,
    ConsumerOptions,
    ConsumeStatus,
    MessageModel,
)
from twisted_mq.client.consuming.listener_calls import ListenerCalls, message_ids
from twisted_mq.client.consuming.offset_store import OffsetStore
from twisted_mq.client.consuming.process_queue import ProcessQueue
from twisted_mq.client.core.errors import EXPECTED_ERRORS
from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.messages.message import MessageExt

RETRY_HERE_SECONDS = 5.0
"""When messages that could not go back are tried again."""

CALLS_A_TURN = 64
"""Listener calls before the reactor gets a turn."""

SendBack = Callable[[MessageExt, MessageQueue, int], Awaitable[None]]
"""(message, its queue, delay level): have the broker deliver it later."""


@attrs.frozen(eq=False)
class _Work:
    messages: Sequence[MessageExt]
    process_queue: ProcessQueue
    queue: MessageQueue


class ConsumeService:
    """Hands pulled messages to the listener, at most `concurrency` calls at a time."""

    log = Logger()

    def __init__(
        self,
        calls: ListenerCalls[ConsumeContext, ConsumeStatus],
        options: ConsumerOptions,
        offsets: OffsetStore,
        send_back: SendBack,
    ) -> None:
        self.calls = calls
        self._clock = calls.clock
        self._group = calls.group
        self._options = options
        self._offsets = offsets
        self._send_back = send_back
        self._waiting: collections.deque[_Work] = collections.deque()
        self._running: dict[defer.Deferred[None], None] = {}
        self._timers: dict[interfaces.IDelayedCall, None] = {}
        self._turn: interfaces.IDelayedCall | None = None
        self._idle: defer.Deferred[None] | None = None

    def submit(self, messages: Sequence[MessageExt], process_queue: ProcessQueue, queue: MessageQueue) -> None:
        """Have these messages consumed, in calls of at most consume_message_batch_max_size."""
        size = self._options.consume_message_batch_max_size
        for start in range(0, len(messages), size):
            self._waiting.append(_Work(messages[start : start + size], process_queue, queue))
        self._pump()

    async def consume_directly(self, message: MessageExt, queue: MessageQueue) -> ConsumeStatus:
        """What the listener answers to one message, which is settled by nobody; raises what the listener raises."""
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
        """Begin as many calls as may be open; after some of them the reactor has its turn."""
        begun = 0
        while self._waiting and len(self._running) < self._options.concurrency and not self.calls.stopped:
            if begun == CALLS_A_TURN:
                if self._turn is None:
                    self._turn = self._clock.callLater(0, self._next_turn)
                return
            begun += 1
            running = defer.Deferred.fromCoroutine(self._consume(self._waiting.popleft()))
            running.addErrback(self._report)
            if not running.called:
                self._running[running] = None
                running.addCallback(self._ended, running)

    def _next_turn(self) -> None:
        self._turn = None
        self._pump()

    def _ended(self, _: None, running: defer.Deferred[None]) -> None:
        self._running.pop(running, None)
        if self._idle is not None and not self._running and not self._idle.called:
            self._idle.callback(None)
        self._pump()

    def _report(self, reason: failure.Failure) -> None:
        if not reason.check(defer.CancelledError):
            self.log.failure("consume result not settled: group={group}", reason, group=self._group)

    # one call

    async def _consume(self, work: _Work) -> None:
        if work.process_queue.dropped:
            return
        messages = self.calls.delivered(work.messages)
        context = ConsumeContext(work.queue)
        status = await self.calls.status(messages, context)
        if work.process_queue.dropped:
            self.log.info(
                "result of a dropped queue ignored: group={group} topic={topic} queue={queue}",
                group=self._group, topic=work.queue.topic, queue=work.queue.queue_id,
            )  # fmt: skip
            return
        await self._settle(status, context, work, messages)

    async def _settle(
        self, status: ConsumeStatus, context: ConsumeContext, work: _Work, messages: list[MessageExt]
    ) -> None:
        consumed = 0
        if status is ConsumeStatus.CONSUME_SUCCESS:
            consumed = len(messages) if context.ack_index is None else min(context.ack_index + 1, len(messages))
        stuck = await self._give_back(messages[consumed:], context, work)
        gone = [message for message in messages if message.queue_offset not in {one.queue_offset for one in stuck}]
        offset = work.process_queue.remove(gone)
        if offset >= 0 and not work.process_queue.dropped:
            self._offsets.update(work.queue, offset, increase_only=True)
        if stuck:
            self._try_here_again(stuck, work)

    async def _give_back(self, failed: Iterable[MessageExt], context: ConsumeContext, work: _Work) -> list[MessageExt]:
        """Send failed messages back; return those that could not go, with one try more counted."""
        stuck = []
        for message in failed:
            if self._options.message_model is MessageModel.BROADCASTING:
                self.log.warn("broadcast message not consumed, dropped: messages={ids}", ids=message_ids([message]))
            elif work.process_queue.holds(message):
                try:
                    await self._send_back(message, work.queue, context.delay_level_when_next_consume)
                except EXPECTED_ERRORS as error:
                    self.log.warn(
                        "message not sent back, tried here again: group={group} messages={ids} {error}",
                        group=self._group, ids=message_ids([message]), error=error,
                    )  # fmt: skip
                    stuck.append(attrs.evolve(message, reconsume_times=message.reconsume_times + 1))
        return stuck

    def _try_here_again(self, messages: list[MessageExt], work: _Work) -> None:
        if self.calls.stopped:
            return

        def again() -> None:
            self._timers.pop(timer, None)
            self.submit(messages, work.process_queue, work.queue)

        timer = self._clock.callLater(RETRY_HERE_SECONDS, again)
        self._timers[timer] = None
