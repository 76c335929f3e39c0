"""Dispatches messages, at once if nothing holds them back, else as soon as possible, and keeps the calls that have not ended.

A send that is dispatched at once is a single Deferred, that of its answer: a coroutine for each would cost a good part of
the send. A coroutine handles everything unusual, such as a refusal or a lost connection.
"""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from twisted.internet import defer, interfaces
from twisted.python.failure import Failure

from twisted_mq.client.core.errors import ClientStateError
from twisted_mq.client.core.mq_client import MQClient
from twisted_mq.client.producing.message_trace import TraceDispatcher
from twisted_mq.client.producing.outgoing import Outgoing, check_message, outgoing
from twisted_mq.client.producing.producer_options import ProducerOptions
from twisted_mq.client.producing.send_result import SendResult, send_result
from twisted_mq.client.producing.send_window import SendWindow
from twisted_mq.client.producing.sender import FirstAttempt, Sender
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.messages.message import Message
from twisted_mq.protocol.wire.command import RemotingCommand

_SUCCESS = int(ResponseCode.SUCCESS)

Result = TypeVar("Result")
Call = defer.Deferred[Any]
"""The result is whatever the caller gets."""


class CallsInFlight:
    """Runs calls while it is open. A call that is cancelled after it is closed fails with ClientStateError."""

    def __init__(self, group: str) -> None:
        self._group = group
        self.is_open = False
        self._running: dict[Call, None] = {}
        self._all_ended: defer.Deferred[None] | None = None

    def open(self) -> None:
        """Accept calls from now on."""
        self.is_open = True

    def run(self, work: Coroutine[defer.Deferred[object], object, Result]) -> defer.Deferred[Result]:
        """Start a user's call; it counts as in flight until it ends."""
        if not self.is_open:
            work.close()
            return self.refused()
        return self.run_on(work)

    def refused(self) -> defer.Deferred[Any]:
        """Return a failed Deferred for a call that comes while this is closed."""
        return defer.fail(ClientStateError(f"producer {self._group} is not running; call start() first"))

    def run_on(self, work: Coroutine[defer.Deferred[object], object, Result]) -> defer.Deferred[Result]:
        """Start a part of a call; this may be closed in the meantime."""
        running = defer.Deferred.fromCoroutine(work)
        if not running.called:
            self.began(running)
            running.addBoth(self.failed_or_ended, running)
        return running

    def began(self, call: Call) -> None:
        """Count a call as in flight until `ended` or `failed_or_ended` is called for it."""
        self._running[call] = None

    def ended(self, call: Call) -> None:
        self._running.pop(call, None)
        if self._all_ended is not None and not self._running and not self._all_ended.called:
            self._all_ended.callback(None)

    def failed_or_ended(self, result: Result | Failure, call: Call) -> Result | Failure:
        """Return its result, as a callback passes it on. Raises ClientStateError if closing cancelled it."""
        self.ended(call)
        if not self.is_open and isinstance(result, Failure) and result.check(defer.CancelledError):
            raise ClientStateError(
                f"producer {self._group} was stopped before the answer came; the message may have been sent"
            )
        return result

    async def finish(self, finish_seconds: float, clock: interfaces.IReactorTime) -> None:
        """Accept no more calls; let those in flight finish for that long."""
        self.is_open = False
        if self._running:
            self._all_ended = defer.Deferred()
            await self._all_ended.addTimeout(finish_seconds, clock, onTimeoutCancel=lambda *_: None)

    def cancel(self) -> None:
        """Cancel the calls that are left."""
        for call in list(self._running):
            call.cancel()


