"""Message properties: the reserved names (Apache: MessageConst) and their text form in records and requests.

The text form is `name 0x01 value 0x02` for each property; a reader takes it with or without the last 0x02.
"""

from __future__ import annotations

from collections.abc import ItemsView, Mapping
from typing import cast

from twisted_mq.protocol.text.java import from_utf8

NAME_VALUE_SEPARATOR = "\x01"
PROPERTY_SEPARATOR = "\x02"
KEY_SEPARATOR = " "
"""Between the keys inside the KEYS property."""

MAX_PROPERTIES_BYTES = 32767
"""The properties' length is a signed 16-bit number in a record."""

PROPERTY_KEYS = "KEYS"
PROPERTY_TAGS = "TAGS"
PROPERTY_WAIT_STORE_MSG_OK = "WAIT"
PROPERTY_DELAY_TIME_LEVEL = "DELAY"
PROPERTY_RETRY_TOPIC = "RETRY_TOPIC"
PROPERTY_REAL_TOPIC = "REAL_TOPIC"
PROPERTY_REAL_QUEUE_ID = "REAL_QID"
PROPERTY_TRANSACTION_PREPARED = "TRAN_MSG"
PROPERTY_PRODUCER_GROUP = "PGROUP"
PROPERTY_MIN_OFFSET = "MIN_OFFSET"
PROPERTY_MAX_OFFSET = "MAX_OFFSET"
PROPERTY_BUYER_ID = "BUYER_ID"
PROPERTY_ORIGIN_MESSAGE_ID = "ORIGIN_MESSAGE_ID"
PROPERTY_TRANSFER_FLAG = "TRANSFER_FLAG"
PROPERTY_CORRECTION_FLAG = "CORRECTION_FLAG"
PROPERTY_MQ2_FLAG = "MQ2_FLAG"
PROPERTY_RECONSUME_TIME = "RECONSUME_TIME"
PROPERTY_MSG_REGION = "MSG_REGION"
PROPERTY_TRACE_SWITCH = "TRACE_ON"
PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX = "UNIQ_KEY"
PROPERTY_EXTEND_UNIQ_INFO = "EXTEND_UNIQ_INFO"
PROPERTY_MAX_RECONSUME_TIMES = "MAX_RECONSUME_TIMES"
PROPERTY_CONSUME_START_TIMESTAMP = "CONSUME_START_TIME"
PROPERTY_INNER_NUM = "INNER_NUM"
PROPERTY_INNER_BASE = "INNER_BASE"
DUP_INFO = "DUP_INFO"
PROPERTY_CHECK_IMMUNITY_TIME_IN_SECONDS = "CHECK_IMMUNITY_TIME_IN_SECONDS"
PROPERTY_TRANSACTION_PREPARED_QUEUE_OFFSET = "TRAN_PREPARED_QUEUE_OFFSET"
PROPERTY_TRANSACTION_ID = "__transactionId__"
PROPERTY_TRANSACTION_CHECK_TIMES = "TRANSACTION_CHECK_TIMES"
PROPERTY_INSTANCE_ID = "INSTANCE_ID"
PROPERTY_CORRELATION_ID = "CORRELATION_ID"
PROPERTY_MESSAGE_REPLY_TO_CLIENT = "REPLY_TO_CLIENT"
PROPERTY_MESSAGE_TTL = "TTL"
PROPERTY_REPLY_MESSAGE_ARRIVE_TIME = "ARRIVE_TIME"
PROPERTY_PUSH_REPLY_TIME = "PUSH_REPLY_TIME"
PROPERTY_CLUSTER = "CLUSTER"
PROPERTY_MESSAGE_TYPE = "MSG_TYPE"
PROPERTY_POP_CK = "POP_CK"
PROPERTY_POP_CK_OFFSET = "POP_CK_OFFSET"
PROPERTY_FIRST_POP_TIME = "1ST_POP_TIME"
PROPERTY_SHARDING_KEY = "__SHARDINGKEY"
PROPERTY_FORWARD_QUEUE_ID = "PROPERTY_FORWARD_QUEUE_ID"
PROPERTY_REDIRECT = "REDIRECT"
PROPERTY_INNER_MULTI_DISPATCH = "INNER_MULTI_DISPATCH"
PROPERTY_INNER_MULTI_QUEUE_OFFSET = "INNER_MULTI_QUEUE_OFFSET"
PROPERTY_TRACE_CONTEXT = "TRACE_CONTEXT"
PROPERTY_TIMER_DELAY_SEC = "TIMER_DELAY_SEC"
PROPERTY_TIMER_DELIVER_MS = "TIMER_DELIVER_MS"
PROPERTY_BORN_HOST = "__BORNHOST"
PROPERTY_BORN_TIMESTAMP = "BORN_TIMESTAMP"
PROPERTY_TRANSIENT_PREFIX = "__RMQ.TRANSIENT."
PROPERTY_TRANSIENT_TOPIC_CONFIG = "__RMQ.TRANSIENT.TOPIC_SYS_FLAG"
PROPERTY_TRANSIENT_GROUP_CONFIG = "__RMQ.TRANSIENT.GROUP_SYS_FLAG"
PROPERTY_TIMER_ENQUEUE_MS = "TIMER_ENQUEUE_MS"
PROPERTY_TIMER_DEQUEUE_MS = "TIMER_DEQUEUE_MS"
PROPERTY_TIMER_ROLL_TIMES = "TIMER_ROLL_TIMES"
PROPERTY_TIMER_OUT_MS = "TIMER_OUT_MS"
PROPERTY_TIMER_DEL_UNIQKEY = "TIMER_DEL_UNIQKEY"
PROPERTY_TIMER_DELAY_LEVEL = "TIMER_DELAY_LEVEL"
PROPERTY_TIMER_DELAY_MS = "TIMER_DELAY_MS"
PROPERTY_CRC32 = "__CRC32#"
PROPERTY_DLQ_ORIGIN_TOPIC = "DLQ_ORIGIN_TOPIC"
PROPERTY_DLQ_ORIGIN_MESSAGE_ID = "DLQ_ORIGIN_MESSAGE_ID"
PROPERTY_PRIORITY = "_SYS_MSG_PRIORITY_"
"""The priority of a message, at least 0, since 5.4: see `protocol.messages.message_type`."""
PROPERTY_ORDERED = "ORDERED"
"""The mark of strictly ordered queues, which Apache does not have: see `protocol.messages.order_mark`."""

