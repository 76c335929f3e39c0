"""Hands out messages one by one on request, each open until it is acknowledged or refused: a listener turned inside out.

    deliveries = Deliveries(clock, "g", CONCURRENTLY, limit=20, timeout_seconds=900)
    consumer.listen(deliveries.listener)
    ...
    delivery = deliveries.take(taker)          # None: wait for deliveries.wait() first
    delivery.acknowledge()

A listener's call stays open until its message is settled. So offsets, retries, dead letters, locks and flow control are
those of a listener that takes its time. Taking is one step without a wait in it: a caller that is cancelled while waiting
has taken nothing.

Taking and settling may be done in any thread. They decide at once which caller has a message and how it ends, and leave
the consequences to the reactor's thread.
"""

from __future__ import annotations

import collections
import enum
import math
import threading
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

import attrs
from twisted.internet import defer, interfaces
from twisted.python.failure import Failure

from twisted_mq.client.consuming.consumer_options import (
    ConsumeContext,
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
    ConsumeStatus,
)
from twisted_mq.client.consuming.listener_calls import message_ids
from twisted_mq.client.core.errors import ClientOptionIllegal, ClientStateError
from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.messages.message import MessageExt

Context = TypeVar("Context", ConsumeContext, ConsumeOrderlyContext)
Status = TypeVar("Status", bound=enum.Enum)
Options = TypeVar("Options", bound=attrs.AttrsInstance)


def one_by_one(options: Options) -> Options:
    """Return the options with one message a call, which stays open for as long as its taker wants."""
    # mypy needs one class, but there are two, in folders that do not import each other
    return attrs.evolve(options, consume_message_batch_max_size=1, consume_timeout_seconds=math.inf)  # type: ignore[misc]


@attrs.frozen
class Answers(Generic[Status]):
    """A listener's answers for a message that is done, and for one that is to come again."""

    done: Status
    again: Status
    cancels: bool = True
    """Cancel the open call of a consumer that stops; if False, answer it with `again`."""


CONCURRENTLY = Answers(ConsumeStatus.CONSUME_SUCCESS, ConsumeStatus.RECONSUME_LATER)
ORDERLY = Answers(ConsumeOrderlyStatus.SUCCESS, ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT)
ORDERED = attrs.evolve(ORDERLY, cancels=False)
"""The answers of an OrderedConsumer, which lets its open calls end and consumes nothing after them."""


class Act(Protocol):
    """Calls a function on the reactor's thread, at once if the caller is on that thread."""

    def __call__(self, function: Callable[..., object], *arguments: object) -> None: ...


def _at_once(function: Callable[..., object], *arguments: object) -> None:
    function(*arguments)


class Owner(Protocol):
    """The owner of deliveries. Its lock is held while the end of a delivery is decided."""

    lock: threading.Lock

    def ended(self, delivery: Delivery[Any]) -> None:
        """Handle a delivery that has ended. Called on the reactor's thread."""


class DeliveryEnded(ClientStateError):
    """Raised when a message can't be settled any more: it was settled already, or taken back."""


class Delivery(Generic[Status]):
    """A message that is open until it is settled. The first settlement counts."""

    __slots__ = ("_answer", "_answers", "_owner", "_status", "context", "due", "ended", "message", "taker")

    def __init__(
        self,
        message: MessageExt,
        context: ConsumeContext | ConsumeOrderlyContext,
        answers: Answers[Status],
        owner: Owner,
    ) -> None:
        self.message = message
        self.context = context
        self.taker: object = None
        self.due = math.inf
        """When it comes again unless it is settled."""
        self.ended: str | None = None
        """The reason for its end, in words; None while it is open."""
        self._answers = answers
        self._owner = owner
        self._status: Status | None = None
        self._answer: defer.Deferred[Status] = defer.Deferred(self._cancelled)

    @property
    def answer(self) -> defer.Deferred[Status]:
        """The Deferred that the listener's call waits for."""
        return self._answer

    def acknowledge(self, act: Act = _at_once) -> None:
        """Mark the message as done. Raises DeliveryEnded."""
        self._settle("it was acknowledged", self._answers.done, act)

    def refuse(self, delay_level: int | None = None, suspend_seconds: float | None = None, act: Act = _at_once) -> None:
        """Have the message redelivered: after the delay of a level or, consumed in order, after a pause of the queue.

        Raises DeliveryEnded, or ClientOptionIllegal for the argument that belongs to the other kind.
        """
        self.check_open()
        context = self.context
        if isinstance(context, ConsumeOrderlyContext):
            if delay_level is not None:
                raise ClientOptionIllegal(
                    "delay_level: an orderly consumer gets a message again at once; use suspend_seconds to delay it"
                )
            context.suspend_current_queue_seconds = suspend_seconds
        else:
            if suspend_seconds is not None:
                raise ClientOptionIllegal(
                    "suspend_seconds: only for orderly consumers; use delay_level to delay the message"
                )
            context.delay_level_when_next_consume = delay_level or 0
        self._settle("it was sent back", self._answers.again, act)

    def expire(self) -> None:
        """End a delivery that was not settled in time: it comes again. Leave a settled one alone."""
        if self._claim("its consume timeout has passed"):
            self._fire(Failure(defer.TimeoutError("neither acknowledged nor sent back in time")))

    def give_up(self) -> None:
        """End a delivery of a consumer that stops: the message stays in the queue, not consumed."""
        if self._answers.cancels:
            self._answer.cancel()
        elif self.ended is None:
            self.refuse(suspend_seconds=0.0)

    def pass_over(self) -> None:
        """End a delivery whose queue went to another consumer, which gets the message: the answer here does not count."""
        if self._claim("its queue moved to another consumer"):
            self._fire(self._answers.again)

    def check_open(self) -> None:
        """Raise DeliveryEnded if it is settled."""
        if self.ended is not None:
            raise DeliveryEnded(
                f"message {message_ids([self.message])} is already settled: {self.ended}"
                + ("" if self.ended.startswith("it was") else "; it will be delivered again")
            )

    def _settle(self, how: str, status: Status, act: Act) -> None:
        if not self._claim(how, status):
            self.check_open()
        act(self._fire, status)

    def _claim(self, how: str, status: Status | None = None) -> bool:
        """End it this way, if it is still open. Return whether it was."""
        with self._owner.lock:
            if self.ended is not None:
                return False
            self.ended, self._status = how, status
            return True

    def _fire(self, result: Status | Failure) -> None:
        """Answer the listener's call."""
        self._owner.ended(self)
        if not self._answer.called:  # else it was cancelled, see below
            self._answer.callback(result)

    def _cancelled(self, answer: defer.Deferred[Status]) -> None:
        if self._claim("the consumer stopped"):
            self._owner.ended(self)
        elif self._status is not None:  # settled in another thread: that settlement counts
            self._fire(self._status)


