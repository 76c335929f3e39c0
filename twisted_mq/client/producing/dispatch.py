"""Dispatches a message that is ready: at once if nothing holds it back, else as soon as possible.

A send that is dispatched at once is a single Deferred, that of its answer: a coroutine for each would cost a good part of
the send. A coroutine handles everything unusual, such as a refusal or a lost connection.
"""

from __future__ import annotations

from collections.abc import Sequence

from twisted.internet import defer
from twisted.python.failure import Failure

from twisted_mq.client.core.errors import ClientStateError
from twisted_mq.client.core.mq_client import MQClient
from twisted_mq.client.producing.calls_in_flight import CallsInFlight
from twisted_mq.client.producing.message_trace import TraceDispatcher
from twisted_mq.client.producing.outgoing import Outgoing
from twisted_mq.client.producing.send_result import SendResult, send_result
from twisted_mq.client.producing.send_window import SendWindow
from twisted_mq.client.producing.sender import FirstAttempt, Sender
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.messages.message import Message
from twisted_mq.protocol.wire.command import RemotingCommand

_SUCCESS = int(ResponseCode.SUCCESS)


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
    ) -> None:
        self._client = client
        self._sender = sender
        self._metrics = sender.metrics
        self._window = window
        self._calls = calls
        self._traces = traces
        self._group = group

    def send(
        self,
        messages: Sequence[Message],
        ready: Outgoing,
        size: int,
        queue: MessageQueue | None,
        timeout_seconds: float | None,
    ) -> defer.Deferred[SendResult]:
        """Send; fires and fails as Producer.send does. `size` is that of the bodies before they were compressed."""
        sender = self._sender
        self._metrics.in_flight += 1
        turn = self._window.enter(size, at_once=sender.is_warm(ready.topic))
        begun = sender.begin(ready, queue, timeout_seconds) if turn is None and self._traces is None else None
        if begun is None:
            return self._calls.run_on(self._deliver(messages, ready, size, queue, timeout_seconds, turn))
        sending = begun.answer
        self._calls.began(sending)
        return sending.addBoth(self._answered, sending, ready, size, begun)

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
            result = send_result(ready, begun.queue, answer)
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