RESERVED_PROPERTIES = frozenset(
    {
        PROPERTY_KEYS,
        PROPERTY_TAGS,
        PROPERTY_WAIT_STORE_MSG_OK,
        PROPERTY_DELAY_TIME_LEVEL,
        PROPERTY_RETRY_TOPIC,
        PROPERTY_REAL_TOPIC,
        PROPERTY_REAL_QUEUE_ID,
        PROPERTY_TRANSACTION_PREPARED,
        PROPERTY_PRODUCER_GROUP,
        PROPERTY_MIN_OFFSET,
        PROPERTY_MAX_OFFSET,
        PROPERTY_BUYER_ID,
        PROPERTY_ORIGIN_MESSAGE_ID,
        PROPERTY_TRANSFER_FLAG,
        PROPERTY_CORRECTION_FLAG,
        PROPERTY_MQ2_FLAG,
        PROPERTY_RECONSUME_TIME,
        PROPERTY_MSG_REGION,
        PROPERTY_TRACE_SWITCH,
        PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
        PROPERTY_EXTEND_UNIQ_INFO,
        PROPERTY_MAX_RECONSUME_TIMES,
        PROPERTY_CONSUME_START_TIMESTAMP,
        DUP_INFO,
        PROPERTY_TRANSACTION_PREPARED_QUEUE_OFFSET,
        PROPERTY_INSTANCE_ID,
        PROPERTY_CORRELATION_ID,
        PROPERTY_MESSAGE_REPLY_TO_CLIENT,
        PROPERTY_MESSAGE_TTL,
        PROPERTY_REPLY_MESSAGE_ARRIVE_TIME,
        PROPERTY_PUSH_REPLY_TIME,
        PROPERTY_CLUSTER,
        PROPERTY_MESSAGE_TYPE,
        PROPERTY_POP_CK,
        PROPERTY_POP_CK_OFFSET,
        PROPERTY_FIRST_POP_TIME,
        PROPERTY_INNER_MULTI_QUEUE_OFFSET,
        PROPERTY_TIMER_DELAY_SEC,
        PROPERTY_TIMER_DELIVER_MS,
        PROPERTY_BORN_HOST,
        PROPERTY_BORN_TIMESTAMP,
        PROPERTY_TIMER_ENQUEUE_MS,
        PROPERTY_TIMER_DEQUEUE_MS,
        PROPERTY_TIMER_ROLL_TIMES,
        PROPERTY_TIMER_OUT_MS,
        PROPERTY_TIMER_DEL_UNIQKEY,
        PROPERTY_TIMER_DELAY_LEVEL,
        PROPERTY_TIMER_DELAY_MS,
        PROPERTY_CRC32,
        PROPERTY_DLQ_ORIGIN_TOPIC,
        PROPERTY_DLQ_ORIGIN_MESSAGE_ID,
        PROPERTY_PRIORITY,
    }
)
"""Names that users may not set (Apache: MessageConst.STRING_HASH_SET, which has PROPERTY_PRIORITY since 5.4)."""


