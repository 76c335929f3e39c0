"""Takes sends to ordered topics: checked before the append, and again when the answer is due.

Messages of an ordered producer carry their place in the order (ORDERED, see `protocol.messages.order_mark`). A repeat is
stored once, and a message that comes too early is refused, so that none overtakes a refused one. A plain producer's
messages are accepted where all queues of the topic move as one; the broker writes epoch and queue into them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

import attrs
from twisted.internet import defer
from twisted.python import failure

from twisted_mq.broker.ha.durability import Durability
from twisted_mq.broker.ordered_topics import Sent
from twisted_mq.broker.ordering.pipelines import NotNext, Pipelines
from twisted_mq.broker.ordering.units import BrokerUnit, Units
from twisted_mq.coordination.election import leading_term
from twisted_mq.coordination.interfaces import CoordinationError, ICoordinator
from twisted_mq.ordering.paths import producers_path
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.messages.order_mark import ORDER_EXPECTED, ORDER_LEADER, OrderMark
from twisted_mq.protocol.text.properties import PROPERTY_ORDERED
from twisted_mq.remoting.channel import Answer
from twisted_mq.remoting.late_answers import LateAnswers
from twisted_mq.storage.interfaces import IMessageStore, InnerBatch, InnerMessage, PutResult, PutStatus


class SendingParts(Protocol):
    """The parts of the broker that sends use."""

    store: IMessageStore
    durability: Durability
    late: LateAnswers

    def dispatch(self) -> bool: ...


@attrs.define(eq=False)
class _Send:
    """A send of an ordered producer."""

    mark: OrderMark
    message: InnerMessage
    put: Callable[[InnerMessage], PutResult]
    sent: Sent


@attrs.define(eq=False)
class TakenSends:
    """The sends of one broker; see ordered_topics.OrderedSends."""

    broker: SendingParts
    units: Units
    coordinator: ICoordinator
    _asking: dict[BrokerUnit, deque[tuple[_Send, defer.Deferred[bytes]]]] = attrs.field(factory=dict)
    """Sends of units for which the leading producer is being asked for, in their order."""

    def take(self, mode: str, message: InnerMessage, put: Callable[[InnerMessage], PutResult], sent: Sent) -> Answer:
        """See ordered_topics.OrderedSends."""
        unit = self.units.of_queue(message.topic, mode, message.queue_id)
        text = message.property_map.get(PROPERTY_ORDERED)
        if text is None:
            mark = self._mark(unit, message.queue_id)
            message.properties += f"{PROPERTY_ORDERED}\x01{mark}\x02".encode()
            message.property_map[PROPERTY_ORDERED] = mark
            return self._answer(unit, put(message), sent)
        send = _Send(_decoded(text, message.queue_id), message, put, sent)
        if unit in self._asking:
            return self._ask(unit, send)
        return self._admit(unit, send)

    def take_batch(self, mode: str, batch: InnerBatch, put: Callable[[InnerBatch], PutResult], sent: Sent) -> Answer:
        """See ordered_topics.OrderedSends."""
        shared = batch.shared
        if any(f"{PROPERTY_ORDERED}\x01".encode() in properties for properties in batch.properties):
            raise BrokerError(ResponseCode.INVALID_PARAMETER, "ordered messages are sent one by one, not in batches")
        unit = self.units.of_queue(shared.topic, mode, shared.queue_id)
        mark = self._mark(unit, shared.queue_id)
        batch.suffix += f"{PROPERTY_ORDERED}\x01{mark}\x02".encode()
        return self._answer(unit, put(batch), sent)

    # plain producers

    def _mark(self, unit: BrokerUnit, queue_id: int) -> str:
        """Return the mark of a plain producer's message. Raises BrokerError if none is accepted."""
        if not unit.together:
            remark = (
                f"the queues of topic {unit.topic} are ordered one by one: send with an OrderedProducer, or declare it with"
                " mq order create --together"
            )
            raise BrokerError(ResponseCode.NO_PERMISSION, remark)
        self.units.check_head(unit, unit.epoch)
        return OrderMark(unit.epoch, queue_id).encode()

    # ordered producers

    def _admit(self, unit: BrokerUnit, send: _Send) -> Answer:
        """Check and store a send. Raises BrokerError."""
        mark, pipelines = send.mark, unit.pipelines
        self.units.check_head(unit, mark.epoch)
        if pipelines is None:
            return self._ask(unit, send)
        if mark.leader < pipelines.leader:
            raise _another_leads(unit, pipelines)
        if mark.leader > pipelines.leader:
            pipelines.led_by(mark.leader)
        try:
            offset = pipelines.place(mark)
        except NotNext as early:
            remark = f"topic {unit.topic}, queue {mark.queue}: sequence {mark.sequence} came before {early.expected}"
            fields = {ORDER_EXPECTED: str(early.expected)}
            raise BrokerError(ResponseCode.SYSTEM_BUSY, f"{remark}. Send again from there", fields) from None
        if offset is not None:
            return self._answer_again(unit, mark.queue, offset, send.sent)
        result = send.put(send.message)
        pipelines.appended(mark, result.queue_offset)
        return self._answer(unit, result, send.sent)

    def _ask(self, unit: BrokerUnit, send: _Send) -> defer.Deferred[bytes]:
        """Ask which producer leads; this send, and those after it, wait for the answer."""
        waiting: defer.Deferred[bytes] = defer.Deferred()
        queue = self._asking.get(unit)
        if queue is not None:
            queue.append((send, waiting))
            return waiting
        self._asking[unit] = deque([(send, waiting)])
        defer.ensureDeferred(self._find_leader(unit)).addErrback(self._not_found, unit)
        return waiting

    async def _find_leader(self, unit: BrokerUnit) -> None:
        """Ask for the leader before the first send in an epoch, so that a producer whose term is over cannot send in it."""
        epoch, refusal = unit.epoch, None
        try:
            term = leading_term(await self.coordinator.children(producers_path(unit.topic, unit.name)))
            if term is None:
                refusal = BrokerError(ResponseCode.NO_PERMISSION, f"no producer leads {unit.topic}")
            elif epoch == unit.epoch:
                unit.pipelines = Pipelines(term)
        except CoordinationError as error:
            refusal = BrokerError(ResponseCode.NO_PERMISSION, f"the leading producer is not known: {error}")
        with self.broker.late.together():
            self._go_on(unit, refusal)
        self.broker.dispatch()

    def _go_on(self, unit: BrokerUnit, refusal: BrokerError | None) -> None:
        """Process the sends that waited, in order."""
        for send, waiting in self._asking.pop(unit):
            if refusal is not None:
                waiting.errback(refusal)
                continue
            decide = self._ask if unit in self._asking else self._admit
            answer: defer.Deferred[Any] = defer.maybeDeferred(decide, unit, send)
            answer.chainDeferred(waiting)

    def _not_found(self, reason: failure.Failure, unit: BrokerUnit) -> None:
        for _send, waiting in self._asking.pop(unit, ()):
            waiting.errback(reason)

    # answers

    def _answer(self, unit: BrokerUnit, result: PutResult, sent: Sent) -> Answer:
        """Return the acknowledgement once both brokers hold the message and this is still the head, otherwise a refusal."""
        reached = self.broker.durability.reached_on_both(result.end_offset)
        unit.unanswered[reached] = None
        found = (unit, unit.epoch, reached)
        return reached.addCallbacks(
            self._held, self._not_held, callbackArgs=(*found, result, sent), errbackArgs=found
        )  # one Deferred for all steps, because each send pays for it

    def _answer_again(self, unit: BrokerUnit, queue_id: int, offset: int, sent: Sent) -> Answer:
        """Return the answer to a repeat, once everything stored so far is held by both brokers."""
        end = PutResult(PutStatus.PUT_OK, end_offset=self.broker.store.max_physical_offset())

        def sent_again(_end: PutResult, code: int) -> bytes:
            entries = self.broker.store.queue_entries(unit.topic, queue_id, offset, 1)
            if not entries:
                raise BrokerError(ResponseCode.SYSTEM_BUSY, f"topic {unit.topic}: offset {offset} is not readable yet")
            physical, size, _tags = entries[0]
            return sent(PutResult(PutStatus.PUT_OK, offset, physical, physical + size), code)

        return self._answer(unit, end, sent_again)

    def _held(
        self, code: int, unit: BrokerUnit, epoch: int, reached: defer.Deferred[Any], result: PutResult, sent: Sent
    ) -> bytes:
        del unit.unanswered[reached]
        self.units.check_head(unit, epoch)
        return sent(result, code)

    def _not_held(
        self, reason: failure.Failure, unit: BrokerUnit, epoch: int, reached: defer.Deferred[Any]
    ) -> failure.Failure:
        """Refuse a send whose channel is gone, or whose epoch is over."""
        if reached not in unit.unanswered:
            raise self.units.refusal(unit, epoch)
        del unit.unanswered[reached]
        return reason


def _decoded(text: str, queue_id: int) -> OrderMark:
    """Return the mark of an ordered message. Raises BrokerError."""
    try:
        mark = OrderMark.decode(text)
    except ValueError as error:
        raise BrokerError(ResponseCode.INVALID_PARAMETER, str(error)) from None
    if not mark.sequence or mark.queue != queue_id:
        raise BrokerError(ResponseCode.INVALID_PARAMETER, f"ORDERED is {text}, sent to queue {queue_id}")
    return mark


def _another_leads(unit: BrokerUnit, pipelines: Pipelines) -> BrokerError:
    remark = f"topic {unit.topic}: another producer leads, with term {pipelines.leader}"
    return BrokerError(ResponseCode.NO_PERMISSION, remark, {ORDER_LEADER: str(pipelines.leader)})
