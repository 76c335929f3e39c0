"""Sends messages: one API for sync and async, since every call returns a Deferred that `await` takes.

producer = Producer(reactor, group="g", namesrv="127.0.0.1:9876")
await producer.start()
result = await producer.send(Message(topic="T", body=b"hello", tags="A", keys="order-1"))
await producer.stop()
"""

from __future__ import annotations

import os
import random
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import TypeAlias, TypeVar

from twisted.internet import defer, interfaces

from twisted_mq.client.core.argument_checks import check_class, check_client_arguments, check_reactor_argument
from twisted_mq.client.core.client_options import ClientOptions
from twisted_mq.client.core.errors import EXPECTED_ERRORS, ClientStateError, MessageIllegal
from twisted_mq.client.core.mq_client import MQClient
from twisted_mq.client.core.name_checks import check_group
from twisted_mq.client.core.pace import Pace
from twisted_mq.client.core.request_and_reply import REPLY, request_message
from twisted_mq.client.core.requirements import Require
from twisted_mq.client.producing.accumulator import Accumulator
from twisted_mq.client.producing.batch_splitting import BatchIncomplete, split_batch
from twisted_mq.client.producing.calls_in_flight import CallsInFlight
from twisted_mq.client.producing.dispatch import Dispatch
from twisted_mq.client.producing.message_trace import TraceDispatcher
from twisted_mq.client.producing.outgoing import check_batch, check_batch_size, check_message, outgoing, outgoing_batch
from twisted_mq.client.producing.producer_options import ProducerOptions
from twisted_mq.client.producing.send_hooks import SendHooks
from twisted_mq.client.producing.send_result import SendResult
from twisted_mq.client.producing.send_window import SendWindow
from twisted_mq.client.producing.sender import Sender
from twisted_mq.protocol.bodies import MessageQueue, TopicRouteData
from twisted_mq.protocol.messages.message import Message, MessageExt
from twisted_mq.protocol.names.namespaces import with_namespace
from twisted_mq.protocol.names.recall_handle import RecallHandle
from twisted_mq.protocol.text.java import java_hash
from twisted_mq.protocol.text.properties import PROPERTY_MESSAGE_TYPE
from twisted_mq.remoting.client import Connect

Key = TypeVar("Key")

Sending: TypeAlias = Coroutine[defer.Deferred[object], object, SendResult]
"""A send that has not begun."""

QueueSelector = Callable[[Sequence[MessageQueue], Message, Key], MessageQueue]
"""(all queues, message, key) -> queue (Apache: MessageQueueSelector)."""


def select_by_hash(queues: Sequence[MessageQueue], message: Message, key: object) -> MessageQueue:
    """Return the queue of a key, the same that Apache's SelectMessageQueueByHash chooses for that text."""
    return queues[abs(java_hash(str(key))) % len(queues)]


