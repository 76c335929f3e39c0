"""Checks the requests of gRPC clients. Refusals have the codes of Apache's proxy (GrpcValidator)."""

from __future__ import annotations

import re
from typing import Any

from twisted_mq.protocol.names.system_topics import BROKERS_GROUPS, is_system_topic
from twisted_mq.protocol.names.validation import group_fault, topic_fault
from twisted_mq.protocol.text.properties import RESERVED_PROPERTIES
from twisted_mq.proxy.options import ProxyOptions
from twisted_mq.proxy.statuses import ProxyError
from twisted_mq.proxy.times import milliseconds

SYSTEM_GROUP_PREFIX = "CID_RMQ_SYS_"
_has_control = re.compile(r"[\x00-\x1f\x7f-\x9f]").search


MOST_PARTS = 1000
"""The limit of messages, entries, topics or subscriptions in one call. Apache has no limit."""
PARTS_OF_SLICE = 50
"""The limit of those that are handled in one turn: each is a request to a broker."""


def check_count(name: str, count: int) -> None:
    """Raise ProxyError if a call has too many parts."""
    if count > MOST_PARTS:
        raise ProxyError("BAD_REQUEST", f"{name}: {count} in one call, the limit is {MOST_PARTS}")


def checked_topic(resource: Any) -> str:
    """Return the topic's name. Raises ProxyError if it is not allowed."""
    name = str(resource.name)
    fault = topic_fault(name)
    if fault is not None:
        raise ProxyError("ILLEGAL_TOPIC", fault)
    if is_system_topic(name):
        raise ProxyError("ILLEGAL_TOPIC", f"topic {name} is a system topic")
    return name


def checked_group(resource: Any) -> str:
    """Return the consumer group's name. Raises ProxyError if it is not allowed."""
    name = str(resource.name)
    fault = group_fault(name)
    if fault is not None:
        raise ProxyError("ILLEGAL_CONSUMER_GROUP", fault)
    if name in BROKERS_GROUPS or name.startswith(SYSTEM_GROUP_PREFIX):
        raise ProxyError("ILLEGAL_CONSUMER_GROUP", f"group {name} is a system group")
    return name


def check_message(message: Any, options: ProxyOptions, max_body_bytes: int, now_ms: int) -> None:
    """Raise ProxyError for a message that cannot be sent."""
    system = message.system_properties
    _check_text("ILLEGAL_MESSAGE_TAG", "tag", system.tag, no="|")
    for key in system.keys:
        _check_text("ILLEGAL_MESSAGE_KEY", "key", key)
    if not system.message_id.strip():
        raise ProxyError("ILLEGAL_MESSAGE_ID", "message_id is blank")
    # properties are separated by control characters in a record
    _check_text("ILLEGAL_MESSAGE_ID", "message_id", system.message_id)
    _check_text("BAD_REQUEST", "trace_context", system.trace_context)
    _check_text("BAD_REQUEST", "born_host", system.born_host)
    _check_group(system, options)
    if system.priority < 0:
        raise ProxyError("BAD_REQUEST", f"priority must be at least 0, got {system.priority}")
    _check_properties(message, options)
    _check_times(system, options, now_ms)
    size = len(message.body)
    if size == 0 and options.enable_message_body_empty_check:
        raise ProxyError("MESSAGE_BODY_EMPTY", "message body is empty")
    if size > max_body_bytes:
        raise ProxyError("MESSAGE_BODY_TOO_LARGE", f"message body has {size} bytes, the limit is {max_body_bytes}")


def _check_text(code: str, name: str, text: str, no: str = "") -> None:
    if not text or (text.isprintable() and not text.isspace() and not (no and no in text)):
        return
    if not text.strip():
        raise ProxyError(code, f"{name} is blank")
    if _has_control(text) is not None or (no and no in text):
        raise ProxyError(code, f"{name} {text!r} has characters that are not allowed")


def _check_group(system: Any, options: ProxyOptions) -> None:
    if not system.HasField("message_group"):
        return
    group = system.message_group
    if not group.strip():
        raise ProxyError("ILLEGAL_MESSAGE_GROUP", "message_group is blank")
    if len(group.encode()) >= options.max_message_group_size:
        raise ProxyError(
            "ILLEGAL_MESSAGE_GROUP", f"message_group must have less than {options.max_message_group_size} bytes"
        )
    _check_text("ILLEGAL_MESSAGE_GROUP", "message_group", group)


def _check_properties(message: Any, options: ProxyOptions) -> None:
    properties, system = message.user_properties, message.system_properties
    if len(properties) > options.user_property_max_num:
        raise ProxyError(
            "MESSAGE_PROPERTIES_TOO_LARGE",
            f"{len(properties)} user properties, the limit is {options.user_property_max_num}",
        )
    size = len(system.tag.encode()) + sum(len(key.encode()) for key in system.keys)
    for name, value in properties.items():
        if name in RESERVED_PROPERTIES:
            raise ProxyError("ILLEGAL_MESSAGE_PROPERTY_KEY", f"property {name} is a system property")
        if (not name.isprintable() and _has_control(name)) or (not value.isprintable() and _has_control(value)):
            raise ProxyError("ILLEGAL_MESSAGE_PROPERTY_KEY", f"property {name!r} has control characters")
        size += len(name.encode()) + len(value.encode())
    if size > options.max_user_property_size:
        raise ProxyError(
            "MESSAGE_PROPERTIES_TOO_LARGE",
            f"properties have {size} bytes, the limit is {options.max_user_property_size}",
        )


def _check_times(system: Any, options: ProxyOptions, now_ms: int) -> None:
    if system.HasField("delivery_timestamp"):
        ahead = milliseconds(system.delivery_timestamp) - now_ms
        if ahead > options.max_delay_time_mills:
            raise ProxyError(
                "ILLEGAL_DELIVERY_TIME",
                f"delivery_timestamp is {ahead} ms ahead, the limit is {options.max_delay_time_mills}",
            )
    if system.HasField("orphaned_transaction_recovery_duration"):
        seconds = system.orphaned_transaction_recovery_duration.seconds
        if seconds > options.max_transaction_recovery_second:
            raise ProxyError(
                "BAD_REQUEST",
                f"orphaned_transaction_recovery_duration is {seconds} s, the limit is {options.max_transaction_recovery_second}",
            )


def check_received_invisible(ms: int, options: ProxyOptions) -> None:
    """Raise ProxyError for an invisible duration that a receive may not ask for."""
    low, high = options.min_invisible_time_mills_for_recv, options.max_invisible_time_mills
    if not low <= ms <= high:
        raise ProxyError("ILLEGAL_INVISIBLE_TIME", f"invisible_duration is {ms} ms, it must be {low} to {high}")


def check_changed_invisible(ms: int, options: ProxyOptions) -> None:
    """Raise ProxyError for an invisible duration that a message may not get."""
    if not 0 <= ms <= options.max_invisible_time_mills:
        raise ProxyError(
            "ILLEGAL_INVISIBLE_TIME",
            f"invisible_duration is {ms} ms, it must be 0 to {options.max_invisible_time_mills}",
        )
