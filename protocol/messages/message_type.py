"""Message types and priorities, by properties (Apache: TopicMessageType.parseFromMessageProperty; priorities since 5.4)."""

from __future__ import annotations

from collections.abc import Mapping

from twisted_mq.protocol.text.java import parse_int
from twisted_mq.protocol.text.properties import (
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_PRIORITY,
    PROPERTY_SHARDING_KEY,
    PROPERTY_TIMER_DELAY_MS,
    PROPERTY_TIMER_DELAY_SEC,
    PROPERTY_TIMER_DELIVER_MS,
    PROPERTY_TRANSACTION_PREPARED,
)

PRIORITY = "PRIORITY"
_DELAYED = frozenset(
    {PROPERTY_DELAY_TIME_LEVEL, PROPERTY_TIMER_DELIVER_MS, PROPERTY_TIMER_DELAY_SEC, PROPERTY_TIMER_DELAY_MS}
)


def message_type(properties: Mapping[str, str]) -> str:
    """Return TRANSACTION, DELAY, FIFO, PRIORITY or NORMAL: the first of these that applies."""
    if properties.get(PROPERTY_TRANSACTION_PREPARED) == "true":
        return "TRANSACTION"
    if not _DELAYED.isdisjoint(properties):
        return "DELAY"
    if PROPERTY_SHARDING_KEY in properties:
        return "FIFO"
    return PRIORITY if PROPERTY_PRIORITY in properties else "NORMAL"


def priority_of(properties: Mapping[str, str]) -> int | None:
    """Return a message's priority; None without one, or if it is below 0 or not a number of 32 bits."""
    priority = parse_int(properties.get(PROPERTY_PRIORITY))
    return priority if priority is not None and priority >= 0 else None