class Producer:
    """A producer of one group. Give it the name servers' addresses, or an MQClient to share."""

    def __init__(
        self,
        reactor: interfaces.IReactorTime,
        group: str,
        namesrv: str | Sequence[str] | None = None,
        *,
        client: MQClient | None = None,
        options: ProducerOptions | None = None,
        client_options: ClientOptions | None = None,
        namespace: str = "",
        instance_name: str | None = None,
        ip: str | None = None,
        connect: Connect | None = None,
        rng: random.Random | None = None,
        get_pid: Callable[[], int] = os.getpid,
    ) -> None:
        """Raises ClientOptionIllegal for a bad group or address; nothing is connected before `start`.

        With a `namespace`, the brokers' names of the group and of all topics begin with it; queues have these names.
        The arguments from `instance_name` on are those of an MQClient of its own.
        """
        check_reactor_argument(reactor)
        check_class(options, ProducerOptions, "options")
        check_client_arguments(client, client_options, MQClient, ClientOptions)
        check_group(group)
        self.group = with_namespace(namespace, group)
        check_group(self.group)
        self._namespace = namespace
        self.options = options or ProducerOptions()
        self.client = client or MQClient(
            reactor, namesrv, options=client_options, instance_name=instance_name, ip=ip, connect=connect, rng=rng,
            get_pid=get_pid,
        )  # fmt: skip
        self._clock = reactor
        self._sender = Sender(self.client, self.group, self.options)
        self.metrics = self._sender.metrics
        self._traces: TraceDispatcher | None = None
        if self.options.message_trace:
            self._traces = TraceDispatcher(self.client, group, self.options.trace_topic, "PRODUCE")
        self._hooks = SendHooks(self.group, self.options.hooks) if self.options.hooks else None
        self._gathering: Accumulator | None = None
        if self.options.auto_batch is not None:
            self._gathering = Accumulator(reactor, self.options.auto_batch, self._send_gathered)
        self._started = False
        self._calls = CallsInFlight(self.group)
        rate = self.options.max_sends_per_second
        self.window = SendWindow(
            reactor, self.options.max_in_flight, self.options.max_in_flight_bytes, self.client.postpone,
            None if rate is None else Pace(rate),
        )  # fmt: skip
        self._dispatch = Dispatch(
            self.client, self._sender, self.window, self._calls, self._traces, self.group, self.options
        )

    # life cycle

    def start(self, *, require: Require | None = None) -> defer.Deferred[None]:
        """Begin. Asks nothing of the network yet; raises ClientStateError when started already.

        With `require`, a name server and a broker must answer: raises NameServerUnreachable or BrokersUnreachable.
        """
        return defer.Deferred.fromCoroutine(self._start(require))

    async def _start(self, require: Require | None) -> None:
        self.client.check_process()
        if self._started:
            raise ClientStateError(f"producer {self.group} is already started")
        await self.client.join_producer(self, require)
        self._started = True
        self._calls.open()
        self.window.open()
        if self._traces is not None:
            self._traces.start()

    def stop(self, finish_seconds: float = 3.0) -> defer.Deferred[None]:
        """Let sends in flight finish for that long, then end. Unfinished sends fail with ClientStateError."""
        return defer.Deferred.fromCoroutine(self._stop(finish_seconds))

    async def _stop(self, finish_seconds: float) -> None:
        if not self._started:
            return
        self._started = False
        if self._gathering is not None:
            self._gathering.flush()
        await self._calls.finish(finish_seconds, self._clock)
        self.window.stop()
        self._calls.cancel()
        if self._traces is not None:
            await self._traces.stop(finish_seconds)
        await self.client.leave_producer(self)

    # public calls

    def send(
        self, message: Message, queue: MessageQueue | None = None, *, timeout_seconds: float | None = None
    ) -> defer.Deferred[SendResult]:
        """Send one message: to `queue` if given (without retries), else to the topic's queues in turn.

        Any number of sends can be started; at most `max_in_flight` are in flight at a time. The timeout counts from when the
        message is written. The message may be changed or sent again at once: the send uses its present state.

        Fails with MessageIllegal, NoRoute, SendFailed (all attempts failed), BrokerError (refused), RemotingError
        (no answer from the given queue's broker) or ClientStateError.
        """
        if self._gathering is not None and timeout_seconds is None:
            return self._calls.run(self._gather(self._gathering, message, queue))
        if self._hooks is not None:
            return self._calls.run(self._send(message, queue, timeout_seconds))
        if not self._calls.is_open:
            return self._calls.refused()
        try:
            return self._begin(message, queue, timeout_seconds)
        except Exception:
            return defer.fail()

    def send_by_key(
        self,
        message: Message,
        key: Key,
        selector: QueueSelector[Key] = select_by_hash,
        *,
        timeout_seconds: float | None = None,
    ) -> defer.Deferred[SendResult]:
        """Send to the queue that the selector takes for `key`: messages of one key stay in order in one queue."""
        return self._calls.run(self._send_by_key(message, key, selector, timeout_seconds))

    def send_batch(
        self, messages: Iterable[Message], queue: MessageQueue | None = None, *, timeout_seconds: float | None = None
    ) -> defer.Deferred[SendResult]:
        """Send several messages of one topic in one request, to one queue.

        Fails with MessageIllegal if they are too large together; `send_batches` splits them.
        """
        return self._calls.run(self._send_batch(list(messages), queue, timeout_seconds))

    def send_batches(
        self, messages: Iterable[Message], queue: MessageQueue | None = None, *, timeout_seconds: float | None = None
    ) -> defer.Deferred[list[SendResult]]:
        """Send many messages of one topic, in order, in batches of at most `max_message_size`; one result a batch.

        `timeout_seconds` is for each batch. If a batch after the first one fails, fails with BatchIncomplete, which has the
        results and the remaining messages; else fails as `send_batch` does.
        """
        return self._calls.run(self._send_batches(list(messages), queue, timeout_seconds))

    def send_one_way(self, message: Message, queue: MessageQueue | None = None) -> defer.Deferred[None]:
        """Send without an answer. Fires when the message is handed to the connection, which does not mean that it arrives."""
        return self._calls.run(self._send_one_way(message, queue))

    def request(
        self,
        message: Message,
        queue: MessageQueue | None = None,
        *,
        key: Key | None = None,
        selector: QueueSelector[Key] = select_by_hash,
        timeout_seconds: float = 3.0,
    ) -> defer.Deferred[MessageExt]:
        """Send a message and wait for its consumer's reply, `timeout_seconds` for both together.

        It goes to `queue`, or to the one that `selector` takes for `key`, or to the topic's queues in turn. Fails as `send`
        does, and with RequestTimeout. A consumer of the message replies by sending `reply_message(...)`.
        """
        return self._calls.run(self._request(message, queue, key, selector, timeout_seconds))

    def recall(self, topic: str, handle: str) -> defer.Deferred[str]:
        """Recall a message that waits for its delivery time, by the `recall_handle` of its SendResult. Fires with its id.

        Fails with MessageIllegal for an invalid handle, NoRoute, BrokerError (refused, or too late) or RemotingError.
        """
        return self._calls.run(self._recall(topic, handle))

    def publish_queues(self, topic: str) -> defer.Deferred[tuple[MessageQueue, ...]]:
        """Return the queues of a topic that accept messages, in the order that every client has them in."""
        return self._calls.run(self._publish_queues(topic))

    # interface for the client

    def topics(self) -> Iterable[str]:
        return self._sender.topics()

    def route_changed(self, topic: str, route: TopicRouteData) -> None:
        self._sender.route_changed(topic, route)

    # sending

    def _named(self, message: Message) -> Message:
        """Return the message with its topic's full name; a reply's topic has no namespace."""
        if (
            not self._namespace
            or not isinstance(message, Message)
            or message.properties.get(PROPERTY_MESSAGE_TYPE) == REPLY
        ):
            return message
        topic = with_namespace(self._namespace, message.topic)
        return Message(topic, message.body, message.flag, message.properties)

    async def _send(self, message: Message, queue: MessageQueue | None, timeout_seconds: float | None) -> SendResult:
        if self._hooks is None:
            return await self._begin(message, queue, timeout_seconds)
        return await self._hooked(
            self._hooks, [message], queue, lambda given: self._begin(given[0], queue, timeout_seconds)
        )

    def _begin(
        self, message: Message, queue: MessageQueue | None, timeout_seconds: float | None
    ) -> defer.Deferred[SendResult]:
        """Check and dispatch a message. Raises errors of the message, or ForkedProcess."""
        client = self.client
        if client.get_pid() != client.pid:
            client.check_process()
        named = self._named(message) if self._namespace else message
        return self._dispatch.send_one(message, named, queue, timeout_seconds)

    async def _hooked(
        self,
        hooks: SendHooks,
        messages: Sequence[Message],
        queue: MessageQueue | None,
        send: Callable[[list[Message]], Awaitable[SendResult]],
    ) -> SendResult:
        context = hooks.before(messages, queue)
        try:
            result = await send(context.messages)
        except BaseException as error:
            hooks.after(context, error=error)
            raise
        hooks.after(context, result)
        return result

    async def _gather(self, gathering: Accumulator, message: Message, queue: MessageQueue | None) -> SendResult:
        self.client.check_process()
        check_message(self._named(message), self.options.limits)
        if gathering.takes(message):
            return await gathering.add(message, queue)
        return await self._send(message, queue, None)

    def _send_gathered(self, messages: list[Message], queue: MessageQueue | None) -> defer.Deferred[SendResult]:
        return self._calls.run(self._send_batch(messages, queue, None))

    async def _send_by_key(
        self, message: Message, key: Key, selector: QueueSelector[Key], timeout_seconds: float | None
    ) -> SendResult:
        check_message(message, self.options.limits)
        queue = selector((await self._sender.info(self._named(message).topic)).queues, message, key)
        return await self._send(message, queue, timeout_seconds)

    async def _request(
        self,
        message: Message,
        queue: MessageQueue | None,
        key: Key | None,
        selector: QueueSelector[Key],
        timeout_seconds: float,
    ) -> MessageExt:
        request = request_message(message, self.client.client_id, timeout_seconds)
        reply = self.client.requests.expect(request, timeout_seconds)
        try:
            if key is None:
                await self._send(request, queue, timeout_seconds)
            else:
                await self._send_by_key(request, key, selector, timeout_seconds)
        except BaseException:
            reply.addErrback(lambda _: None)
            reply.cancel()
            raise
        return await reply

    def _send_batch(
        self, messages: list[Message], queue: MessageQueue | None, timeout_seconds: float | None
    ) -> Sending:
        if self._hooks is None:
            return self._send_batch_now(messages, queue, timeout_seconds)
        return self._hooked(
            self._hooks, messages, queue, lambda given: self._send_batch_now(given, queue, timeout_seconds)
        )

    async def _send_batch_now(
        self, messages: list[Message], queue: MessageQueue | None, timeout_seconds: float | None
    ) -> SendResult:
        self.client.check_process()
        named = [self._named(message) for message in messages]
        check_batch(named, self.options.limits)
        keys = [self.client.unique_key() for _ in messages]
        ready = outgoing_batch(named, keys, self.client.unique_key() if self.options.batch_unique_key else None)
        check_batch_size(len(ready.body), self.options.limits)
        return await self._dispatch.send(messages, ready, len(ready.body), queue, timeout_seconds)

    async def _send_batches(
        self, messages: list[Message], queue: MessageQueue | None, timeout_seconds: float | None
    ) -> list[SendResult]:
        check_batch([self._named(message) for message in messages], self.options.limits)
        results: list[SendResult] = []
        sent = 0
        for batch in split_batch(messages, self.options.limits.max_message_size):
            try:
                results.append(await self._send_batch(batch, queue, timeout_seconds))
            except EXPECTED_ERRORS as error:
                if not results:
                    raise
                raise BatchIncomplete(results, messages[sent:], error) from error
            sent += len(batch)
        return results

    async def _send_one_way(self, message: Message, queue: MessageQueue | None) -> None:
        self.client.check_process()
        hooks = self._hooks
        context = None if hooks is None else hooks.before([message], queue, one_way=True)
        named = self._named(message if context is None else context.messages[0])
        check_message(named, self.options.limits)
        ready = outgoing(named, self.client.unique_key(), self.options.limits)
        await self._sender.deliver_one_way(ready, queue)
        if hooks is not None and context is not None:
            hooks.after(context)

    async def _recall(self, topic: str, handle: str) -> str:
        try:
            broker_name = RecallHandle.decode(handle).broker_name
        except ValueError as error:
            raise MessageIllegal(f"{error}: {handle!r}") from error
        topic = with_namespace(self._namespace, topic)
        await self._sender.info(topic)
        address = await self.client.routes.master(broker_name, topic)
        return await self.client.calls.recall(address, self.group, broker_name, topic, handle)

    async def _publish_queues(self, topic: str) -> tuple[MessageQueue, ...]:
        return (await self._sender.info(with_namespace(self._namespace, topic))).queues
