"""The popping of one queue by one consumer, from the queue's assignment until it is given up (Apache: PopRequest)."""

from __future__ import annotations

from collections.abc import Iterable

from twisted.internet import defer

from twisted_mq.client.consuming.consumer_options import ConsumeFromWhere
from twisted_mq.client.consuming.pop_answers import PopAnswers
from twisted_mq.client.consuming.pop_service import PopConsumeService
from twisted_mq.client.consuming.process_queue import PopProcessQueue
from twisted_mq.client.consuming.queue_loop import (
    AFTER_ERROR_SECONDS,
    AFTER_LOST_SECONDS,
    BROKER_FLOW_CONTROL_SECONDS,
    FLOW_CONTROL_SECONDS,
    PAUSED_SECONDS,
    QueueLoop,
)
from twisted_mq.client.consuming.queue_pull import QueueOwner
from twisted_mq.client.core.errors import EXPECTED_ERRORS, UNREACHED, level_of
from twisted_mq.client.core.pace import held_back_seconds, messages_to_ask
from twisted_mq.client.core.pop_result import PopResult, PopStatus
from twisted_mq.protocol.bodies import MessageQueue, SubscriptionData
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.headers import PopMessageRequestHeader
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.protocol.messages.subscription import selects

POLL_SECONDS = 15
"""Seconds for which a broker holds a pop that finds nothing (BROKER_SUSPEND_MAX_TIME_MILLIS)."""
TIMEOUT_SECONDS = 25.0
"""The longest time that a pop may take."""
FROM_MIN, FROM_MAX = 0, 1
"""ConsumeInitMode: the start position of a group that the broker does not know."""


class QueuePop(QueueLoop):
    """Pops until it is stopped. Popped messages without an answer stay below `pop_threshold`, except for one pop."""

    pops = True

    def __init__(self, owner: QueueOwner, service: PopConsumeService, answers: PopAnswers, queue: MessageQueue) -> None:
        clock = owner.client.reactor
        super().__init__(clock, queue, PopProcessQueue(last_pull_seconds=clock.seconds()))
        self._owner = owner
        self._service = service
        self._answers = answers

    async def _step(self) -> float:
        self.process_queue.last_pull_seconds = self._clock.seconds()
        if self._owner.is_paused(self.queue):
            return PAUSED_SECONDS
        if (wait := held_back_seconds(self._owner.pace, self.process_queue.last_pull_seconds)) > 0:
            return wait
        if self.process_queue.count > self._owner.options.pop_threshold:
            return FLOW_CONTROL_SECONDS
        subscription = self._owner.subscriptions.get(self.queue.topic)
        if subscription is None:
            return AFTER_ERROR_SECONDS
        try:
            result = await self._pop(subscription)
        except EXPECTED_ERRORS as error:
            return self._after(error)
        if result.status is PopStatus.POLLING_FULL:
            return AFTER_ERROR_SECONDS
        if self._owner.pace is not None:
            self._owner.pace.spend(len(result.messages), self._clock.seconds())
        self._take(result.messages, subscription)
        return 0.0

    def _take(self, messages: Iterable[MessageExt], subscription: SubscriptionData) -> None:
        """Have messages consumed, except those whose tags do not match (the broker compares only hashes)."""
        wanted = []
        for message in messages:
            if selects(subscription, message.tags):
                wanted.append(message)
            else:
                defer.Deferred.fromCoroutine(self._answers.consumed(message))
        if wanted:
            self.process_queue.put(wanted)
            self._service.submit(wanted, self.process_queue, self.queue)

    def _after(self, error: Exception) -> float:
        if isinstance(error, BrokerError) and error.response_code == ResponseCode.FLOW_CONTROL:
            return BROKER_FLOW_CONTROL_SECONDS
        self.log.emit(
            level_of(error), "pop failed: group={group} queue={queue} {error}",
            group=self._owner.group, queue=self.queue, error=error,
        )  # fmt: skip
        return AFTER_LOST_SECONDS if isinstance(error, UNREACHED) else AFTER_ERROR_SECONDS

    async def _pop(self, subscription: SubscriptionData) -> PopResult:
        owner, queue = self._owner, self.queue
        client, options = owner.client, owner.options
        address = await client.routes.master_of(queue)
        first = options.consume_from_where is ConsumeFromWhere.FIRST_OFFSET
        header = PopMessageRequestHeader(
            consumer_group=owner.group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            max_msg_nums=messages_to_ask(owner.pace, options.pop_batch_size),
            invisible_time=int(options.pop_invisible_seconds * 1000),
            poll_time=POLL_SECONDS * 1000,
            born_time=client.wall_ms(),
            init_mode=FROM_MIN if first else FROM_MAX,
            exp_type=subscription.expression_type,
            exp=subscription.sub_string,
            bname=queue.broker_name,
        )
        began = self._clock.seconds()
        result = await client.calls.pop(address, header, TIMEOUT_SECONDS)
        if result.messages:
            owner.rates.found(queue.topic, len(result.messages), self._clock.seconds() - began)
        return result
