"""Calls the listener and settles its answers (Apache: ConsumeMessageConcurrentlyService).

A message that was not consumed goes back to the broker, which delivers it later. If it cannot go back, the listener gets
it again after 5 s. Results of a dropped queue change nothing.
"""

from __future__ import annotations

import contextvars
from collections.abc import Awaitable, Callable, Iterable

import attrs
from twisted.internet import defer

from twisted_mq.client.consuming.call_pump import CallPump, Work, consumed_count
from twisted_mq.client.consuming.consumer_options import (
    ConsumeContext,
    ConsumerOptions,
    ConsumeStatus,
    MessageModel,
)
from twisted_mq.client.consuming.listener_calls import ListenerCalls, message_ids
from twisted_mq.client.consuming.offset_store import OffsetStore
from twisted_mq.client.core.errors import EXPECTED_ERRORS
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.messages.message import MessageExt

RETRY_HERE_SECONDS = 5.0
"""The pause before messages that could not go back are tried again."""

SendBack = Callable[[MessageExt, MessageQueue, int], Awaitable[None]]
"""(message, its queue, delay level): have the broker deliver it later."""


class ConsumeService(CallPump):
    """Hands pulled messages to the listener, at most `concurrency` calls at a time."""

    def __init__(
        self,
        calls: ListenerCalls[ConsumeContext, ConsumeStatus],
        options: ConsumerOptions,
        offsets: OffsetStore,
        send_back: SendBack,
    ) -> None:
        super().__init__(calls, options)
        self._offsets = offsets
        self._send_back = send_back

    def _consume(self, work: Work) -> defer.Deferred[None] | None:
        if work.process_queue.dropped:
            return None
        messages = self.calls.delivered(work.messages)
        context = ConsumeContext(work.queue)
        status = contextvars.copy_context().run(self.calls.answer, messages, context)
        if isinstance(status, ConsumeStatus):
            return self._answered(status, context, work, messages)
        return status.addCallback(self._answered, context, work, messages)

    def _answered(
        self, status: ConsumeStatus, context: ConsumeContext, work: Work, messages: list[MessageExt]
    ) -> defer.Deferred[None] | None:
        if work.process_queue.dropped:
            self.log.info(
                "result of a dropped queue ignored: group={group} topic={topic} queue={queue}",
                group=self._group, topic=work.queue.topic, queue=work.queue.queue_id,
            )  # fmt: skip
        elif status is ConsumeStatus.CONSUME_SUCCESS and context.ack_index is None:
            self._consumed(messages, work)
        else:
            return defer.Deferred.fromCoroutine(self._settle(status, context, work, messages))
        return None

    async def _settle(
        self, status: ConsumeStatus, context: ConsumeContext, work: Work, messages: list[MessageExt]
    ) -> None:
        consumed = consumed_count(status, context, len(messages))
        stuck = await self._give_back(messages[consumed:], context, work)
        kept = {one.queue_offset for one in stuck}
        self._consumed([message for message in messages if message.queue_offset not in kept], work)
        if stuck:
            self._try_here_again(stuck, work)

    def _consumed(self, messages: list[MessageExt], work: Work) -> None:
        offset = work.process_queue.remove(messages)
        if offset >= 0 and not work.process_queue.dropped:
            self._offsets.update(work.queue, offset, increase_only=True)

    async def _give_back(self, failed: Iterable[MessageExt], context: ConsumeContext, work: Work) -> list[MessageExt]:
        """Send failed messages back. Return those that could not be sent, with one more try counted."""
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

    def _try_here_again(self, messages: list[MessageExt], work: Work) -> None:
        if self.calls.stopped:
            return

        def again() -> None:
            self._timers.pop(timer, None)
            self.submit(messages, work.process_queue, work.queue)

        timer = self._clock.callLater(RETRY_HERE_SECONDS, again)
        self._timers[timer] = None
