"""Makes the forms that a transactional message goes through (Apache: TransactionalMessageBridge, TransactionalMessageUtil).

    prepared    RMQ_SYS_TRANS_HALF_TOPIC, with REAL_TOPIC and REAL_QID: what a producer sent and consumers cannot see yet
    renewed     the same behind the others, because its producer was asked (TRANSACTION_CHECK_TIMES) or is not to be asked
                before its CHECK_IMMUNITY_TIME_IN_SECONDS (TRAN_PREPARED_QUEUE_OFFSET names the first one)
    committed   its real topic and queue, its preparedTransactionOffset the half message's physical offset
    discarded   TRANS_CHECK_MAX_TIME_TOPIC: asked about too often, or older than the log is kept

Each row has the form, then the message's topic and what marks it there.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from twisted_mq.broker.schedule.postpone import set_properties
from twisted_mq.broker.stored_message import StoredMessage
from twisted_mq.protocol.flags import MessageSysFlag, reset_transaction_value
from twisted_mq.protocol.names.system_topics import CHECK_MAX_TIME_TOPIC, HALF_TOPIC
from twisted_mq.protocol.text.java import parse_int, utf8
from twisted_mq.protocol.text.properties import (
    PROPERTY_CHECK_IMMUNITY_TIME_IN_SECONDS,
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_REAL_QUEUE_ID,
    PROPERTY_REAL_TOPIC,
    PROPERTY_TRANSACTION_CHECK_TIMES,
    PROPERTY_TRANSACTION_ID,
    PROPERTY_TRANSACTION_PREPARED,
    PROPERTY_TRANSACTION_PREPARED_QUEUE_OFFSET,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
    PROPERTY_WAIT_STORE_MSG_OK,
    encode_properties,
)
from twisted_mq.storage.interfaces import InnerMessage


def is_half(properties: Mapping[str, str], reconsume_times: int) -> bool:
    """Return True if a send begins a transaction; retries of clients before 4.6.1 carry the property without meaning it."""
    if properties.get(PROPERTY_TRANSACTION_PREPARED, "").lower() != "true":
        return False
    return not (reconsume_times > 0 and (parse_int(properties.get(PROPERTY_DELAY_TIME_LEVEL)) or 0) > 0)


def prepare(message: InnerMessage) -> InnerMessage:
    """Return the message, sent to the half topic."""
    unique_key = message.property_map.get(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX)
    added = {PROPERTY_REAL_TOPIC: message.topic, PROPERTY_REAL_QUEUE_ID: str(message.queue_id)}
    if unique_key:
        added[PROPERTY_TRANSACTION_ID] = unique_key
    if added.keys().isdisjoint(message.property_map) and message.properties.endswith(b"\x02"):
        message.properties += utf8(encode_properties(added))
        message.property_map.update(added)
    else:
        set_properties(message, added)
    message.sys_flag = reset_transaction_value(message.sys_flag, MessageSysFlag.TRANSACTION_NOT_TYPE)
    message.topic, message.queue_id = HALF_TOPIC, 0
    return message


def committed(half: StoredMessage, topic: str, queue_id: int) -> InnerMessage:
    """Return the message as consumers get it; all its properties stay, as in Apache."""
    message = half.copy_to(topic, queue_id)
    message.sys_flag = reset_transaction_value(message.sys_flag, MessageSysFlag.TRANSACTION_COMMIT_TYPE)
    message.prepared_transaction_offset = half.head.physical_offset
    return message


def checked_again(half: StoredMessage) -> InnerMessage:
    """Return the half message with one more check counted."""
    half.properties[PROPERTY_TRANSACTION_CHECK_TIMES] = str(check_times(half) + 1)
    return half.copy_to(HALF_TOPIC, half.head.queue_id)


def left_in_peace(half: StoredMessage) -> InnerMessage:
    """Return the half message moved on without a check.

    Apache counts this as a check all the same, so that a long immunity ends in a discarded message; here it does not.
    """
    half.properties.setdefault(PROPERTY_TRANSACTION_PREPARED_QUEUE_OFFSET, str(half.head.queue_offset))
    return half.copy_to(HALF_TOPIC, half.head.queue_id)


def discarded(half: StoredMessage) -> InnerMessage:
    """Return the message that is given up."""
    return half.copy_to(CHECK_MAX_TIME_TOPIC, 0)


def check_times(half: StoredMessage) -> int:
    """Return how often its producer was asked; 0 if that is not a number."""
    return parse_int(half.properties.get(PROPERTY_TRANSACTION_CHECK_TIMES)) or 0


def first_offset(half: StoredMessage) -> int | None:
    """Return the queue offset that a renewed message had first, by which its producer knows it."""
    return half.number(PROPERTY_TRANSACTION_PREPARED_QUEUE_OFFSET)


def has_immunity(half: StoredMessage) -> bool:
    """Return True if its producer set the time before which it must not be asked."""
    return bool(half.properties.get(PROPERTY_CHECK_IMMUNITY_TIME_IN_SECONDS))


def immunity_ms(half: StoredMessage, timeout_ms: int) -> int:
    """Return how long after its birth a message is not asked about: the producer's time, or else `timeout_ms`."""
    seconds = half.number(PROPERTY_CHECK_IMMUNITY_TIME_IN_SECONDS)
    return timeout_ms if seconds is None or seconds == -1 else seconds * 1000


def check_body(half: StoredMessage, queue_offset: int, physical_offset: int) -> bytes:
    """Return the record that a producer is asked with: the message under its real topic, at the renewed one's offsets."""
    topic, queue_id = half.real_place or (half.topic, half.head.queue_id)
    asked = attrs.evolve(half, properties={**half.properties, PROPERTY_WAIT_STORE_MSG_OK: "false"})
    return asked.encoded(topic, queue_id, queue_offset, physical_offset)