class Deliveries(Generic[Context, Status]):
    """The deliveries of one consumer. `limit` is how many of its messages may be open at a time, from its options."""

    log = Logger()

    def __init__(
        self,
        clock: interfaces.IReactorTime,
        group: str,
        answers: Answers[Status],
        *,
        limit: float,
        timeout_seconds: float,
        is_ours: Callable[[MessageQueue], bool] = lambda queue: True,
    ) -> None:
        """Create them. The timeout counts from when a message is taken. `is_ours` returns whether a queue is consumed here."""
        self._clock = clock
        self._group = group
        self._answers = answers
        self._limit = limit
        self._timeout_seconds = timeout_seconds
        self._is_ours = is_ours
        self.lock = threading.Lock()
        self._waiting: collections.deque[Delivery[Status]] = collections.deque()
        self._taken: dict[Delivery[Status], None] = {}
        self._takers: collections.deque[defer.Deferred[None]] = collections.deque()
        self._warned = False
        self._timer: interfaces.IDelayedCall | None = None  # for the delivery that is due first
        self._timer_due = 0.0
        self.closed = False

    def listener(self, messages: list[MessageExt], context: Context) -> defer.Deferred[Status]:
        """Answer calls of one message without a timeout. Give this to `listen` or `listen_orderly` of a consumer."""
        (message,) = messages
        delivery = Delivery(message, context, self._answers, self)
        if self.closed:
            delivery.give_up()
            return delivery.answer
        self._waiting.append(delivery)
        self.wake()
        return delivery.answer

    def take(self, taker: object, act: Act = _at_once) -> Delivery[Status] | None:
        """Return the next message, to be settled by `taker`; None if no message is there, or after `close`."""
        while True:
            try:
                delivery = self._waiting.popleft()
            except IndexError:
                return None
            if delivery.ended is not None:
                continue
            if not self._is_ours(delivery.context.queue):
                act(delivery.pass_over)
                continue
            delivery.taker = taker
            delivery.due = self._clock.seconds() + self._timeout_seconds
            self._taken[delivery] = None
            if delivery.ended is not None:  # closed or taken in another thread
                act(self.ended, delivery)
                continue
            if self._timer is None:
                act(self._set_timer, delivery.due, self._timeout_seconds)
            return delivery

    def wait(self) -> defer.Deferred[None]:
        """Wait until there may be a message to take, or until `close`. A caller that then takes nothing calls `wake`."""
        waiting: defer.Deferred[None] = defer.Deferred()
        if self.closed or self._waiting:
            waiting.callback(None)
            return waiting
        if len(self._taken) >= self._limit and not self._warned:
            self._warned = True
            self.log.warn(
                "no more messages are delivered: group={group}: {count} messages are unsettled; call ack() or retry() for each",
                group=self._group, count=len(self._taken),
            )  # fmt: skip
        self._takers.append(waiting)
        return waiting

    def wake(self) -> None:
        """Wake the caller that has waited longest."""
        while self._takers:
            taker = self._takers.popleft()
            if not taker.called:
                taker.callback(None)
                return

    def close(self) -> None:
        """Hand out nothing any more; give up messages that were not taken. Closing twice is harmless."""
        self.closed = True
        waiting, self._waiting = self._waiting, collections.deque()
        for delivery in waiting:
            delivery.give_up()
        while self._takers:
            self.wake()
        self._stop_timer()

    def taken(self) -> list[Delivery[Status]]:
        """Return the deliveries that were taken and are open."""
        return [delivery for delivery in list(self._taken) if delivery.ended is None]

    def ended(self, delivery: Delivery[Any]) -> None:
        """Handle a delivery that has ended. Called on the reactor's thread."""
        self._taken.pop(delivery, None)
        if self.closed:
            self._stop_timer()

    def _set_timer(self, due: float, seconds: float) -> None:
        if due < math.inf and self._timer is None and (self._taken or not self.closed):
            self._timer_due = due
            self._timer = self._clock.callLater(seconds, self._timed_out)

    def _stop_timer(self) -> None:
        if self._timer is not None and not self._taken:
            self._timer.cancel()
            self._timer = None

    def _timed_out(self) -> None:
        """Expire deliveries in the order they were taken, as all have the same timeout."""
        now = max(self._clock.seconds(), self._timer_due)
        self._timer = None
        late = []
        for delivery in self.taken():
            if delivery.due > now:
                self._set_timer(delivery.due, delivery.due - now)
                break
            late.append(delivery)
        for delivery in late:
            delivery.expire()
