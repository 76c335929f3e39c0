"""Checks the names that a user gives, before anything is sent (Apache: Validators)."""

from __future__ import annotations

from twisted_mq.client.core.errors import ClientOptionIllegal
from twisted_mq.protocol.names.validation import group_fault, topic_fault


def check_group(group: str) -> None:
    """Raise ClientOptionIllegal for a name that no broker accepts."""
    if not isinstance(group, str):
        raise ClientOptionIllegal(f'group: must be str, got {group!r}; write group="orders"')
    fault = group_fault(group)
    if fault is not None:
        raise ClientOptionIllegal(f"group {group!r}: {fault}")


def check_topic(topic: str) -> None:
    """Raise ClientOptionIllegal for a name that no broker accepts."""
    if not isinstance(topic, str):
        raise ClientOptionIllegal(f'topic: must be str, got {topic!r}; write "Orders"')
    fault = topic_fault(topic)
    if fault is not None:
        raise ClientOptionIllegal(f"topic {topic!r}: {fault}")
