"""Messages as `async for` returns them. The receiving task settles each one."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator
from typing import Any

import attrs

from twisted_mq.aio.awaiting import result_of
from twisted_mq.aio.loop_reactor import LoopReactor
from twisted_mq.client.consuming.deliveries import Deliveries, Delivery
from twisted_mq.client.core.argument_checks import check_most
from twisted_mq.protocol.messages.message import MessageExt, with_more

MESSAGES_A_TURN = 64
"""After so many messages that were available at once, the iteration lets other tasks run."""

AnyDelivery = Delivery[Any]
AnyDeliveries = Deliveries[Any, Any]
"""Deliveries with either kind of status."""


@attrs.frozen(slots=False)
class ReceivedMessage(MessageExt):
    """A stored message (MessageExt) that counts as consumed once it is acknowledged.

    If it is neither acknowledged nor sent back within `consume_timeout_seconds`, it is delivered again.
    """

    _delivery: AnyDelivery = attrs.field(eq=False, repr=False)

    async def ack(self) -> None:
        """Acknowledge the message: the group's offset advances, at the broker within some seconds or at `stop`.

        Raises DeliveryEnded if the message is already settled, or after the consume timeout; then it is delivered again.
        """
        self._delivery.acknowledge()

    async def retry(self, *, delay_level: int | None = None, suspend_seconds: float | None = None) -> None:
        """Send the message back to be delivered again: later with each retry, or after a delay level (3 is 10 s).

        Delay level -1 makes it a dead letter. In order, it is delivered again after its queue has paused for
        `suspend_seconds`, or as the options say. Raises DeliveryEnded, or ClientOptionIllegal for an argument that belongs
        to the other kind of consumer.
        """
        self._delivery.refuse(delay_level, suspend_seconds)


class Received:
    """The messages of one consumer, for any number of iterating tasks."""

    def __init__(self, reactor: LoopReactor, deliveries: AnyDeliveries, *, auto_ack: bool) -> None:
        self._reactor = reactor
        self._deliveries = deliveries
        self._auto_ack = auto_ack

    async def messages(self, timeout: float | None) -> AsyncGenerator[ReceivedMessage, None]:
        """Iterate over messages. Ends if none arrives for `timeout` seconds, or when the consumer stops."""
        for turn in itertools.count(1):
            if turn % MESSAGES_A_TURN == 0:
                await asyncio.sleep(0)
            task = asyncio.current_task()
            delivery = self._deliveries.take(task) or await self._next(task, timeout)
            if delivery is None:
                return
            asked = False
            try:
                yield with_more(ReceivedMessage, delivery.message, _delivery=delivery)
                asked = True
            finally:
                if self._auto_ack and delivery.ended is None:
                    if asked:
                        delivery.acknowledge()
                    else:
                        delivery.refuse()

    async def getmany(self, timeout: float, most: int) -> list[ReceivedMessage]:
        """Wait for the first message; return it with those that are available then. Raises ClientOptionIllegal."""
        check_most(most)
        task = asyncio.current_task()
        first = self._deliveries.take(task) or await self._next(task, timeout)
        found = [] if first is None else [first]
        while found and len(found) < most and (more := self._deliveries.take(task)) is not None:
            found.append(more)
        return [with_more(ReceivedMessage, one.message, _delivery=one) for one in found]

    async def _next(self, task: object, timeout: float | None) -> AnyDelivery | None:
        loop = self._reactor.check_loop()
        deadline = None if timeout is None else loop.time() + timeout
        while not self._deliveries.closed:
            waiting = self._deliveries.wait()
            if deadline is not None:
                waiting.addTimeout(max(0.0, deadline - loop.time()), self._reactor, onTimeoutCancel=lambda *_: None)
            try:
                await result_of(waiting, loop)
            except asyncio.CancelledError:
                self._deliveries.wake()  # this task may have been woken for a message that another can take
                raise
            delivery = self._deliveries.take(task)
            if delivery is not None:
                return delivery
            if deadline is not None and loop.time() >= deadline:
                return None
        return None

    def refuse_own(self) -> None:
        """Send back the open messages of the running task, as after a listener that raised."""
        for delivery in self._open_by(asyncio.current_task()):
            delivery.refuse()

    def close(self) -> None:
        """Return no more messages. Give up the open ones of this task and of finished tasks, which will not settle them."""
        self._deliveries.close()
        for delivery in self._open_by(asyncio.current_task()):
            delivery.give_up()

    def _open_by(self, task: object) -> list[AnyDelivery]:
        return [
            delivery
            for delivery in self._deliveries.taken()
            if delivery.taker is task or (isinstance(delivery.taker, asyncio.Task) and delivery.taker.done())
        ]
