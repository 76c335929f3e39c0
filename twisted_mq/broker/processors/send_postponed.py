"""Takes sends of messages that are not plain: those that wait, for their time or the end of their transaction, and those with
a priority.

Apache: HookUtils.checkInnerBatch, handleScheduleMessage, SendMessageProcessor.sendMessage.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from twisted_mq.broker.processors.send_batch import check_inner_number
from twisted_mq.broker.schedule.postpone import POSTPONING, Postponement
from twisted_mq.broker.transaction.half_messages import is_half
from twisted_mq.broker.transaction.transaction_service import TransactionService
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.messages.message_type import PRIORITY, message_type, priority_of
from twisted_mq.protocol.names.recall_handle import handle_of
from twisted_mq.protocol.names.system_topics import HALF_TOPIC
from twisted_mq.protocol.text.properties import (
    BROKERS_PROPERTIES,
    PROPERTY_CLUSTER,
    PROPERTY_INNER_NUM,
    PROPERTY_ORDERED,
    PROPERTY_PRIORITY,
    PROPERTY_TRANSACTION_PREPARED,
    delete_property,
)
from twisted_mq.storage.interfaces import InnerMessage

UNUSUAL = POSTPONING | BROKERS_PROPERTIES | {
    PROPERTY_TRANSACTION_PREPARED, PROPERTY_CLUSTER, PROPERTY_INNER_NUM, PROPERTY_ORDERED, PROPERTY_PRIORITY,
}  # fmt: skip
"""Properties that a plain message does not have: of messages that wait, are ordered or have a priority, and those that the
broker sets itself.
"""

UNUSUAL_IN_ORDER = UNUSUAL - {PROPERTY_ORDERED}
"""The same for messages to ordered topics."""

OUT_OF_ORDER = POSTPONING | {PROPERTY_TRANSACTION_PREPARED}


@attrs.frozen(eq=False)
class PostponedSends:
    """Takes the postponed sends of one broker, which gives every message the properties `always`."""

    transactions: TransactionService
    postponement: Postponement
    always: Mapping[str, str]
    broker_name: str
    never_sent: frozenset[str] = attrs.field(init=False)
    """The properties that only the broker sets."""

    @never_sent.default
    def _never_sent(self) -> frozenset[str]:
        return BROKERS_PROPERTIES.union(self.always)

    def cleaned(
        self, text: str, properties: dict[str, str], sys_flag: int, body: bytes, *, order_mode: str | None = None
    ) -> str:
        """Return unusual properties without those that the broker sets itself. Raises BrokerError, RecordError.

        A priority counts only for messages that neither wait nor have an order, as in 5.4; others lose it.
        TIMER_OUT_MS stays: it marks a message that has waited already, so that a copy that a consumer sends on is
        delivered at once.
        """
        check_order(properties, order_mode)
        check_inner_number(properties, sys_flag, body)
        dropped = self.never_sent & properties.keys()
        if PROPERTY_PRIORITY in properties and (order_mode is not None or message_type(properties) != PRIORITY):
            dropped |= {PROPERTY_PRIORITY}
        for name in dropped:
            del properties[name]
            text = delete_property(text, name)
        return text

    def put_aside(self, message: InnerMessage) -> InnerMessage:
        """Return the message as it is stored while it waits for its time or its transaction, if it has to. Raises BrokerError."""
        if is_half(message.property_map, message.reconsume_times):
            return self.transactions.prepare(message)
        return self.postponement.apply(message)

    def stored(self, message: InnerMessage) -> str | None:
        """Count a stored half message as prepared. Returns the handle to recall a message that waits, or None."""
        if message.topic is HALF_TOPIC:
            self.transactions.prepared(message)
        return handle_of(message.property_map, self.broker_name)


def queue_by_priority(properties: Mapping[str, str], asked: int, write_queue_nums: int) -> int:
    """Return the queue whose number is the message's priority, the last one for a higher priority; without one the asked."""
    priority = priority_of(properties)
    return asked if priority is None else min(priority, max(1, write_queue_nums) - 1)


def check_order(properties: Mapping[str, str], order_mode: str | None) -> None:
    """Raise BrokerError for a message that waits, sent to an ordered topic, and for an ordered one sent to another topic."""
    if order_mode is None:
        if PROPERTY_ORDERED in properties:
            remark = f"the topic is not ordered, but {PROPERTY_ORDERED} is {properties[PROPERTY_ORDERED]}: send with a Producer"
            raise BrokerError(ResponseCode.INVALID_PARAMETER, remark)
        return
    waits = sorted(OUT_OF_ORDER & properties.keys())
    if waits:
        remark = (
            f"the topic is ordered, and a delayed message would break its order: {waits[0]} is {properties[waits[0]]}"
        )
        raise BrokerError(ResponseCode.NO_PERMISSION, remark)
