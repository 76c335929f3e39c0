"""Sends messages that become visible only after a local transaction commits (Apache: TransactionMQProducer).

    async def book(message):
        await bank.transfer(...)
        return TransactionState.COMMIT

    producer = TransactionProducer(reactor, "g", "127.0.0.1:9876", check=was_booked)
    await producer.start()
    result = await producer.send_in_transaction(Message(topic="T", body=b"booked"), book)

The broker keeps the message back until the producer decides. If no decision arrives, it asks any producer of the group:
`check` gets the message as it is stored, and its answer decides. Both functions may return an awaitable.
"""

from __future__ import annotations

import enum
import inspect
import os
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias, TypeVar

import attrs
from twisted.internet import defer, interfaces

from twisted_mq.client.core.argument_checks import check_function
from twisted_mq.client.core.client_options import ClientOptions
from twisted_mq.client.core.errors import BrokerGone, ClientOptionIllegal
from twisted_mq.client.core.mq_client import MQClient
from twisted_mq.client.producing.producer import Producer
from twisted_mq.client.producing.producer_options import ProducerOptions
from twisted_mq.client.producing.send_result import SendResult, SendStatus
from twisted_mq.logs import Logger
from twisted_mq.protocol.codes import RequestCode
from twisted_mq.protocol.flags import MessageSysFlag
from twisted_mq.protocol.headers import CheckTransactionStateRequestHeader, EndTransactionRequestHeader
from twisted_mq.protocol.layouts.message_id import decode_offset_message_id
from twisted_mq.protocol.messages.message import Message, MessageExt
from twisted_mq.protocol.names.namespaces import without_namespace
from twisted_mq.protocol.text.properties import (
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_PRODUCER_GROUP,
    PROPERTY_TRANSACTION_PREPARED,
)
from twisted_mq.protocol.wire.command import RemotingCommand
from twisted_mq.protocol.wire.header_codec import encode_header
from twisted_mq.remoting.client import Connect
from twisted_mq.remoting.errors import RemotingError


class TransactionState(enum.Enum):
    """The outcome of a local transaction. After UNKNOWN the broker asks later (Apache: LocalTransactionState)."""

    COMMIT = MessageSysFlag.TRANSACTION_COMMIT_TYPE
    ROLLBACK = MessageSysFlag.TRANSACTION_ROLLBACK_TYPE
    UNKNOWN = MessageSysFlag.TRANSACTION_NOT_TYPE

    @property
    def java_name(self) -> str:
        """The name of Apache's constant, which traces use."""
        return "UNKNOW" if self is TransactionState.UNKNOWN else f"{self.name}_MESSAGE"


MessageT = TypeVar("MessageT", bound=Message | MessageExt)
SentT = TypeVar("SentT", bound=Message)

Decision = TransactionState | Awaitable[TransactionState]
Execute: TypeAlias = Callable[[SentT], Decision]
Check = Callable[[MessageExt], Decision]


CHECK_EXAMPLE = "def check(message), which returns TransactionState.COMMIT or ROLLBACK"


@attrs.frozen
class TransactionResult:
    """The broker's answer, the decision, and the error of a local transaction that failed."""

    sent: SendResult
    state: TransactionState
    error: Exception | None = None


