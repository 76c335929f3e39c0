"""Messages as `for` returns them. The receiving thread settles each one."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar

import attrs
from twisted.internet import defer

from twisted_mq.aio.loop_reactor import LoopReactor
from twisted_mq.client.consuming.deliveries import Act, Deliveries, Delivery
from twisted_mq.client.core.argument_checks import check_most
from twisted_mq.protocol.messages.message import MessageExt, with_more

Result = TypeVar("Result")

AnyDelivery = Delivery[Any]
AnyDeliveries = Deliveries[Any, Any]
"""Deliveries with either kind of status."""


class Background(Protocol):
    """The part of a member that runs work in the loop."""

    def _call(self, work: Callable[[], defer.Deferred[Result]], timeout: float | None = None) -> Result:
        """Run the work in the loop and return its result."""

    def _act(self) -> Act:
        """Return what has the loop call functions soon. Raises ClientStateError, ForkedProcess."""


@attrs.frozen(slots=False)
class ReceivedMessage(MessageExt):
    """A stored message (MessageExt) that counts as consumed once it is acknowledged.

    If it is neither acknowledged nor sent back within `consume_timeout_seconds`, it is delivered again.
    """

    _delivery: AnyDelivery = attrs.field(eq=False, repr=False)
    _background: Background = attrs.field(eq=False, repr=False)

    def ack(self) -> None:
        """Acknowledge the message: the group's offset advances, at the broker within some seconds or at `stop`.

        Raises DeliveryEnded if the message is already settled, or after the consume timeout; then it is delivered again.
        """
        self._delivery.check_open()
        self._delivery.acknowledge(self._background._act())

    def retry(self, *, delay_level: int | None = None, suspend_seconds: float | None = None) -> None:
        """Send the message back to be delivered again: later with each retry, or after a delay level (3 is 10 s).

        Delay level -1 makes it a dead letter. In order, it is delivered again after its queue has paused for
        `suspend_seconds`, or as the options say. Raises DeliveryEnded, or ClientOptionIllegal for an argument that belongs
        to the other kind of consumer.
        """
        self._delivery.check_open()
        self._delivery.refuse(delay_level, suspend_seconds, self._background._act())


class Received:
    """The messages of one consumer, for any number of iterating threads."""

    def __init__(
        self, reactor: LoopReactor, deliveries: AnyDeliveries, background: Background, *, auto_ack: bool
    ) -> None:
        self._reactor = reactor
        self._deliveries = deliveries
        self._background = background
        self._auto_ack = auto_ack

    def messages(self, timeout: float | None) -> Iterator[ReceivedMessage]:
        """Iterate over messages. Ends if none arrives for `timeout` seconds, or when the consumer stops."""
        background = self._background
        while not self._deliveries.closed:
            thread = threading.current_thread()
            delivery = self._deliveries.take(thread, background._act())
            if delivery is None:
                delivery = background._call(functools.partial(self._begin_next, thread, timeout))
            if delivery is None:
                return
            message = with_more(ReceivedMessage, delivery.message, _delivery=delivery, _background=background)
            asked = False
            try:
                yield message
                asked = True
            finally:
                if self._auto_ack and delivery.ended is None:
                    if asked:
                        message.ack()
                    else:
                        message.retry()

    def getmany(self, timeout: float, most: int) -> list[ReceivedMessage]:
        """Wait for the first message; return it with those that are available then. Raises ClientOptionIllegal."""
        check_most(most)
        background, thread = self._background, threading.current_thread()
        first = self._deliveries.take(thread, background._act())
        if first is None:
            first = background._call(functools.partial(self._begin_next, thread, timeout))
        found = [] if first is None else [first]
        while found and len(found) < most and (more := self._deliveries.take(thread, background._act())) is not None:
            found.append(more)
        return [with_more(ReceivedMessage, one.message, _delivery=one, _background=background) for one in found]

    def _begin_next(self, thread: threading.Thread, timeout: float | None) -> defer.Deferred[AnyDelivery | None]:
        return defer.Deferred.fromCoroutine(self._next(thread, timeout))

    async def _next(self, thread: threading.Thread, timeout: float | None) -> AnyDelivery | None:
        seconds = self._reactor.loop.time
        deadline = None if timeout is None else seconds() + timeout
        while True:
            delivery = self._deliveries.take(thread)
            if delivery is not None or self._deliveries.closed or (deadline is not None and seconds() >= deadline):
                return delivery
            waiting = self._deliveries.wait()
            if deadline is not None:
                waiting.addTimeout(max(0.0, deadline - seconds()), self._reactor, onTimeoutCancel=lambda *_: None)
            await waiting

    def refuse_own(self, thread: threading.Thread) -> None:
        """Send back the open messages of a thread, as after a listener that raised."""
        for delivery in self._open_by(thread):
            delivery.refuse()

    def close(self, thread: threading.Thread) -> None:
        """Return no more messages. Give up the open ones of this thread and of ended threads, which will not settle them."""
        self._deliveries.close()
        for delivery in self._open_by(thread):
            delivery.give_up()

    def _open_by(self, thread: threading.Thread) -> list[AnyDelivery]:
        return [
            delivery
            for delivery in self._deliveries.taken()
            if delivery.taker is thread
            or (isinstance(delivery.taker, threading.Thread) and not delivery.taker.is_alive())
        ]
