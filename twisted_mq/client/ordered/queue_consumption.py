"""Consumes one ordered queue from one broker group for one term: pulls, calls the listener in order, commits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

import attrs
from twisted.internet import defer, interfaces, task
from twisted.python import failure

from twisted_mq.client.consuming.call_pump import CALLS_A_TURN
from twisted_mq.client.consuming.consumer_options import ConsumeOrderlyContext, ConsumeOrderlyStatus
from twisted_mq.client.consuming.listener_calls import ListenerCalls
from twisted_mq.client.core.errors import EXPECTED_ERRORS
from twisted_mq.client.core.mq_client import MQClient
from twisted_mq.client.core.pull_result import PullResult, PullStatus
from twisted_mq.client.ordered.messages_deleted import MessagesDeleted
from twisted_mq.client.ordered.ordered_options import OrderedConsumerOptions
from twisted_mq.logs import Logger
from twisted_mq.ordering.lists import Term
from twisted_mq.protocol.bodies import MessageQueue, SubscriptionData
from twisted_mq.protocol.flags import build_pull_sys_flag
from twisted_mq.protocol.headers import PullMessageRequestHeader
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.protocol.messages.order_mark import ORDER_TERM, OrderMark
from twisted_mq.protocol.messages.subscription import selects
from twisted_mq.protocol.text.properties import PROPERTY_ORDERED
from twisted_mq.remoting.errors import RemotingError

COMMIT_SECONDS = 0.1
"""The delay of a commit while messages still wait; without waiting messages, it is immediate."""
NOT_SURE_SECONDS = 0.1
"""The interval of checks whether this consumer surely leads again."""
FIRST_PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 1.0
"""The longest pause after a failed pull; the pause doubles with each failure."""

Result = TypeVar("Result")


class ConsumedUnit(Protocol):
    """The interface of a unit that the consumption of a queue uses."""

    group: str
    client: MQClient
    options: OrderedConsumerOptions
    calls: ListenerCalls[ConsumeOrderlyContext, ConsumeOrderlyStatus]
    subscription: SubscriptionData
    deleted: Callable[[MessagesDeleted], object]
    """Called if messages were deleted before this group consumed them."""

    @property
    def leads(self) -> bool:
        """True if this consumer surely is the unit's active one."""

    @property
    def patience_seconds(self) -> float:
        """The time that a broker may hold a pull, and that an answer may take after that."""

    def unreached(self, address: str) -> None:
        """Note that the broker does not answer."""

    async def address(self) -> str:
        """Return the address of the broker that serves consumers now. Raises NoRoute, RemotingError or BrokerError."""