class Dispatch:
    """Dispatches the messages of one producer: through its window, and counted among its calls until answered."""

    def __init__(
        self,
        client: MQClient,
        sender: Sender,
        window: SendWindow,
        calls: CallsInFlight,
        traces: TraceDispatcher | None,
        group: str,
        options: ProducerOptions,
    ) -> None:
        self._client = client
        self._clock = client.reactor
        self._unique_key = client.unique_keys.make
        self._options = options
        self._limits = options.limits
        self._sender = sender
        self._metrics = sender.metrics
        self._window = window
        self._calls = calls
        self._traces = traces
        self._begins = traces is None and not options.send_latency_fault and not options.vip_channel
        self._group = group

    def send_one(
        self, message: Message, named: Message, queue: MessageQueue | None, timeout_seconds: float | None
    ) -> defer.Deferred[SendResult]:
        """Send one message, `named` with its topic's full name; fires and fails as Producer.send does. Raises MessageIllegal."""
        limits = self._limits
        check_message(named, limits)
        ready = outgoing(named, self._unique_key(), limits)
        return self.send([message], ready, len(message.body), queue, timeout_seconds)

    def send(
        self,
        messages: Sequence[Message],
        ready: Outgoing,
        size: int,
        queue: MessageQueue | None,
        timeout_seconds: float | None,
    ) -> defer.Deferred[SendResult]:
        """Send; fires and fails as Producer.send does. `size` is that of the bodies before they were compressed."""
        self._metrics.in_flight += 1
        turn = self._window.enter(size, at_once=ready.topic in self._sender.warm)
        begun = self._begin(ready, queue, timeout_seconds) if turn is None and self._begins else None
        if begun is None:
            return self._calls.run_on(self._deliver(messages, ready, size, queue, timeout_seconds, turn))
        sending = begun.answer
        self._calls.began(sending)
        return sending.addBoth(self._answered, sending, ready, size, begun)

    def _begin(self, ready: Outgoing, given: MessageQueue | None, timeout_seconds: float | None) -> FirstAttempt | None:
        """Begin the first attempt if the topic's queues and the connection are ready; else return None and begin nothing.

        Sender.deliver handles any answer that is not ResponseCode.SUCCESS.
        """
        sender = self._sender
        info = sender.infos.get(ready.topic)
        queue = given
        if queue is None:
            queue = None if info is None else info.select()
            if queue is None:
                return None
        channel = sender.channels.get(queue.broker_name)
        if channel is None or not channel.connected_now:
            channel = sender.connected(queue.broker_name)
        if channel is None:
            if given is None and info is not None:
                info.turn -= 1  # the queue is still the next one
            return None
        total = self._options.send_timeout_seconds if timeout_seconds is None else timeout_seconds
        now = self._clock.seconds()
        request = sender.requests.ready(ready, queue, int(now * 1000))
        return FirstAttempt(queue, channel.send_request(request, total), now + total, total, given)

    def _answered(
        self,
        answer: RemotingCommand | Failure,
        sending: defer.Deferred[RemotingCommand],
        ready: Outgoing,
        size: int,
        begun: FirstAttempt,
    ) -> SendResult | defer.Deferred[SendResult]:
        if isinstance(answer, Failure) or answer.code != _SUCCESS:
            begun.answer = defer.fail(answer) if isinstance(answer, Failure) else defer.succeed(answer)
            rest = defer.Deferred.fromCoroutine(self._deliver((), ready, size, None, None, begun=begun))
            return rest.addBoth(self._calls.failed_or_ended, sending)
        metrics = self._metrics
        metrics.in_flight -= 1
        self._window.leave(size)
        self._calls.ended(sending)
        try:
            result = send_result(ready.unique_key, begun.queue, answer)
        except Exception:
            metrics.failed += 1
            raise
        metrics.sent += 1
        return result

    async def _deliver(
        self,
        messages: Sequence[Message],
        ready: Outgoing,
        size: int,
        queue: MessageQueue | None,
        timeout_seconds: float | None,
        turn: defer.Deferred[None] | None = None,
        begun: FirstAttempt | None = None,
    ) -> SendResult:
        """Deliver from the turn that it waits for, or from the answer to its first attempt."""
        metrics, traces = self._metrics, self._traces
        try:
            if turn is not None:
                await self._in_turn(turn)
            began_ms = 0 if traces is None else self._client.wall_ms()
            try:
                result = await self._sender.deliver(ready, queue, timeout_seconds, begun)
            finally:
                self._window.leave(size)
        except BaseException:
            metrics.failed += 1
            raise
        finally:
            metrics.in_flight -= 1
        metrics.sent += 1
        if traces is not None:
            traces.published(messages, result, began_ms, size)
        return result

    async def _in_turn(self, turn: defer.Deferred[None]) -> None:
        try:
            await turn
        except defer.CancelledError:
            if self._calls.is_open:
                raise
            raise ClientStateError(
                f"producer {self._group} was stopped before the message was sent; it was not sent"
            ) from None
