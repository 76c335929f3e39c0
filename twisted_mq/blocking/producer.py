"""Producers in plain calls.

with Producer("127.0.0.1:9876", group="orders") as producer:
    result = producer.send(Message("Orders", b"hello", tags="new"), timeout=3)

`timeout` is in seconds, of the whole call; where it is over the message may have been stored all the same.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from typing import TypeVar

from twisted.internet import defer

from twisted_mq.blocking.calls import Call
from twisted_mq.blocking.mq_client import Member, MQClient
from twisted_mq.blocking.pending import Pending, Window
from twisted_mq.client.core.argument_checks import check_function
from twisted_mq.client.core.client_metrics import ProducerMetrics
from twisted_mq.client.core.client_options import ClientOptions
from twisted_mq.client.core.requirements import Require
from twisted_mq.client.producing import producer, transaction_producer
from twisted_mq.client.producing.producer import QueueSelector, select_by_hash
from twisted_mq.client.producing.producer_options import ProducerOptions
from twisted_mq.client.producing.send_result import SendResult
from twisted_mq.client.producing.transaction_producer import TransactionResult, TransactionState
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.messages.message import Message, MessageExt
from twisted_mq.reactor_threads import threads_of

Key = TypeVar("Key")
SentT = TypeVar("SentT", bound=Message)


class Producer(Member):
    """A producer of one group, for any number of threads."""

    _core: producer.Producer

    def __init__(
        self,
        namesrv: str | Sequence[str] | None = None,
        *,
        group: str,
        options: ProducerOptions | None = None,
        client: MQClient | None = None,
        client_options: ClientOptions | None = None,
        namespace: str = "",
        instance_name: str | None = None,
        ip: str | None = None,
    ) -> None:
        """Give it the name servers' addresses or an MQClient to share; without both, NAMESRV_ADDR says where they are.

        Raises ClientOptionIllegal for a bad group or address; nothing is connected before `start`.
        """
        super().__init__(client)
        self._core = producer.Producer(
            self._reactor, group, namesrv, client=self._shared, options=options,
            client_options=client_options, namespace=namespace, instance_name=instance_name, ip=ip,
        )  # fmt: skip
        self._window = Window(self._core.options.max_in_flight)

    @property
    def group(self) -> str:
        """As the brokers know it."""
        return self._core.group

    @property
    def metrics(self) -> ProducerMetrics:
        """What was sent, failed, tried again, and is in flight."""
        return self._core.metrics

    def _start(self, require: Require | None) -> defer.Deferred[None]:
        return self._core.start(require=require)

    def _stop(self, finish_seconds: float) -> defer.Deferred[None]:
        return self._core.stop(finish_seconds)

    def send(self, message: Message, queue: MessageQueue | None = None, *, timeout: float | None = None) -> SendResult:
        """Send one message, to `queue` if given (then without another try), else round the topic's queues.

        Raises MessageIllegal, NoRoute, SendFailed (all attempts failed), BrokerError (refused), RemotingError (no
        answer from the given queue's broker), CallTimedOut or ClientStateError.
        """
        return self._ask(lambda: self._core.send(message, queue, timeout_seconds=timeout), timeout)

    def send_async(
        self, message: Message, queue: MessageQueue | None = None, *, timeout: float | None = None
    ) -> Future[SendResult]:
        """As `send`, without waiting for the answer: many messages of one thread are under way at the same time.

        The future's `result()` is what `send` returns, or raises. The message must stay as it is until the future is done,
        and nobody takes it back: `cancel()` does nothing. Waits only while more are under way than `max_in_flight` says.
        Functions of `add_done_callback` are called in the background thread, and must not block. A producer that stops
        lets them end as it does all sends.
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
        """Send to the queue the selector takes for `key`: messages of one key stay in order in one queue.

        The selector is called in the background thread, and must not block.
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
        """Send many messages of one topic, in order, in batches of at most `max_message_size`; one result a batch.

        `timeout` is for each of them. Raises BatchIncomplete, which has the results and the messages that are left,
        where a batch after the first one fails, else as `send_batch` does.
        """
        batch = list(messages)
        return self._call(lambda: self._core.send_batches(batch, queue, timeout_seconds=timeout))

    def send_one_way(
        self, message: Message, queue: MessageQueue | None = None, *, timeout: float | None = None
    ) -> None:
        """Send without an answer: returns when the message is handed to the connection, which promises nothing."""
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
        """Send a message and wait for its consumer's reply, `timeout` seconds for both together.

        It goes to `queue`, or to the one that `selector` takes for `key`, or round the topic's queues. Raises as `send`
        does, and RequestTimeout. The reply comes from whoever sends `reply_message(...)` for what it consumed.
        """
        return self._ask(
            lambda: self._core.request(message, queue, key=key, selector=selector, timeout_seconds=timeout), timeout
        )

    def recall(self, topic: str, handle: str, *, timeout: float | None = None) -> str:
        """Call back a message that waits for its time, by the `recall_handle` of its SendResult; return its id.

        Raises MessageIllegal for what is no handle, NoRoute, BrokerError (refused, or too late) or RemotingError.
        """
        return self._call(lambda: self._core.recall(topic, handle), timeout)

    def publish_queues(self, topic: str, *, timeout: float | None = None) -> tuple[MessageQueue, ...]:
        """The queues of a topic that take messages, in the order every client has them."""
        return self._call(lambda: self._core.publish_queues(topic), timeout)


class TransactionProducer(Producer):
    """A producer whose group decides about its messages. `check` is asked about those that nobody has decided."""

    _core: transaction_producer.TransactionProducer

    def __init__(
        self,
        namesrv: str | Sequence[str] | None = None,
        *,
        group: str,
        check: Callable[[MessageExt], TransactionState],
        options: ProducerOptions | None = None,
        client: MQClient | None = None,
        client_options: ClientOptions | None = None,
        namespace: str = "",
        instance_name: str | None = None,
        ip: str | None = None,
    ) -> None:
        """As Producer; `check` gets the message as it is stored, in a thread of the pool."""
        check_function(check, "check", transaction_producer.CHECK_EXAMPLE)
        Member.__init__(self, client)
        in_thread = threads_of(self._reactor)
        self._core = transaction_producer.TransactionProducer(
            self._reactor, group, namesrv, check=functools.wraps(check)(lambda message: in_thread(check, message)),
            client=self._shared, options=options,
            client_options=client_options, namespace=namespace, instance_name=instance_name, ip=ip,
        )  # fmt: skip
        self._window = Window(self._core.options.max_in_flight)

    def send_in_transaction(
        self,
        message: SentT,
        execute: Callable[[SentT], TransactionState],
        *,
        timeout: float | None = None,
    ) -> TransactionResult:
        """Store the message at the broker, run `execute` in this thread, and tell the broker what it returned.

        Raises as `send` does, then nothing was executed. An error in `execute` is in the result: the broker asks later.
        `timeout` is for the send alone.
        """
        call: Call[TransactionResult] = self._new_call()

        @functools.wraps(execute)
        def in_this_thread(message: SentT) -> defer.Deferred[TransactionState]:
            return call.in_caller(lambda: execute(message))

        call.begin(lambda: self._core.send_in_transaction(message, in_this_thread, timeout_seconds=timeout))
        return call.wait(None)