class QueueConsumption:
    """Consumes from `start` until `stop`."""

    log = Logger()

    def __init__(self, unit: ConsumedUnit, queue: MessageQueue, term: Term) -> None:
        self.queue = queue
        self._unit = unit
        self._term = term
        self._clock: interfaces.IReactorTime = unit.client.reactor
        self._offset: int | None = None
        self._address = self._asked = ""
        self._stops = self._waits = False
        self._calls = 0
        self._pause = FIRST_PAUSE_SECONDS
        self._waiting: defer.Deferred[object] | None = None
        self._commit_call: interfaces.IDelayedCall | None = None
        self._running: defer.Deferred[None] = defer.succeed(None)

    @property
    def offset(self) -> int | None:
        """The offset below which all messages are consumed; None before the start position is known."""
        return self._offset

    def start(self) -> None:
        """Begin at the group's committed offset."""
        self._running = defer.Deferred.fromCoroutine(self._run()).addErrback(self._failed)

    def stop(self) -> defer.Deferred[None]:
        """Hand out nothing more. Fires when the listener's open call has ended; messages that it consumed are committed."""
        self._stops = True
        self.look_again()
        ended: defer.Deferred[None] = defer.Deferred()
        self._running.addBoth(lambda _: ended.callback(None))
        return ended

    def abandon(self) -> None:
        """Cancel the listener's open call."""
        self._running.cancel()

    def look_again(self) -> None:
        """End the pull or pause that is under way, as another broker may serve."""
        if self._waiting is not None:
            self._waiting.cancel()

    def commit(self) -> None:
        """Commit the offset below which all is consumed to the serving broker."""
        if self._commit_call is not None:
            self._commit_call.cancel()
            self._commit_call = None
        if self._offset is not None and self._address and self._unit.leads:
            calls = self._unit.client.calls
            term = {ORDER_TERM: str(self._term.epoch)}
            committing = calls.update_consumer_offset(self._address, self._unit.group, self.queue, self._offset, term)
            defer.Deferred.fromCoroutine(committing).addErrback(self._not_committed)

    # the loop

    async def _run(self) -> None:
        while not self._stops:
            if not self._unit.leads:
                self._note_wait(waits=True)
                await self._rest(NOT_SURE_SECONDS)
                continue
            self._note_wait(waits=False)
            try:
                result = await self._interruptible(defer.Deferred.fromCoroutine(self._pull()))
            except EXPECTED_ERRORS as error:
                await self._after(error)
                continue
            if result is not None:
                self._pause = FIRST_PAUSE_SECONDS
                await self._take(result)
        if self._commit_call is not None:
            self.commit()

    async def _interruptible(self, waiting: defer.Deferred[Result]) -> Result | None:
        """Return the result; None if `look_again` interrupted it."""
        self._waiting = waiting  # type: ignore[assignment]  # only cancelled here
        try:
            return await waiting
        except defer.CancelledError:
            return None
        finally:
            self._waiting = None

    def _note_wait(self, *, waits: bool) -> None:
        """Log that this consumer waits for the coordinator, and that it continues, once each."""
        if waits != self._waits:
            self._waits = waits
            what = "waits: its session with the coordinator is not confirmed" if waits else "goes on"
            place = self.queue.topic, self.queue.queue_id
            self.log.info("consumption {what}: topic={t} queue={q}", what=what, t=place[0], q=place[1])

    async def _rest(self, seconds: float) -> None:
        await self._interruptible(task.deferLater(self._clock, seconds))

    async def _after(self, error: Exception) -> None:
        if isinstance(error, RemotingError) and self._asked:
            self._unit.unreached(self._asked)
        self.log.info(
            "pull failed, retrying soon: topic={topic} queue={queue} group={group} {error}",
            topic=self.queue.topic, queue=self.queue.queue_id, group=self._term.group, error=error,
        )  # fmt: skip
        await self._rest(self._pause)
        self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS)

    async def _pull(self) -> PullResult:
        calls, unit = self._unit.client.calls, self._unit
        self._asked = ""
        address = self._asked = await unit.address()
        if self._offset is None:
            self._offset = await calls.consumer_offset(address, unit.group, self.queue) or 0
        elif address != self._address:
            self._address = address
            self.commit()
        self._address = address
        result = await calls.pull(address, self._header(self._offset), 2 * unit.patience_seconds, lite=True)
        if result.status is PullStatus.OFFSET_ILLEGAL and result.next_begin_offset >= result.min_offset > self._offset:
            await self._tell_deleted(address, self._offset, result.min_offset)
        return result

    async def _tell_deleted(self, address: str, first: int, following: int) -> None:
        """Report that messages before `following` are gone. A group without an offset may begin there: it loses nothing."""
        queue, term, group = self.queue, self._term, self._unit.group
        begin = first if first else await self._unit.client.calls.consumer_offset(address, group, queue)
        if begin is not None and begin < following:
            self._unit.deleted(
                MessagesDeleted(group, queue.topic, queue.queue_id, term.group, term.epoch, first, following)
            )

    def _header(self, offset: int) -> PullMessageRequestHeader:
        unit = self._unit
        return PullMessageRequestHeader(
            consumer_group=unit.group,
            topic=self.queue.topic,
            queue_id=self.queue.queue_id,
            queue_offset=offset,
            max_msg_nums=unit.options.pull_batch_size,
            sys_flag=build_pull_sys_flag(commit_offset=False, suspend=True, subscription=True, lite_pull=True),
            commit_offset=0,
            suspend_timeout_millis=int(unit.patience_seconds * 1000),
            subscription=unit.subscription.sub_string,
            sub_version=unit.subscription.sub_version,
            expression_type=unit.subscription.expression_type,
            max_msg_bytes=unit.options.pull_batch_size_bytes,
            bname=self.queue.broker_name,
        )

    # pulled messages

    async def _take(self, result: PullResult) -> None:
        for messages in self._portions(result.messages):
            if not await self._consume(messages):
                return
            self._offset = messages[-1].queue_offset + 1
            self._commit_later()
        if self._is_of_later_term(result.messages):
            await self._rest(LONGEST_PAUSE_SECONDS)
            return
        if result.next_begin_offset != self._offset:
            self._tell_of_passed(result)
            self._offset = result.next_begin_offset
            self._commit_later()
        if self._commit_call is not None and self._offset >= result.max_offset:
            self.commit()

    def _tell_of_passed(self, result: PullResult) -> None:
        """Report messages that the broker skips although they existed. Messages without a matching tag are not reported."""
        passed = result.next_begin_offset - (self._offset or 0)
        if result.status is PullStatus.OFFSET_ILLEGAL and passed > 0:
            self.log.warn(
                "messages skipped: topic={topic} queue={queue} group={group} epoch={epoch} firstOffset={first} count={n}",
                topic=self.queue.topic, queue=self.queue.queue_id, group=self._term.group, epoch=self._term.epoch,
                first=self._offset, n=passed,
            )  # fmt: skip

    def _portions(self, messages: Sequence[MessageExt]) -> list[list[MessageExt]]:
        """Return the term's subscribed messages, in portions of one listener call."""
        mine = [
            one
            for one in messages
            if self._epoch(one) == self._term.epoch and selects(self._unit.subscription, one.tags)
        ]
        size = self._unit.options.consume_message_batch_max_size
        return [mine[place : place + size] for place in range(0, len(mine), size)]

    def _is_of_later_term(self, messages: Sequence[MessageExt]) -> bool:
        """Return whether a message must first be consumed from another group: the lists known here are outdated."""
        return any(self._epoch(one) > self._term.epoch for one in messages)

    def _epoch(self, message: MessageExt) -> int:
        """Return the epoch in which the message was accepted; 0 if it has none."""
        try:
            return OrderMark.decode(message.properties.get(PROPERTY_ORDERED, "")).epoch
        except ValueError:
            return 0

    async def _consume(self, messages: list[MessageExt]) -> bool:
        """Call the listener until it has consumed these. Return False if this consumer must not continue."""
        tries = 0
        while True:
            while not self._stops and not self._unit.leads:
                await self._rest(NOT_SURE_SECONDS)
            if self._stops:
                return False
            context = ConsumeOrderlyContext(self.queue)
            again = [attrs.evolve(one, reconsume_times=tries) for one in messages] if tries else messages
            calls = self._unit.calls
            status = await calls.status(calls.delivered(again), context)
            if status is ConsumeOrderlyStatus.SUCCESS:
                await self._give_way()
                return True
            tries += 1
            seconds = context.suspend_current_queue_seconds
            await self._rest(self._unit.options.suspend_queue_seconds if seconds is None else seconds)

    async def _give_way(self) -> None:
        """Give the reactor a turn after some calls."""
        self._calls = (self._calls + 1) % CALLS_A_TURN
        if not self._calls:
            await task.deferLater(self._clock, 0)

    def _commit_later(self) -> None:
        if self._commit_call is None:
            self._commit_call = self._clock.callLater(COMMIT_SECONDS, self._commit_due)

    def _commit_due(self) -> None:
        self._commit_call = None
        self.commit()

    def _not_committed(self, reason: failure.Failure) -> None:
        reason.trap(*EXPECTED_ERRORS)
        self.log.info(
            "offset not committed, retrying soon: topic={topic} queue={queue} group={group} {error}",
            topic=self.queue.topic, queue=self.queue.queue_id, group=self._unit.group, error=reason.value,
        )  # fmt: skip

    def _failed(self, reason: failure.Failure) -> None:
        if not reason.check(defer.CancelledError):
            self.log.failure("ordered queue no longer consumed: queue={queue}", reason, queue=self.queue)
