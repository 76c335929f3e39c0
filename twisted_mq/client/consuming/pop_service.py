"""Calls the listener with popped messages and acknowledges them (Apache: ConsumeMessagePopConcurrentlyService).

A popped message belongs to this consumer only until its invisible time is over: messages that have waited for longer are
left to come again. Consumed messages are acknowledged, whichever member has the queue by then.
"""

from __future__ import annotations

from twisted.internet import defer

from twisted_mq.client.consuming.call_pump import CallPump, Work, consumed_count
from twisted_mq.client.consuming.consumer_options import ConsumeContext, ConsumerOptions, ConsumeStatus
from twisted_mq.client.consuming.listener_calls import ListenerCalls, message_ids
from twisted_mq.client.consuming.pop_answers import PopAnswers, receipt_of
from twisted_mq.client.core import coroutines


class PopConsumeService(CallPump):
    """Hands popped messages to the listener, at most `concurrency` calls at a time."""

    def __init__(
        self, calls: ListenerCalls[ConsumeContext, ConsumeStatus], options: ConsumerOptions, answers: PopAnswers
    ) -> None:
        super().__init__(calls, options)
        self._answers = answers

    def _consume(self, work: Work) -> defer.Deferred[None] | None:
        return coroutines.start(self._popped(work))

    async def _popped(self, work: Work) -> None:
        try:
            if not work.process_queue.dropped and not self._is_over(work):
                await self._call(work)
        finally:
            work.process_queue.remove(work.messages)

    async def _call(self, work: Work) -> None:
        messages = self.calls.delivered(work.messages)
        context = ConsumeContext(work.queue)
        status = await self.calls.status(messages, context)
        if self._is_over(work):
            self.log.warn(
                "popped messages were consumed for longer than they are invisible: group={group} messages={ids}",
                group=self._group, ids=message_ids(messages),
            )  # fmt: skip
        consumed = consumed_count(status, context, len(messages))
        for message in messages[:consumed]:
            await self._answers.consumed(message)
        for message in messages[consumed:]:
            await self._answers.refused(message, work.queue, context.delay_level_when_next_consume)

    def _is_over(self, work: Work) -> bool:
        """Return whether the invisible time is over. It is measured here, as the broker's clock may differ."""
        return (self._clock.seconds() - work.since) * 1000 >= receipt_of(work.messages[0]).invisible_time
