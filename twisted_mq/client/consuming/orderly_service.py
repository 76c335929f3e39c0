"""Calls the listener queue by queue, in each queue's order (Apache: ConsumeMessageOrderlyService).

The next messages of a queue wait until those before them are consumed. A refused call is repeated after a moment, and
blocks its queue meanwhile. A queue is consumed only while this client holds its lock (except when broadcasting).
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from twisted.internet import defer, task
from twisted.python import failure

from twisted_mq.client.consuming.call_pump import CALLS_A_TURN
from twisted_mq.client.consuming.consume_service import SendBack
from twisted_mq.client.consuming.consumer_options import (
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
    ConsumerOptions,
)
from twisted_mq.client.consuming.listener_calls import ListenerCalls, message_ids
from twisted_mq.client.consuming.offset_store import OffsetStore
from twisted_mq.client.consuming.process_queue import ProcessQueue
from twisted_mq.client.consuming.queue_locks import QueueLocks
from twisted_mq.client.core.errors import EXPECTED_ERRORS
from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.messages.message import MessageExt

RELOCK_SECONDS = 0.1
"""The pause of a queue whose lock was not obtained (Apache: tryLockLaterAndReconsume)."""

DEAD_LETTER = -1
"""Delay level of a message that goes back as a dead letter."""


class OrderlyConsumeService:
    """At most `concurrency` listener calls at a time, one for each queue. Without `locks`, no queue needs a lock."""

    log = Logger()

    def __init__(
        self,
        calls: ListenerCalls[ConsumeOrderlyContext, ConsumeOrderlyStatus],
        options: ConsumerOptions,
        offsets: OffsetStore,
        send_back: SendBack,
        locks: QueueLocks | None,
    ) -> None:
        self.calls = calls
        self._clock = calls.clock
        self._group = calls.group
        self._options = options
        self._offsets = offsets
        self._send_back = send_back
        self._locks = locks
        self._slots = defer.DeferredSemaphore(options.concurrency)
        self._queues: dict[ProcessQueue, defer.Deferred[None]] = {}
        self._calling: dict[ProcessQueue, list[defer.Deferred[None]]] = {}

    def submit(self, messages: Sequence[MessageExt], process_queue: ProcessQueue, queue: MessageQueue) -> None:
        """Consume messages that were put into the process queue, after those that are there already."""
        if process_queue in self._queues or self.calls.stopped:
            return
        running = defer.Deferred.fromCoroutine(self._consume(process_queue, queue))
        if not running.called:
            self._queues[process_queue] = running
        running.addBoth(self._ended, process_queue, queue)

    async def consume_directly(self, message: MessageExt, queue: MessageQueue) -> ConsumeOrderlyStatus:
        """Return the listener's answer to one message, without settling the message. Raises what the listener raises."""
        return await self.calls.call([message], ConsumeOrderlyContext(queue))

    def finished(self, process_queue: ProcessQueue) -> defer.Deferred[None]:
        """Fires when no listener call with messages of this queue is open, and its result is recorded."""
        waiting: defer.Deferred[None] = defer.Deferred()
        if process_queue in self._calling:
            self._calling[process_queue].append(waiting)
        else:
            waiting.callback(None)
        return waiting

    async def stop(self, finish_seconds: float) -> None:
        """Begin no further call; let the open ones finish for that long, then cancel them."""
        self.calls.stopped = True
        for process_queue, running in list(self._queues.items()):
            if process_queue not in self._calling:
                running.cancel()
        finished = defer.DeferredList([self.finished(one) for one in list(self._calling)], consumeErrors=True)
        if not finished.called:
            await finished.addTimeout(finish_seconds, self._clock, onTimeoutCancel=lambda *_: None)
        for process_queue in list(self._calling):
            self._queues[process_queue].cancel()
        await self.calls.close(finish_seconds)

    def _ended(self, result: failure.Failure | None, process_queue: ProcessQueue, queue: MessageQueue) -> None:
        self._queues.pop(process_queue, None)
        if isinstance(result, failure.Failure) and not result.check(defer.CancelledError):
            self.log.failure("queue no longer consumed: group={g} queue={q}", result, g=self._group, q=queue)

    # one queue

    async def _consume(self, process_queue: ProcessQueue, queue: MessageQueue) -> None:
        calls = 0
        while not process_queue.dropped and not self.calls.stopped:
            messages = process_queue.first(self._options.consume_message_batch_max_size)
            if not messages:
                return
            pause = await self._turn(messages, process_queue, queue)
            calls += 1
            if pause or calls % CALLS_A_TURN == 0:
                await task.deferLater(self._clock, pause)

    async def _turn(self, messages: list[MessageExt], process_queue: ProcessQueue, queue: MessageQueue) -> float:
        """Call the listener once. Return the seconds to wait before the next call."""
        if not await self._is_ours(process_queue, queue):
            return RELOCK_SECONDS
        await self._slots.acquire()
        try:
            if process_queue.dropped or self.calls.stopped or not self._is_locked(process_queue):
                return 0.0
            self._calling[process_queue] = []
            return await self._call(messages, process_queue, queue)
        finally:
            self._slots.release()
            for waiting in self._calling.pop(process_queue, []):
                waiting.callback(None)

    def _is_locked(self, process_queue: ProcessQueue) -> bool:
        return self._locks is None or process_queue.is_locked(self._clock.seconds())

    async def _is_ours(self, process_queue: ProcessQueue, queue: MessageQueue) -> bool:
        if self._is_locked(process_queue) or self._locks is None:
            return True
        return await self._locks.lock(queue)

    async def _call(self, held: list[MessageExt], process_queue: ProcessQueue, queue: MessageQueue) -> float:
        context = ConsumeOrderlyContext(queue)
        status = await self.calls.status(self.calls.delivered(held), context)
        if process_queue.dropped:
            self.log.info("result of a dropped queue ignored: group={g} queue={q}", g=self._group, q=queue)
            return 0.0
        if status is ConsumeOrderlyStatus.SUCCESS or not await self._must_repeat(held, process_queue, queue):
            offset = process_queue.remove(held)
            if offset >= 0 and not process_queue.dropped:
                self._offsets.update(queue, offset)
            return 0.0
        seconds = context.suspend_current_queue_seconds
        return min(max(self._options.suspend_queue_seconds if seconds is None else seconds, 0.01), 30.0)

    async def _must_repeat(self, messages: list[MessageExt], process_queue: ProcessQueue, queue: MessageQueue) -> bool:
        """Count a refusal. Return whether to repeat the call. Messages refused too often become dead letters."""
        most = self._options.most_tries(orderly=True)
        repeat = False
        for message in messages:
            gone = message.reconsume_times >= most and await self._bury(message, queue)
            if not gone:
                repeat = True
                if process_queue.holds(message):
                    process_queue.put([attrs.evolve(message, reconsume_times=message.reconsume_times + 1)])
        return repeat

    async def _bury(self, message: MessageExt, queue: MessageQueue) -> bool:
        try:
            await self._send_back(message, queue, DEAD_LETTER)
        except EXPECTED_ERRORS as error:
            self.log.warn("message not sent to the dead letters: group={group} messages={ids} {error}",
                          group=self._group, ids=message_ids([message]), error=error)  # fmt: skip
            return False
        return True
