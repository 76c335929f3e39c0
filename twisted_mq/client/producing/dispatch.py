"""Dispatches messages, at once if nothing holds them back, else as soon as possible.

Messages that are dispatched at once leave together, and their answers are read together: such a send is one Deferred, the
caller's, and an entry among the requests of its connection. A coroutine for each would cost a good part of the send. A
coroutine handles everything unusual, such as a refusal or a lost connection.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from twisted.internet import defer
from twisted.python.failure import Failure

from twisted_mq.client.core.errors import ClientStateError
from twisted_mq.client.core.mq_client import MQClient
from twisted_mq.client.producing.calls_in_flight import Call, CallsInFlight
from twisted_mq.client.producing.message_trace import TraceDispatcher
from twisted_mq.client.producing.outgoing import Outgoing, Ready, check_message, key_text, keyed, keyless, outgoing
from twisted_mq.client.producing.producer_options import ProducerOptions
from twisted_mq.client.producing.send_result import SendResult, SentTogether, read_together, results, send_result
from twisted_mq.client.producing.send_window import SendWindow
from twisted_mq.client.producing.sender import FirstAttempt, Sender
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.messages.message import Message
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.remoting.calling_channel import REQUESTS_TOGETHER, CallingChannel

_SUCCESS = int(ResponseCode.SUCCESS)


class Sending(NamedTuple):
    """A message that leaves together with others."""

    call: defer.Deferred[SendResult]
    ready: Outgoing
    given: MessageQueue | None
    """The queue if the caller has chosen one."""
    total: float
    """The timeout in seconds."""


Sent: TypeAlias = tuple[Sending, MessageQueue, str, float]
"""A message that has left, its queue, its unique key, and its deadline."""


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
        self._keys = client.unique_keys
        self._options = options
        self._limits = options.limits
        self._sender = sender
        self._metrics = sender.metrics
        self._window = window
        self._calls = calls
        self._traces = traces
        self._begins = traces is None and not options.send_latency_fault and not options.vip_channel
        self._group = group
        self._held: list[Sending] = []
        self.read = read_together

    def send_one(
        self, message: Message, named: Message, queue: MessageQueue | None, timeout_seconds: float | None
    ) -> defer.Deferred[SendResult]:
        """Send one message, `named` with its topic's full name; fires and fails as Producer.send does. Raises MessageIllegal."""
        limits = self._limits
        check_message(named, limits)
        ready = keyless(named, limits) or outgoing(named, self._keys.make(), limits)
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
        if turn is not None or not self._begins:
            whole = keyed(ready, self._keys.make())
            return self._calls.run_on(self._deliver(messages, whole, size, queue, timeout_seconds, turn))
        call: defer.Deferred[SendResult] = defer.Deferred(self._cancel)
        self._calls.running[call] = size
        total = self._options.send_timeout_seconds if timeout_seconds is None else timeout_seconds
        self._hold(Sending(call, ready, queue, total))
        return call

    # messages that leave together

    def _hold(self, sending: Sending) -> None:
        """Hold a message until a read of answers, or a turn of the reactor, is over. One alone in flight leaves at once."""
        held, outbox = self._held, self._client.remoting.outbox
        held.append(sending)
        if len(held) == REQUESTS_TOGETHER or (self._window.count < 2 and not outbox.reading):
            self.flush()
        elif len(held) == 1:
            outbox.add(self)

    def flush(self) -> None:
        """Send the held messages: those of one connection in one write."""
        held, self._held = self._held, []
        now = self._clock.seconds()
        now_ms = int(now * 1000)
        leaving: dict[CallingChannel, list[tuple[Ready, float, Sent]]] = {}
        for sending, key in zip(held, self._keys.make_some(len(held)), strict=True):
            call, ready, given, total = sending
            if call.called:  # it was cancelled
                continue
            way = self._way(ready, given, key, now_ms)
            if way is None:
                self._go_on(sending, key)
                continue
            queue, channel, request = way
            sent = (sending, queue, key if ready.keyless else ready.unique_key, now + total)
            leaving.setdefault(channel, []).append((request, total, sent))
        for channel, requests in leaving.items():
            if channel.takes(len(requests)):
                channel.send_together(self, requests)
            else:
                for _, _, (sending, _, key, _) in requests:
                    self._go_on(sending, key)

    def _way(
        self, ready: Outgoing, given: MessageQueue | None, key: str, now_ms: int
    ) -> tuple[MessageQueue, CallingChannel, Ready] | None:
        """Return the queue, the connection and the request of a message; None if queues or connection are not there."""
        sender = self._sender
        info = sender.infos.get(ready.topic)
        queue = given or (None if info is None else info.select())
        if queue is None:
            return None
        channel = sender.channels.get(queue.broker_name)
        if channel is None or not channel.connected_now:
            channel = sender.connected(queue.broker_name)
        if channel is None:
            if given is None and info is not None:
                info.turn -= 1  # the queue is still the next one
            return None
        request = sender.requests.ready(ready, queue, now_ms, key_text(key) if ready.keyless else "")
        if isinstance(request, RemotingCommand):
            request = functools.partial(channel.encoded, request)
        return queue, channel, request

    def settled(self, request: Sent, result: RemotingCommand | Failure) -> bool:
        """Take the answer to a message, or the error that it failed with. Return False for a call that was cancelled.

        Sender.deliver handles any answer that is not ResponseCode.SUCCESS.
        """
        sending, queue, key, deadline = request
        if sending.call.called:
            return False
        if isinstance(result, Failure) or result.code != _SUCCESS:
            answer = defer.fail(result) if isinstance(result, Failure) else defer.succeed(result)
            self._go_on(sending, key, FirstAttempt(queue, answer, deadline, sending.total, sending.given))
            return True
        try:
            sent = send_result(key, queue, result)
        except Exception:
            self._fail(sending.call, Failure())
        else:
            self._end([sending.call], [sent])
        return True

    def settled_together(self, requests: list[Sent], read: SentTogether) -> None:
        """Take the answers to messages, as `read` returned them."""
        sendings, queues, keys, _ = zip(*requests, strict=True)
        self._end([one.call for one in sendings], results(read, keys, queues))

    def _end(self, calls: Sequence[Call], results: Sequence[SendResult]) -> None:
        """Give calls their results, except to those that were cancelled."""
        running, metrics = self._calls.running, self._metrics
        sizes = [size for call in calls if isinstance(size := running.pop(call, None), int)]
        metrics.in_flight -= len(sizes)
        metrics.sent += len(sizes)
        self._window.leave(sum(sizes), len(sizes))
        for call, result in zip(calls, results, strict=True):
            if not call.called:
                call.callback(result)
        if not self._calls.is_open:
            self._calls.check_end()

    def _cancel(self, call: Call) -> None:
        """End a call that its caller cancels."""
        rest = self._calls.running.get(call)
        if isinstance(rest, defer.Deferred):
            rest.cancel()
        elif rest is not None:
            self._fail(call, Failure(defer.CancelledError()))

    def _fail(self, call: Call, reason: Failure) -> None:
        size = self._calls.running.pop(call)
        assert isinstance(size, int)
        self._metrics.in_flight -= 1
        self._metrics.failed += 1
        self._window.leave(size)
        call.callback(self._calls.told(reason))
        self._calls.check_end()

    # a message by itself

    def _go_on(self, sending: Sending, key: str, begun: FirstAttempt | None = None) -> None:
        """Deliver a message that could not leave with others, or whose first attempt failed."""
        call, ready, given, total = sending
        running = self._calls.running
        size = running[call]
        assert isinstance(size, int)
        rest = defer.Deferred.fromCoroutine(self._deliver((), keyed(ready, key), size, given, total, begun=begun))
        running[call] = rest
        rest.addBoth(self._gone_on, call)

    def _gone_on(self, result: SendResult | Failure, call: Call) -> None:
        del self._calls.running[call]
        call.callback(self._calls.told(result))
        self._calls.check_end()

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
