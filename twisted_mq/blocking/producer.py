"""Producers in plain calls.

with Producer("127.0.0.1:9876", group="orders") as producer:
    result = producer.send(Message("Orders", b"hello", tags="new"), timeout=3)

`timeout` is in seconds, for the whole call. After a timeout the message may still be stored.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import TypeVar

from twisted.internet import defer

from twisted_mq.blocking.calls import Call
from twisted_mq.blocking.mq_client import ClientMember, MQClient
from twisted_mq.blocking.pending import Pending, Window
from twisted_mq.client.core.requirements import Require
from twisted_mq.client.faces import producers
from twisted_mq.client.producing.producer import QueueSelector, select_by_hash
from twisted_mq.client.producing.send_result import SendResult
from twisted_mq.client.producing.transaction_producer import Check, TransactionResult, TransactionState
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.messages.message import Message, MessageExt
from twisted_mq.reactor_threads import threads_of

Key = TypeVar("Key")
SentT = TypeVar("SentT", bound=Message)


class Producer(producers.Producer[MQClient], ClientMember):
    """A producer of one group, for any number of threads."""

    _window: Window

    def _start(self, require: Require | None) -> defer.Deferred[None]:
        self._window = Window(self._core.options.max_in_flight)
        return super()._start(require)

    def send(self, message: Message, queue: MessageQueue | None = None, *, timeout: float | None = None) -> SendResult:
        """Send one message: to `queue` if given (without retries), else to the topic's queues in turn.

        Raises MessageIllegal, NoRoute, SendFailed (all attempts failed), BrokerError (refused), RemotingError (no
        answer from the given queue's broker), CallTimedOut or ClientStateError.
        """
        return self._ask(lambda: self._core.send(message, queue, timeout_seconds=timeout), timeout)

    def send_async(
        self, message: Message, queue: MessageQueue | None = None, *, timeout: float | None = None
    ) -> Future[SendResult]:
        """Send as `send` does, without waiting for the answer: one thread can have many messages in flight.

        The future's `result()` returns or raises what `send` would. Do not change the message before the future is done.
        A send cannot be taken back: `cancel()` does nothing. The call waits only while more than `max_in_flight` messages
        are in flight. Functions of `add_done_callback` are called in the background thread and must not block. `stop` lets
        these sends finish like all others.
        """
        thread = self._checked()
        pending: Pending[SendResult] = Pending(thread)
        thread.soon(pending.begin, lambda: self._core.send(message, queue, timeout_seconds=timeout))
        self._window.add(pending)
        return pending

    def send_by_key(
        self,
        message: Message,
        key: Key,
        selector: QueueSelector[Key] = select_by_hash,
        *,
        timeout: float | None = None,
    ) -> SendResult:
        """Send to the queue that the selector takes for `key`: messages of one key stay in order in one queue.

        The selector is called in the background thread and must not block.
        """
        return self._ask(lambda: self._core.send_by_key(message, key, selector, timeout_seconds=timeout), timeout)

    def send_batch(
        self, messages: Iterable[Message], queue: MessageQueue | None = None, *, timeout: float | None = None
    ) -> SendResult:
        """Send several messages of one topic in one request, to one queue."""
        batch = list(messages)
        return self._ask(lambda: self._core.send_batch(batch, queue, timeout_seconds=timeout), timeout)

    def send_batches(
        self, messages: Iterable[Message], queue: MessageQueue | None = None, *, timeout: float | None = None
    ) -> list[SendResult]:
        """Send many messages of one topic, in order, in batches of at most `max_message_size`; return a result per batch.

        `timeout` is for each batch. If a batch after the first one fails, raises BatchIncomplete, which has the results so
        far and the messages that are left; else raises as `send_batch` does.
        """
        batch = list(messages)
        return self._call(lambda: self._core.send_batches(batch, queue, timeout_seconds=timeout))

    def send_one_way(
        self, message: Message, queue: MessageQueue | None = None, *, timeout: float | None = None
    ) -> None:
        """Send without an answer. Returns when the message is passed to the connection, which does not mean that it arrives."""
        self._call(lambda: self._core.send_one_way(message, queue), timeout)

    def request(
        self,
        message: Message,
        queue: MessageQueue | None = None,
        *,
        key: Key | None = None,
        selector: QueueSelector[Key] = select_by_hash,
        timeout: float = 3.0,
    ) -> MessageExt:
        """Send a message and return its consumer's reply; both have `timeout` seconds together.

        The message goes to `queue`, or to the queue that `selector` takes for `key`, or to the topic's queues in turn.
        Raises as `send` does, and RequestTimeout. The consumer replies by sending `reply_message(...)`.
        """
        return self._ask(
            lambda: self._core.request(message, queue, key=key, selector=selector, timeout_seconds=timeout), timeout
        )

    def recall(self, topic: str, handle: str, *, timeout: float | None = None) -> str:
        """Recall a message that waits for its delivery time, by the `recall_handle` of its SendResult; return its id.

        Raises MessageIllegal for a malformed handle, NoRoute, BrokerError (refused, or too late) or RemotingError.
        """
        return self._call(lambda: self._core.recall(topic, handle), timeout)

    def publish_queues(self, topic: str, *, timeout: float | None = None) -> tuple[MessageQueue, ...]:
        """Return the writable queues of a topic. The order is the same for every client."""
        return self._call(lambda: self._core.publish_queues(topic), timeout)


class TransactionProducer(producers.TransactionProducer[MQClient, Callable[[MessageExt], TransactionState]], Producer):
    """A producer of half messages, which its group commits or rolls back. Brokers ask `check` about undecided ones.

    `check` is a function, which is called in a thread of a pool.
    """

    def _wrapped(self, check: Callable[[MessageExt], TransactionState]) -> Check:
        in_thread = threads_of(self._reactor)
        return functools.wraps(check)(lambda message: in_thread(check, message))

    def send_in_transaction(
        self,
        message: SentT,
        execute: Callable[[SentT], TransactionState],
        *,
        timeout: float | None = None,
    ) -> TransactionResult:
        """Store the message at the broker, run `execute` in this thread, and send its decision to the broker.

        Raises as `send` does; then `execute` was not called. An error in `execute` is in the result: the broker asks `check`
        later. `timeout` is for the send only.
        """
        thread = self._checked()
        call: Call[TransactionResult] = Call(thread)

        @functools.wraps(execute)
        def in_this_thread(message: SentT) -> defer.Deferred[TransactionState]:
            return call.in_caller(lambda: execute(message))

        thread.soon(
            call.begin, lambda: self._core.send_in_transaction(message, in_this_thread, timeout_seconds=timeout)
        )
        return call.wait(None)
