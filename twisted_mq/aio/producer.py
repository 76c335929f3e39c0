"""Producers for asyncio.

async with Producer("127.0.0.1:9876", group="orders") as producer:
    result = await producer.send(Message("Orders", b"hello", tags="new"))

A send that is cancelled may have been stored all the same.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from twisted.internet import defer

from twisted_mq.aio.awaiting import deferred_of, result_of
from twisted_mq.aio.mq_client import Member, MQClient
from twisted_mq.client.core.argument_checks import check_function
from twisted_mq.client.core.client_metrics import ProducerMetrics
from twisted_mq.client.core.client_options import ClientOptions
from twisted_mq.client.core.requirements import Require
from twisted_mq.client.producing import producer, transaction_producer
from twisted_mq.client.producing.producer import QueueSelector, select_by_hash
from twisted_mq.client.producing.producer_options import ProducerOptions
from twisted_mq.client.producing.send_result import SendResult
from twisted_mq.client.producing.transaction_producer import Check, Decision, Execute, TransactionResult
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.messages.message import Message, MessageExt

Key = TypeVar("Key")
MessageT = TypeVar("MessageT", bound=Message | MessageExt)
SentT = TypeVar("SentT", bound=Message)


class Producer(Member):
    """A producer of one group."""

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

    async def send(
        self, message: Message, queue: MessageQueue | None = None, *, timeout: float | None = None
    ) -> SendResult:
        """Send one message, to `queue` if given (then without another try), else round the topic's queues.

        Raises MessageIllegal, NoRoute, SendFailed (all attempts failed), BrokerError (refused), RemotingError (no
        answer from the given queue's broker) or ClientStateError. Many at a time: asyncio.gather, or a TaskGroup.
        """
        loop = self._reactor.check_loop()
        return await result_of(self._core.send(message, queue, timeout_seconds=timeout), loop)

    async def send_by_key(
        self,
        message: Message,
        key: Key,
        selector: QueueSelector[Key] = select_by_hash,
        *,
        timeout: float | None = None,
    ) -> SendResult:
        """Send to the queue the selector takes for `key`: messages of one key stay in order in one queue."""
        loop = self._reactor.check_loop()
        return await result_of(self._core.send_by_key(message, key, selector, timeout_seconds=timeout), loop)

    async def send_batch(
        self, messages: Iterable[Message], queue: MessageQueue | None = None, *, timeout: float | None = None
    ) -> SendResult:
        """Send several messages of one topic in one request, to one queue."""
        loop = self._reactor.check_loop()
        return await result_of(self._core.send_batch(messages, queue, timeout_seconds=timeout), loop)

    async def send_batches(
        self, messages: Iterable[Message], queue: MessageQueue | None = None, *, timeout: float | None = None
    ) -> list[SendResult]:
        """Send many messages of one topic, in order, in batches of at most `max_message_size`; one result a batch.

        `timeout` is for each of them. Raises BatchIncomplete, which has the results and the messages that are left,
        where a batch after the first one fails, else as `send_batch` does.
        """
        loop = self._reactor.check_loop()
        return await result_of(self._core.send_batches(messages, queue, timeout_seconds=timeout), loop)

    async def send_one_way(self, message: Message, queue: MessageQueue | None = None) -> None:
        """Send without an answer: returns when the message is handed to the connection, which promises nothing."""
        loop = self._reactor.check_loop()
        await result_of(self._core.send_one_way(message, queue), loop)

    async def request(
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
        loop = self._reactor.check_loop()
        return await result_of(
            self._core.request(message, queue, key=key, selector=selector, timeout_seconds=timeout), loop
        )

    async def recall(self, topic: str, handle: str) -> str:
        """Call back a message that waits for its time, by the `recall_handle` of its SendResult; return its id.

        Raises MessageIllegal for what is no handle, NoRoute, BrokerError (refused, or too late) or RemotingError.
        """
        loop = self._reactor.check_loop()
        return await result_of(self._core.recall(topic, handle), loop)

    async def publish_queues(self, topic: str) -> tuple[MessageQueue, ...]:
        """The queues of a topic that take messages, in the order every client has them."""
        loop = self._reactor.check_loop()
        return await result_of(self._core.publish_queues(topic), loop)


class TransactionProducer(Producer):
    """A producer whose group decides about its messages. `check` is asked about those that nobody has decided."""

    _core: transaction_producer.TransactionProducer

    def __init__(
        self,
        namesrv: str | Sequence[str] | None = None,
        *,
        group: str,
        check: Check,
        options: ProducerOptions | None = None,
        client: MQClient | None = None,
        client_options: ClientOptions | None = None,
        namespace: str = "",
        instance_name: str | None = None,
        ip: str | None = None,
    ) -> None:
        """As Producer; `check` is a function or an `async def` that gets the message as it is stored."""
        check_function(check, "check", transaction_producer.CHECK_EXAMPLE)
        Member.__init__(self, client)
        self._core = transaction_producer.TransactionProducer(
            self._reactor, group, namesrv, check=_in_loop(check), client=self._shared, options=options,
            client_options=client_options, namespace=namespace, instance_name=instance_name, ip=ip,
        )  # fmt: skip

    async def send_in_transaction(
        self, message: SentT, execute: Execute[SentT], *, timeout: float | None = None
    ) -> TransactionResult:
        """Store the message at the broker, run `execute`, and tell the broker what it returned.

        Raises as `send` does, then nothing was executed. An error in `execute` is in the result: the broker asks later.
        Cancelled meanwhile, so is `execute`; the broker asks `check` then.
        """
        loop = self._reactor.check_loop()
        return await result_of(
            self._core.send_in_transaction(message, _in_loop(execute), timeout_seconds=timeout), loop
        )


def _in_loop(function: Callable[[MessageT], Decision]) -> Callable[[MessageT], Decision]:
    """The user's function; what it awaits, it awaits as a task of the loop."""

    @functools.wraps(function)
    def decide(message: MessageT) -> Decision:
        decision = function(message)
        return deferred_of(decision) if inspect.isawaitable(decision) else decision

    return decide