BROKERS_PROPERTIES = frozenset(
    {
        PROPERTY_REAL_TOPIC,
        PROPERTY_REAL_QUEUE_ID,
        PROPERTY_POP_CK,
        PROPERTY_TIMER_ENQUEUE_MS,
        PROPERTY_TIMER_DEQUEUE_MS,
        PROPERTY_TIMER_ROLL_TIMES,
        PROPERTY_TRANSACTION_PREPARED_QUEUE_OFFSET,
        PROPERTY_TRANSACTION_CHECK_TIMES,
    }
)
"""Properties that brokers write for themselves while a message waits or is popped: not taken from clients."""


def encode_properties(properties: Mapping[str, str | None]) -> str:
    """Return the text form in the order of the mapping; a property without a value is left out."""
    try:
        text = PROPERTY_SEPARATOR.join(map(NAME_VALUE_SEPARATOR.join, cast("ItemsView[str, str]", properties.items())))
    except TypeError:  # a property without a value
        return "".join([f"{name}\x01{value}\x02" for name, value in properties.items() if value is not None])
    return text + PROPERTY_SEPARATOR if properties else text


def decode_properties(text: str) -> dict[str, str]:
    """Return the properties of a text form; the last of equal names counts, an empty name or value is skipped."""
    parts = [part.split(NAME_VALUE_SEPARATOR, 1) for part in text.split(PROPERTY_SEPARATOR) if part]
    try:
        properties = dict(parts)
    except ValueError:  # a part without a separator
        return decode_each(text)
    is_odd = len(properties) < len(parts) or "" in properties or "" in properties.values()
    return decode_each(text) if is_odd else properties


def decode_each(text: str) -> dict[str, str]:
    """Return the same one by one. `decode_properties` does so with texts that are not as clients write them."""
    properties = {}
    for part in text.split(PROPERTY_SEPARATOR):
        name, _, value = part.partition(NAME_VALUE_SEPARATOR)
        if name and value:
            properties[name] = value
    return properties


def decode_property_bytes(data: bytes | bytearray | memoryview) -> dict[str, str]:
    """Return the properties of a record's bytes; damaged UTF-8 becomes U+FFFD, as Java reads it."""
    return decode_properties(from_utf8(data))


def delete_property(text: str, name: str) -> str:
    """Return the text form without this property (Apache: MessageUtils.deleteProperty)."""
    if name not in text:
        return text
    prefix = name + NAME_VALUE_SEPARATOR
    parts = text.split(PROPERTY_SEPARATOR)
    return PROPERTY_SEPARATOR.join([part for part in parts if not part.startswith(prefix)])
