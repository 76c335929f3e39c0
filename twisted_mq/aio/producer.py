"""Producers for asyncio.

async with Producer("127.0.0.1:9876", group="orders") as producer:
    result = await producer.send(Message("Orders", b"hello", tags="new"))

The message of a cancelled send may still be stored.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import TypeVar

from twisted_mq.aio.awaiting import deferred_of, result_of
from twisted_mq.aio.mq_client import ClientMember, MQClient
from twisted_mq.client.faces import producers
from twisted_mq.client.producing.producer import QueueSelector, select_by_hash
from twisted_mq.client.producing.send_result import SendResult
from twisted_mq.client.producing.transaction_producer import Check, Decision, Execute, TransactionResult
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.messages.message import Message, MessageExt

Key = TypeVar("Key")
MessageT = TypeVar("MessageT", bound=Message | MessageExt)
SentT = TypeVar("SentT", bound=Message)


class Producer(producers.Producer[MQClient], ClientMember):
    """A producer of one group."""

    async def send(
        self, message: Message, queue: MessageQueue | None = None, *, timeout: float | None = None
    ) -> SendResult:
        """Send one message: to `queue` if given (without retries), else to the topic's queues in turn.

        Raises MessageIllegal, NoRoute, SendFailed (all attempts failed), BrokerError (refused), RemotingError (no
        answer from the given queue's broker) or ClientStateError. To send many at a time, use asyncio.gather or a TaskGroup.
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
        """Send to the queue that the selector takes for `key`: messages of one key stay in order in one queue."""
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
        """Send many messages of one topic, in order, in batches of at most `max_message_size`; return a result per batch.

        `timeout` is for each batch. If a batch after the first one fails, raises BatchIncomplete, which has the results so
        far and the messages that are left; else raises as `send_batch` does.
        """
        loop = self._reactor.check_loop()
        return await result_of(self._core.send_batches(messages, queue, timeout_seconds=timeout), loop)

    async def send_one_way(self, message: Message, queue: MessageQueue | None = None) -> None:
        """Send without an answer. Returns when the message is passed to the connection, which does not mean that it arrives."""
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
        """Send a message and return its consumer's reply; both have `timeout` seconds together.

        The message goes to `queue`, or to the queue that `selector` takes for `key`, or to the topic's queues in turn.
        Raises as `send` does, and RequestTimeout. The consumer replies by sending `reply_message(...)`.
        """
        loop = self._reactor.check_loop()
        return await result_of(
            self._core.request(message, queue, key=key, selector=selector, timeout_seconds=timeout), loop
        )

    async def recall(self, topic: str, handle: str) -> str:
        """Recall a message that waits for its delivery time, by the `recall_handle` of its SendResult; return its id.

        Raises MessageIllegal for a malformed handle, NoRoute, BrokerError (refused, or too late) or RemotingError.
        """
        loop = self._reactor.check_loop()
        return await result_of(self._core.recall(topic, handle), loop)

    async def publish_queues(self, topic: str) -> tuple[MessageQueue, ...]:
        """Return the writable queues of a topic. The order is the same for every client."""
        loop = self._reactor.check_loop()
        return await result_of(self._core.publish_queues(topic), loop)


class TransactionProducer(producers.TransactionProducer[MQClient, Check], Producer):
    """A producer of half messages, which its group commits or rolls back. Brokers ask `check` about undecided ones.

    `check` is a function or an `async def`.
    """

    def _wrapped(self, check: Check) -> Check:
        return _in_loop(check)

    async def send_in_transaction(
        self, message: SentT, execute: Execute[SentT], *, timeout: float | None = None
    ) -> TransactionResult:
        """Store the message at the broker, run `execute`, and send its decision to the broker.

        Raises as `send` does; then `execute` was not called. An error in `execute` is in the result: the broker asks `check`
        later. Cancelling the call cancels `execute`, too; then the broker asks `check`.
        """
        loop = self._reactor.check_loop()
        return await result_of(
            self._core.send_in_transaction(message, _in_loop(execute), timeout_seconds=timeout), loop
        )


def _in_loop(function: Callable[[MessageT], Decision]) -> Callable[[MessageT], Decision]:
    """Wrap a user's function so that its awaitable, if it returns one, runs as a task of the loop."""

    @functools.wraps(function)
    def decide(message: MessageT) -> Decision:
        decision = function(message)
        return deferred_of(decision) if inspect.isawaitable(decision) else decision

    return decide
