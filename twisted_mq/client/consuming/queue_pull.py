"""Pulls one queue: a loop of long polls, paused while too much waits to be consumed (Apache: PullMessageService)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from twisted_mq.client.consuming.consumer_options import ConsumerOptions, MessageModel
from twisted_mq.client.consuming.offset_store import OffsetStore
from twisted_mq.client.consuming.process_queue import FlowLimits, ProcessQueue
from twisted_mq.client.consuming.queue_loop import (
    AFTER_ERROR_SECONDS,
    AFTER_LOST_SECONDS,
    BROKER_FLOW_CONTROL_SECONDS,
    FLOW_CONTROL_SECONDS,
    PAUSED_SECONDS,
    QueueLoop,
)
from twisted_mq.client.core.consume_rates import ConsumeRates
from twisted_mq.client.core.errors import EXPECTED_ERRORS, UNREACHED, BrokerGone, level_of
from twisted_mq.client.core.mq_client import MQClient
from twisted_mq.client.core.pace import Pace, held_back_seconds, messages_to_ask
from twisted_mq.client.core.pull_result import PullResult, PullStatus
from twisted_mq.protocol.bodies import MessageQueue, SubscriptionData
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError, RecordError
from twisted_mq.protocol.flags import build_pull_sys_flag
from twisted_mq.protocol.headers import PullMessageRequestHeader
from twisted_mq.protocol.messages.message import MessageExt, note
from twisted_mq.protocol.messages.subscription import selects, selects_all
from twisted_mq.protocol.names.routes import MASTER_ID
from twisted_mq.protocol.names.system_topics import RETRY_PREFIX
from twisted_mq.protocol.names.topic_route import pull_address
from twisted_mq.protocol.text.properties import PROPERTY_MAX_OFFSET, PROPERTY_MIN_OFFSET

SUSPEND_SECONDS = 15
"""Seconds for which a broker holds a pull that finds nothing (BROKER_SUSPEND_MAX_TIME_MILLIS)."""
TIMEOUT_SECONDS = 30.0
"""The longest time that a pull may take (CONSUMER_TIMEOUT_MILLIS_WHEN_SUSPEND)."""
SENT_AWAY_SECONDS = 1.0
"""The pause after a slave redirects its reader to a master that no name server knows.

5.3.3 asks the slave again at once, repeatedly.
"""


class Consumes(Protocol):
    """The consumer of pulled messages."""

    def submit(self, messages: Sequence[MessageExt], process_queue: ProcessQueue, queue: MessageQueue) -> None:
        """Consume messages that were put into the process queue."""

    async def stop(self, finish_seconds: float) -> None:
        """Begin no further call of a listener; let open ones finish for that long."""


class QueueOwner(Protocol):
    """The interface of a consumer that loops of its queues use."""

    group: str
    client: MQClient
    options: ConsumerOptions
    subscriptions: dict[str, SubscriptionData]
    rates: ConsumeRates
    pace: Pace | None
    """The limit of messages a second; None for no limit."""

    def is_paused(self, queue: MessageQueue) -> bool:
        """Return whether the queue is not to be asked for now."""


class PullOwner(QueueOwner, Protocol):
    """The interface of a consumer that its pulls use."""

    offsets: OffsetStore
    consume_service: Consumes
    orderly: bool
    lite: bool

    def flow_limits(self, topic: str) -> FlowLimits:
        """Return how far pulling a queue of the topic may run ahead."""

    def skipped(self, queue: MessageQueue, next_offset: int) -> None:
        """Handle a pull's notice: the queue holds no message, and none before that offset was selected."""

    def offset_illegal(self, queue: MessageQueue, next_offset: int) -> None:
        """Handle a pull's notice: the broker has no message at the pulled offset and names another one."""


