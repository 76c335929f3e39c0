"""Sends of one ordered queue: its pipeline, its requests in flight, pauses and deadlines."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Protocol

import attrs
from twisted.internet import defer, interfaces
from twisted.python import failure

from twisted_mq.client.core.errors import EXPECTED_ERRORS
from twisted_mq.client.core.mq_client import MQClient
from twisted_mq.client.ordered.errors import SendGivenUp, TooMuchWaits
from twisted_mq.client.ordered.ordered_options import OrderedOptions
from twisted_mq.client.ordered.pipeline import Pipeline, Waiting
from twisted_mq.client.producing.outgoing import Outgoing, SendRequests
from twisted_mq.client.producing.producer_options import RETRY_RESPONSE_CODES
from twisted_mq.client.producing.send_result import SendResult, SendStatus, send_result
from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.messages.order_mark import ORDER_LEADER, OrderMark
from twisted_mq.protocol.text.properties import PROPERTY_ORDERED, encode_properties
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.remoting.channel import Request

FIRST_PAUSE_SECONDS = 0.02
LONGEST_PAUSE_SECONDS = 1.0
"""The longest pause between a refusal and the next run. It doubles with each refusal until an acknowledgement."""

PASSING_CODES = RETRY_RESPONSE_CODES | {ResponseCode.FLOW_CONTROL}
"""Refusals that pass: another run is tried. Any other refusal fails the message."""


class NotOnBoth(Exception):
    """Raised when the master has the message, but does not confirm that its slave has it."""


@attrs.frozen
class Target:
    """The broker group that accepts sends, its epoch, and the leader term to send under."""

    group: str
    epoch: int
    term: int


@attrs.define(eq=False)
class Send:
    """A send of a user."""

    message: Outgoing
    seconds: float
    deadline: float
    done: defer.Deferred[SendResult]
    result: SendResult | None = None


class SendingUnit(Protocol):
    """The interface of a unit that its queues use."""

    group: str
    topic: str
    client: MQClient
    options: OrderedOptions
    epoch: int
    """The newest epoch that was seen."""

    def target(self) -> Target | None:
        """The present target, the same object while it does not change.

        None if this producer is not sure to lead, or if there is no head.
        """

    @property
    def patience_seconds(self) -> float:
        """The time without an answer after which a head counts as not reached."""

    def heard(self, target: Target, answers: bool) -> None:
        """Note whether the head answered while messages were in flight to it. Called each `patience_seconds`."""

    def is_led_by_another(self) -> None:
        """Note that a broker names another leader."""

    def step_back(self) -> None:
        """End the term: messages that were sent were given up, and their numbers cannot be used again."""

    async def why(self, queue_id: int, seconds: float, last: Exception | None) -> Exception:
        """Return the error of a message that was not acknowledged in time."""


class QueueSender:
    """The sends of one producer to a queue. Messages are acknowledged and fail in the order in which they were submitted."""

    log = Logger()

    def __init__(self, unit: SendingUnit, queue_id: int) -> None:
        self._unit = unit
        self._queue_id = queue_id
        self._client = unit.client
        self._options = unit.options
        self._requests = SendRequests(unit.group, queue_nums=0, completed=unit.client.remoting.completes_requests)
        self._clock: interfaces.IReactorTime = unit.client.reactor
        self._pipeline: Pipeline[Send] = Pipeline(unit.options.window)
        self._target: Target | None = None
        self._address = ""
        self._queue = MessageQueue()
        """The queue with the present target's broker name."""
        self._begins = False
        self._pause = FIRST_PAUSE_SECONDS
        self._last: Exception | None = None
        self._retry: interfaces.IDelayedCall | None = None
        self._expiry: interfaces.IDelayedCall | None = None
        self._look: interfaces.IDelayedCall | None = None
        self._answers = False
        """The target has answered since the last check, or since it became the target."""

    def submit(self, message: Outgoing, seconds: float) -> defer.Deferred[SendResult]:
        """Send after all that was submitted before. Fails with OrderedError or BrokerError; raises TooMuchWaits."""
        options, pipeline = self._options, self._pipeline
        if len(pipeline) >= options.waiting_messages or pipeline.size_bytes >= options.waiting_bytes:
            raise TooMuchWaits(self._unit.topic, self._queue_id, len(pipeline), pipeline.size_bytes)
        send = Send(message, seconds, self._clock.seconds() + seconds, defer.Deferred())
        pipeline.add(send, len(message.body))
        self._expire_at(send.deadline)
        if pipeline.is_open:
            self._go_on()
        elif self._retry is None:
            self.resume()
        return send.done

    def renew(self) -> None:
        """Begin a new term of this producer."""
        self._pipeline.renew()

    def resume(self) -> None:
        """Handle a change of the unit: begin a run if the target is another one, or no run was under way."""
        target = self._unit.target()
        if target is self._target and (self._pipeline.is_open or self._begins):
            return
        self._cancel_retry()
        if target is not self._target:
            self._pause = FIRST_PAUSE_SECONDS
            self._cancel_look()
        self._target = target
        self._look_later()
        self._pipeline.end()
        if target is None:
            self._retry_later()
            return
        self._begins = True
        defer.Deferred.fromCoroutine(self._begin(target)).addErrback(self._report)

    def fail(self, error: Exception) -> None:
        """Fail all messages that wait."""
        for waiting in self._give_up():
            waiting.item.done.errback(error)

    def stop(self) -> None:
        """Cancel all timers."""
        self._pipeline.end()
        self._cancel_retry()
        self._cancel_look()
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None

    # runs

    async def _begin(self, target: Target) -> None:
        try:
            address = await self._client.routes.master(target.group, self._unit.topic)
        except EXPECTED_ERRORS as error:
            if self._target is target:
                self._begins = False
                self._note(error)
            return
        if self._target is target:
            self._begins = False
            self._address = address
            self._queue = MessageQueue(self._unit.topic, target.group, self._queue_id)
            self._pipeline.begin()
            self._go_on()

    def _go_on(self) -> None:
        """Send what the window allows, as long as this producer surely leads."""
        target = self._target
        if target is None or self._unit.target() is not target:
            self.resume()
            return
        for waiting in self._pipeline.take():
            self._send(waiting, target)
        if self._look is None:
            self._look_later()

    def _send(self, waiting: Waiting[Send], target: Target) -> None:
        run, queue = waiting.run, self._queue
        asked = self._client.remoting.invoke(
            self._address, self._request(waiting, target), self._options.answer_timeout_seconds
        )
        asked.addCallback(self._answered, waiting, run, queue, target)
        asked.addErrback(self._refused, waiting, run)
        asked.addErrback(self._report)

    def _request(self, waiting: Waiting[Send], target: Target) -> Request:
        mark = OrderMark(target.epoch, self._queue_id, target.term, self._pipeline.base, waiting.sequence)
        return self._requests.ready(
            waiting.item.message,
            self._queue,
            self._client.wall_ms(),
            more_properties=encode_properties({PROPERTY_ORDERED: mark.encode()}),
        )

    def _look_later(self) -> None:
        """Check later whether the target answers, as long as messages wait."""
        if self._look is None and len(self._pipeline):
            self._answers = False
            self._look = self._clock.callLater(self._unit.patience_seconds, self._look_for_answers)

    def _look_for_answers(self) -> None:
        self._look, target = None, self._target
        if target is not None and target is self._unit.target():
            self._unit.heard(target, self._answers)
        self._look_later()

    def _cancel_look(self) -> None:
        if self._look is not None:
            self._look.cancel()
            self._look = None

    def _answered(
        self, answer: RemotingCommand, waiting: Waiting[Send], run: int, queue: MessageQueue, target: Target
    ) -> None:
        """Take an acknowledgement, unless it comes from a head that is older than one seen since."""
        self._answers = self._answers or queue.broker_name == self._queue.broker_name
        if target.epoch < self._unit.epoch:
            self.log.info(
                "answer of an earlier head ignored, the message is sent to the present one: topic={t} queue={q} group={g}"
                " epoch={e} seen={s}",
                t=self._unit.topic, q=self._queue_id, g=target.group, e=target.epoch, s=self._unit.epoch,
            )  # fmt: skip
            return
        try:
            result = send_result(waiting.item.message.unique_key, queue, answer)
        except BrokerError as error:
            raise error.with_fields(answer.ext_fields or {}) from None
        if result.status is not SendStatus.SEND_OK:
            raise NotOnBoth(f"broker {queue.broker_name} answered {result.status.name}: its slave does not keep up")
        waiting.item.result = result
        self._pause = FIRST_PAUSE_SECONDS
        for one in self._pipeline.stored(waiting, run):
            assert one.item.result is not None  # it is stored
            one.item.done.callback(one.item.result)
        self._go_on_if_open()

    def _go_on_if_open(self) -> None:
        if self._pipeline.is_open and len(self._pipeline):
            self._go_on()

    def _refused(self, reason: failure.Failure, waiting: Waiting[Send], run: int) -> None:
        """Handle a broker's refusal, or a lost connection."""
        reason.trap(NotOnBoth, *EXPECTED_ERRORS)
        if not self._pipeline.refused(run):
            return
        error = reason.value
        assert isinstance(error, Exception)
        self._note(error)
        if isinstance(error, BrokerError):
            if ORDER_LEADER in error.ext_fields:
                self._unit.is_led_by_another()
            elif error.response_code not in PASSING_CODES:
                self._tell(self._give_up(waiting), error)

    def _note(self, error: Exception) -> None:
        """Handle a failed run: the next begins after a pause. If no broker answered, addresses are looked up again."""
        self._last = error
        self.log.info(
            "send failed, retrying soon: topic={topic} queue={queue} {error}",
            topic=self._unit.topic, queue=self._queue_id, error=error,
        )  # fmt: skip
        if not isinstance(error, BrokerError | NotOnBoth):
            self._client.routes.update(self._unit.topic).addErrback(lambda reason: reason.trap(*EXPECTED_ERRORS))
        self._retry_later()

    def _retry_later(self) -> None:
        if self._retry is None and len(self._pipeline):
            self._retry = self._clock.callLater(self._pause, self._retry_now)
            self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS)

    def _retry_now(self) -> None:
        self._retry = None
        self.resume()

    def _cancel_retry(self) -> None:
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None

    # deadlines

    def _expire_at(self, deadline: float) -> None:
        if self._expiry is None:
            self._expiry = self._clock.callLater(max(0.0, deadline - self._clock.seconds()), self._expire)
        elif deadline < self._expiry.getTime():
            self._expiry.reset(max(0.0, deadline - self._clock.seconds()))

    def _expire(self) -> None:
        self._expiry = None
        now = self._clock.seconds()
        late = next((waiting for waiting in self._pipeline if waiting.item.deadline <= now), None)
        if late is not None:
            # asked before the message is given up, which may end the leader's term
            why = self._unit.why(self._queue_id, late.item.seconds, self._last)
            explained = defer.Deferred.fromCoroutine(why)
            explained.addCallback(functools.partial(self._tell, self._give_up(late))).addErrback(self._report)
        if len(self._pipeline):
            self._expire_at(min(waiting.item.deadline for waiting in self._pipeline))

    def _give_up(self, first: Waiting[Send] | None = None) -> list[Waiting[Send]]:
        given_up = self._pipeline.give_up(first)
        if self._pipeline.is_spent:
            self._unit.step_back()
        return given_up

    def _tell(self, given_up: Sequence[Waiting[Send]], error: Exception) -> None:
        """Fail the first message with that error, and those after it because of it."""
        for place, waiting in enumerate(given_up):
            waiting.item.done.errback(SendGivenUp(self._unit.topic, self._queue_id, error) if place else error)

    def _report(self, reason: failure.Failure) -> None:
        self.log.failure(
            "ordered send failed: topic={topic} queue={queue}", reason, topic=self._unit.topic, queue=self._queue_id
        )