class TransactionProducer(Producer):
    """A producer with local transactions. `check` is asked about messages that are still undecided."""

    log = Logger()

    def __init__(
        self,
        reactor: interfaces.IReactorTime,
        group: str,
        namesrv: str | Sequence[str] | None = None,
        *,
        check: Check,
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
        """Create a producer, as Producer, with the function that returns the state of an undecided message's transaction."""
        super().__init__(
            reactor, group, namesrv, client=client, options=options, client_options=client_options,
            namespace=namespace, instance_name=instance_name, ip=ip, connect=connect, rng=rng, get_pid=get_pid,
        )  # fmt: skip
        check_function(check, "check", CHECK_EXAMPLE)
        self._check = check

    def send_in_transaction(
        self, message: SentT, execute: Execute[SentT], *, timeout_seconds: float | None = None
    ) -> defer.Deferred[TransactionResult]:
        """Store the message at the broker, run `execute`, and send its return value to the broker as the decision.

        Fails as `send` does; then nothing was executed. An error in `execute` is in the result: the broker asks later.
        A message with a delay level cannot be transactional: the level is left out, as in Apache.
        """
        return self._calls.run(self._send_in_transaction(message, execute, timeout_seconds))

    async def _send_in_transaction(
        self, message: SentT, execute: Execute[SentT], timeout_seconds: float | None
    ) -> TransactionResult:
        properties = {**message.properties, PROPERTY_TRANSACTION_PREPARED: "true", PROPERTY_PRODUCER_GROUP: self.group}
        properties.pop(PROPERTY_DELAY_TIME_LEVEL, None)
        half = Message(message.topic, message.body, message.flag, properties)
        sent = await self._send(half, None, timeout_seconds)
        state, error = TransactionState.ROLLBACK, None
        if sent.status is SendStatus.SEND_OK:
            state, error = await self._decide(execute, message)
        await self._end(message, sent, state, error)
        return TransactionResult(sent, state, error)

    async def _decide(
        self, function: Callable[[MessageT], Decision], message: MessageT
    ) -> tuple[TransactionState, Exception | None]:
        try:
            decision = function(message)
            return _checked(await decision if inspect.isawaitable(decision) else decision, function), None
        except Exception as error:
            self.log.failure("local transaction failed, the broker will ask about it: group={group}", group=self.group)
            return TransactionState.UNKNOWN, error

    async def _end(self, message: Message, sent: SendResult, state: TransactionState, error: Exception | None) -> None:
        """Send the decision one-way, as in Apache: if it does not arrive, the broker asks."""
        placed = self.client.routes.placed(sent.queue)
        header = EndTransactionRequestHeader(
            topic=placed.topic,
            producer_group=self.group,
            tran_state_table_offset=sent.queue_offset,
            commit_log_offset=decode_offset_message_id(sent.offset_msg_id)[2],
            commit_or_rollback=state.value,
            msg_id=sent.msg_id,
            transaction_id=sent.transaction_id,
            bname=placed.broker_name,
        )
        if self._traces is not None:
            broker = self.client.routes.master_now(placed.broker_name) or ""
            self._traces.decided(message, sent.msg_id, broker, state.java_name, checked=False)
        try:
            address = await self.client.routes.master(placed.broker_name, placed.topic)
            await self.client.remoting.invoke_one_way(address, _request(header, error))
        except (RemotingError, BrokerGone) as failed:
            self.log.warn(
                "transaction not ended, the broker will ask about it: group={group} key={key} {error}",
                group=self.group, key=sent.msg_id, error=failed,
            )  # fmt: skip

    async def check_transaction(
        self, header: CheckTransactionStateRequestHeader, message: MessageExt
    ) -> RemotingCommand:
        """Return the answer to a broker that asks about a message."""
        message = attrs.evolve(message, topic=without_namespace(self._namespace, message.topic))
        state, error = await self._decide(self._check, message)
        if self._traces is not None:
            key = message.unique_key or header.msg_id or ""
            self._traces.decided(message, key, message.store_host, state.java_name, checked=True)
        return _request(
            EndTransactionRequestHeader(
                topic=header.topic,
                producer_group=self.group,
                tran_state_table_offset=header.tran_state_table_offset,
                commit_log_offset=header.commit_log_offset,
                commit_or_rollback=state.value,
                from_transaction_check=True,
                msg_id=message.unique_key or header.msg_id or "",
                transaction_id=header.transaction_id,
                bname=header.bname,
            ),
            error,
        )


def _checked(decision: object, function: Callable[..., object]) -> TransactionState:
    """Return the decision. Raises ClientOptionIllegal for any other value, such as None of a function without `return`."""
    if isinstance(decision, TransactionState):
        return decision
    name = getattr(function, "__qualname__", None) or repr(function)
    raise ClientOptionIllegal(
        f"transaction function {name} returned {decision!r}; return TransactionState.COMMIT, ROLLBACK or UNKNOWN"
    )


def _request(header: EndTransactionRequestHeader, error: Exception | None) -> RemotingCommand:
    request = RemotingCommand.request(RequestCode.END_TRANSACTION, encode_header(header))
    if error is not None:
        request.remark = f"{type(error).__name__}: {error}"
    return request