class QueuePull(QueueLoop):
    """The pulling of one queue by one consumer, from the queue's assignment until `stop`."""

    def __init__(self, owner: PullOwner, queue: MessageQueue, next_offset: int) -> None:
        clock = owner.client.reactor
        super().__init__(clock, queue, ProcessQueue(last_pull_seconds=clock.seconds()))
        self.next_offset = next_offset
        self._owner = owner
        self._broker_id = MASTER_ID
        self._held_back = 0
        self._singly = False
        """Pull one message at a time: something in the last answer could not be read."""
        self._end: int | None = None

    @property
    def lag(self) -> int | None:
        """Messages of the queue that are not consumed, as of the last answer; None before the first."""
        return None if self._end is None else max(0, self._end - self.next_offset) + self.process_queue.count

    async def _step(self) -> float:
        """Pull once, or not. Return the seconds to wait before the next step."""
        self.process_queue.last_pull_seconds = self._clock.seconds()
        if self._owner.is_paused(self.queue):
            return PAUSED_SECONDS
        if (wait := held_back_seconds(self._owner.pace, self.process_queue.last_pull_seconds)) > 0:
            return wait
        exceeded = self._owner.flow_limits(self.queue.topic).exceeded(
            self.process_queue, spread=not self._owner.orderly
        )
        if exceeded is not None:
            self._note_held_back(exceeded)
            return FLOW_CONTROL_SECONDS
        subscription = self._owner.subscriptions.get(self.queue.topic)
        if subscription is None:
            return AFTER_ERROR_SECONDS
        try:
            result = await self._pull(subscription)
            if result.status is PullStatus.NO_MATCHED_MSG and result.next_begin_offset == self.next_offset:
                return await self._go_elsewhere(result.suggested_broker_id)
        except RecordError as error:
            return self._unreadable(error)
        except EXPECTED_ERRORS as error:
            return self._after(error)
        self._singly = False
        return self._take(result, subscription)

    async def _go_elsewhere(self, broker_id: int) -> float:
        """Follow a slave that redirects its reader to the master; ask for the route again if it lacks the master."""
        self._broker_id = broker_id
        routes = self._owner.client.routes
        broker = routes.broker_of(self.queue)
        if broker is not None and broker_id in broker.broker_addrs:
            return 0.0
        await routes.update(self.queue.topic)
        return SENT_AWAY_SECONDS

    def _note_held_back(self, exceeded: str) -> None:
        if self._held_back % 1000 == 0:
            self.log.warn(
                "pulling held back: group={group} topic={topic} queue={queue} {exceeded}",
                group=self._owner.group, topic=self.queue.topic, queue=self.queue.queue_id, exceeded=exceeded,
            )  # fmt: skip
        self._held_back += 1

    def _unreadable(self, error: RecordError) -> float:
        """Find a damaged record by pulling single messages, and skip it, so that messages after it do not wait."""
        singly, self._singly = self._singly, not self._singly
        self.log.error(
            "{what}: group={group} topic={topic} queue={queue} offset={offset} {error}",
            what="message skipped, it cannot be read" if singly else "answer to a pull cannot be read, pulled singly",
            group=self._owner.group, topic=self.queue.topic, queue=self.queue.queue_id, offset=self.next_offset,
            error=error,
        )  # fmt: skip
        if not singly:
            return FLOW_CONTROL_SECONDS
        self.next_offset += 1
        self._pass_over()
        return 0.0

    def _after(self, error: Exception) -> float:
        code = error.response_code if isinstance(error, BrokerError) else None
        if code == ResponseCode.FLOW_CONTROL:
            return BROKER_FLOW_CONTROL_SECONDS
        if not self.queue.topic.startswith(RETRY_PREFIX):
            self.log.emit(
                level_of(error),
                "pull failed: group={group} topic={topic} queue={queue} {error}",
                group=self._owner.group, topic=self.queue.topic, queue=self.queue.queue_id, error=error,
            )  # fmt: skip
        return AFTER_LOST_SECONDS if isinstance(error, UNREACHED) else AFTER_ERROR_SECONDS

    async def _pull(self, subscription: SubscriptionData) -> PullResult:
        client = self._owner.client
        broker = client.routes.broker_of(self.queue)
        if broker is None:
            await client.routes.update(self.queue.topic)
            broker = client.routes.broker_of(self.queue)
        found = None if broker is None else pull_address(broker, self._broker_id)
        if found is None:
            raise BrokerGone(self.queue.broker_name, client.name_servers.addresses)
        address, broker_id = found
        header = self._header(subscription, from_master=broker_id == MASTER_ID)
        began = self._clock.seconds()
        result = await client.calls.pull(address, header, TIMEOUT_SECONDS, lite=self._owner.lite)
        if result.status is PullStatus.FOUND:
            self._owner.rates.found(self.queue.topic, len(result.messages), self._clock.seconds() - began)
        return result if result.offset_delta is None else result.of_logical(self.queue.queue_id)

    def _header(self, subscription: SubscriptionData, *, from_master: bool) -> PullMessageRequestHeader:
        owner = self._owner
        commit_offset = 0
        if owner.options.message_model is MessageModel.CLUSTERING:
            commit_offset = owner.offsets.to_commit(self.queue) or 0
        return PullMessageRequestHeader(
            consumer_group=owner.group,
            topic=self.queue.topic,
            queue_id=self.queue.queue_id,
            queue_offset=self.next_offset,
            max_msg_nums=1 if self._singly else messages_to_ask(owner.pace, owner.options.pull_batch_size),
            sys_flag=build_pull_sys_flag(
                commit_offset=commit_offset > 0 and from_master,
                suspend=True,
                subscription=owner.lite,
                lite_pull=owner.lite,
            ),
            commit_offset=commit_offset,
            suspend_timeout_millis=SUSPEND_SECONDS * 1000,
            subscription=subscription.sub_string if owner.lite else None,
            sub_version=subscription.sub_version,
            expression_type=subscription.expression_type,
            max_msg_bytes=owner.options.pull_batch_size_bytes,
            bname=self.queue.broker_name,
        )

    def _take(self, result: PullResult, subscription: SubscriptionData) -> float:
        """Take an answer. If the broker goes back, e.g. because it lost its log's end, pull waiting messages again.

        Apache's client skips them.
        """
        asked, self.next_offset = self.next_offset, result.next_begin_offset
        self._broker_id = result.suggested_broker_id
        self._end = result.max_offset
        if result.status is PullStatus.OFFSET_ILLEGAL:
            if self.next_offset < asked and self.process_queue.count:
                self.next_offset = min(self.next_offset, self.process_queue.min_offset)
            self.log.warn(
                "offset illegal, corrected: topic={topic} queue={queue} offset={offset}",
                topic=self.queue.topic, queue=self.queue.queue_id, offset=self.next_offset,
            )  # fmt: skip
            self.process_queue.dropped = True  # ends the loop, so that nothing needs to be cancelled
            self._running = None
            self._owner.offset_illegal(self.queue, self.next_offset)
        elif result.status is PullStatus.FOUND:
            if self._owner.pace is not None:
                self._owner.pace.spend(len(result.messages), self._clock.seconds())
            self._consume(_selected(result, subscription))
        else:
            self._pass_over()
        return 0.0

    def _pass_over(self) -> None:
        """Count messages that were not selected as consumed, if nothing is in flight."""
        if self.process_queue.count == 0:
            self._owner.skipped(self.queue, self.next_offset)

    def _consume(self, messages: list[MessageExt]) -> None:
        if not messages:
            self._pass_over()
            return
        self.process_queue.put(messages)
        self._owner.consume_service.submit(messages, self.process_queue, self.queue)


def _selected(result: PullResult, subscription: SubscriptionData) -> list[MessageExt]:
    """Return the messages whose tags match (the broker compares only hashes), with the queue's bounds noted."""
    messages = [*result.messages]
    if not selects_all(subscription):
        messages = [one for one in messages if selects(subscription, one.tags)]
    bounds = {PROPERTY_MIN_OFFSET: str(result.min_offset), PROPERTY_MAX_OFFSET: str(result.max_offset)}
    note(messages, bounds)
    return messages
