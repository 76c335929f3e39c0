"""Answers to brokers for popped messages (Apache: DefaultMQPushConsumerImpl.ackAsync, changePopInvisibleTimeAsync)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from twisted_mq.client.core.errors import EXPECTED_ERRORS
from twisted_mq.client.core.mq_client import MQClient
from twisted_mq.logs import Logger
from twisted_mq.protocol.bodies import MessageQueue
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.protocol.names.namespaces import with_namespace
from twisted_mq.protocol.names.pop_receipt import Receipt
from twisted_mq.protocol.names.pop_topics import marked_topic
from twisted_mq.protocol.text.properties import PROPERTY_POP_CK

DELAY_SECONDS = (10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200)
"""popDelayLevel: how long a refused message stays invisible, by the number of tries."""

DEAD_LETTER = -1
"""Delay level of a message that becomes a dead letter."""

SendBack = Callable[[MessageExt, MessageQueue, int], Awaitable[None]]


def receipt_of(message: MessageExt) -> Receipt:
    """Return the message's receipt. Raises ReceiptError."""
    return Receipt.parse(message.properties.get(PROPERTY_POP_CK, ""))


def retry_seconds(message: MessageExt, delay_level: int) -> int:
    """Return when a refused message comes again; for level 0, by the number of tries."""
    return DELAY_SECONDS[min(delay_level or message.reconsume_times, len(DELAY_SECONDS) - 1)]


class PopAnswers:
    """Answers for the messages of one group. A failure is logged: the messages then come again by themselves."""

    log = Logger()

    def __init__(self, client: MQClient, group: str, most_tries: int, bury: SendBack, namespace: str = "") -> None:
        """`bury` makes a message a dead letter of the group, with that delay level. `namespace` was removed from topics."""
        self._client = client
        self._group = group
        self._most_tries = most_tries
        self._bury = bury
        self._namespace = namespace

    async def consumed(self, message: MessageExt) -> None:
        """Acknowledge the message: it never comes again."""
        await self._guarded(message, self._acknowledge(message))

    async def refused(self, message: MessageExt, queue: MessageQueue, delay_level: int) -> None:
        """Have the message come again later; after its last try, or by level -1, make it a dead letter (Apache's drops it)."""
        if delay_level == DEAD_LETTER or message.reconsume_times >= self._most_tries:
            await self._guarded(message, self._give_up(message, queue))
        else:
            await self._guarded(message, self._come_again(message, retry_seconds(message, delay_level)))

    async def _give_up(self, message: MessageExt, queue: MessageQueue) -> None:
        await self._bury(message, queue, DEAD_LETTER)
        await self._acknowledge(message)

    async def _acknowledge(self, message: MessageExt) -> None:
        receipt, topic, address = await self._place(message)
        await self._client.calls.acknowledge(address, self._group, topic, receipt)

    async def _come_again(self, message: MessageExt, seconds: int) -> None:
        receipt, topic, address = await self._place(message)
        await self._client.calls.change_invisible_time(address, self._group, topic, receipt, seconds * 1000)

    async def _place(self, message: MessageExt) -> tuple[Receipt, str, str]:
        """Return the receipt, the topic that the message was popped from (maybe its retry topic), and its broker's address."""
        receipt, topic = receipt_of(message), with_namespace(self._namespace, message.topic)
        queue = MessageQueue(topic, receipt.broker_name, receipt.queue_id)
        address = await self._client.routes.master_of(queue)
        return receipt, marked_topic(topic, self._group, receipt.mark), address

    async def _guarded(self, message: MessageExt, answer: Awaitable[None]) -> None:
        try:
            await answer
        except EXPECTED_ERRORS as error:
            self.log.warn(
                "popped message not acknowledged, it will be delivered again: group={group} message={id} {error}",
                group=self._group, id=message.unique_key or message.msg_id, error=error,
            )  # fmt: skip
