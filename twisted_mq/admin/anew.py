"""The properties that a stored message keeps when it is sent again, and those that belong to its old delivery."""

from __future__ import annotations

from collections.abc import Mapping

WAY_PREFIXES = ("TIMER_", "TRAN_", "TRANSACTION_", "__RMQ.TRANSIENT.", "INNER_", "POP_CK", "DLQ_ORIGIN_")
WAY = frozenset(
    {
        "RETRY_TOPIC", "REAL_TOPIC", "REAL_QID", "ORIGIN_MESSAGE_ID", "RECONSUME_TIME", "MAX_RECONSUME_TIMES", "DELAY",
        "UNIQ_KEY", "WAIT", "MIN_OFFSET", "MAX_OFFSET", "CLUSTER", "PGROUP", "CONSUME_START_TIME", "MSG_REGION", "TRACE_ON",
        "EXTEND_UNIQ_INFO", "1ST_POP_TIME", "PROPERTY_FORWARD_QUEUE_ID", "REDIRECT", "BORN_TIMESTAMP", "__BORNHOST",
        "__transactionId__", "ARRIVE_TIME", "PUSH_REPLY_TIME", "CHECK_IMMUNITY_TIME_IN_SECONDS", "TRANSFER_FLAG",
    }
)  # fmt: skip
"""Properties of a message's old delivery, which are dropped when it is sent again."""


def own_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties that the sender set: tags, keys, sharding key and its own."""
    return {name: value for name, value in properties.items() if name not in WAY and not name.startswith(WAY_PREFIXES)}
