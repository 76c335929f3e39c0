"""Messages as an `async for` hands them out, each to be settled by whoever got it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Callable
from operator import attrgetter
from typing import Any

import attrs

from twisted_mq.aio.awaiting import result_of
from twisted_mq.aio.loop_reactor import LoopReactor
from twisted_mq.client.consuming.deliveries import Deliveries, Delivery
from twisted_mq.client.core.argument_checks import check_most
from twisted_mq.protocol.messages.message import MessageExt

MESSAGES_A_TURN = 64
"""Messages that were there already before others have their turn of the loop."""

AnyDelivery = Delivery[Any]
AnyDeliveries = Deliveries[Any, Any]
"""Of either kind of answer."""

_fields: Callable[[MessageExt], tuple[Any, ...]] = attrgetter(*(field.name for field in attrs.fields(MessageExt)))


@attrs.frozen(slots=False)
class ReceivedMessage(MessageExt):
    """A stored message, as MessageExt, that is consumed once it is acknowledged.

    Neither acknowledged nor sent back within `consume_timeout_seconds` it comes again.
    """

    _delivery: AnyDelivery = attrs.field(eq=False, repr=False)

    async def ack(self) -> None:
        """It is consumed: the group's offset moves on, at the broker within some seconds or at `stop`.

        Raises DeliveryEnded where it was settled already, or too late: then it comes again.
        """
        self._delivery.acknowledge()

    async def retry(self, *, delay_level: int | None = None, suspend_seconds: float | None = None) -> None:
        """It shall come again: later with each try, or after the time of a delay level (3 is 10 s); -1: a dead letter.

        Consumed in order it comes again when its queue has rested, for `suspend_seconds` or as the options say. Raises
        DeliveryEnded, or ClientOptionIllegal for the argument that is the other kind's.
        """
        self._delivery.refuse(delay_level, suspend_seconds)


_received: Callable[..., ReceivedMessage] = ReceivedMessage


class Received:
    """The messages of one consumer, for any number of tasks that iterate."""

    def __init__(self, reactor: LoopReactor, deliveries: AnyDeliveries, *, auto_ack: bool) -> None:
        self._reactor = reactor
        self._deliveries = deliveries
        self._auto_ack = auto_ack

    async def messages(self, timeout: float | None) -> AsyncGenerator[ReceivedMessage, None]:
        """Ends when none came for `timeout` seconds, or when the consumer stops."""
        for turn in itertools.count(1):
            if turn % MESSAGES_A_TURN == 0:
                await asyncio.sleep(0)
            task = asyncio.current_task()
            delivery = self._deliveries.take(task) or await self._next(task, timeout)
            if delivery is None:
                return
            asked = False
            try:
                yield _received(*_fields(delivery.message), delivery)
                asked = True
            finally:
                if self._auto_ack and delivery.ended is None:
                    if asked:
                        delivery.acknowledge()
                    else:
                        delivery.refuse()

    async def getmany(self, timeout: float, most: int) -> list[ReceivedMessage]:
        """Wait for the first; the others are those that are there then. Raises ClientOptionIllegal."""
        check_most(most)
        task = asyncio.current_task()
        first = self._deliveries.take(task) or await self._next(task, timeout)
        found = [] if first is None else [first]
        while found and len(found) < most and (more := self._deliveries.take(task)) is not None:
            found.append(more)
        return [_received(*_fields(one.message), one) for one in found]

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
                self._deliveries.wake()  # this one may have been woken for what others can take
                raise
            delivery = self._deliveries.take(task)
            if delivery is not None:
                return delivery
            if deadline is not None and loop.time() >= deadline:
                return None
        return None

    def refuse_own(self) -> None:
        """Send back what the running task has open, as after a listener that raised."""
        for delivery in self._open_by(asyncio.current_task()):
            delivery.refuse()

    def close(self) -> None:
        """Hand out no more. What the running task has open, or one that is done, nobody will settle: it is given up."""
        self._deliveries.close()
        for delivery in self._open_by(asyncio.current_task()):
            delivery.give_up()

    def _open_by(self, task: object) -> list[AnyDelivery]:
        return [
            delivery
            for delivery in self._deliveries.taken()
            if delivery.taker is task or (isinstance(delivery.taker, asyncio.Task) and delivery.taker.done())
        ]
