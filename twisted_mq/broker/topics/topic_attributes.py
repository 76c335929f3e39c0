"""Defines the attributes of topics and groups, and the changes that operators ask for: "+key=value,-key".

Apache: TopicAttributes, SubscriptionGroupAttributes, AttributeParser, AttributeUtil. Pure rules; refusals have Apache's code
(SYSTEM_ERROR) and remark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from twisted_mq.protocol.bodies.topic_config import ORDER, ORDER_QUEUES, ORDER_TOGETHER
from twisted_mq.protocol.codes import ResponseCode
from twisted_mq.protocol.errors import BrokerError
from twisted_mq.protocol.messages.message_type import PRIORITY
from twisted_mq.protocol.text.java import parse_int

MESSAGE_TYPES = ("DELAY", "FIFO", "MIXED", "NORMAL", PRIORITY, "TRANSACTION", "UNSPECIFIED")
MESSAGE_TYPE = "message.type"
LONG_MAX = (1 << 63) - 1


def _one_of(*values: str) -> Callable[[str], str | None]:
    return lambda value: None if value in values else f"value is not in set: [{', '.join(values)}]"


def _in_range(low: int, high: int) -> Callable[[str], str | None]:
    def fault(value: str) -> str | None:
        try:
            number = int(value)
        except ValueError:
            return f'For input string: "{value}"'
        return None if low <= number <= high else f"value is not in range({low}, {high})"

    return fault


@attrs.frozen
class Attribute:
    """An attribute of topics or groups: `fault(value)` returns why a value is refused; `changeable` is True if it can change
    after creation.
    """

    changeable: bool
    fault: Callable[[str], str | None]


ATTRIBUTES = {
    "queue.type": Attribute(False, _one_of("BatchCQ", "SimpleCQ")),
    "cleanup.policy": Attribute(False, _one_of("COMPACTION", "DELETE")),
    MESSAGE_TYPE: Attribute(True, _one_of(*MESSAGE_TYPES)),
    ORDER: Attribute(False, _one_of(ORDER_QUEUES, ORDER_TOGETHER)),
    "reserve.time": Attribute(True, _in_range(-1, LONG_MAX)),
}

PRIORITY_FACTOR = "priority.factor"
ALL_POPS = 100
GROUP_ATTRIBUTES = {PRIORITY_FACTOR: Attribute(True, _in_range(0, ALL_POPS))}
"""The number of 100 pops of a group that begin at the queue of the highest priority; all by default. Since 5.4."""


def priority_factor(attributes: Mapping[str, str]) -> int:
    """Return how many of 100 pops of a group with these attributes go by priority."""
    value = parse_int(attributes.get(PRIORITY_FACTOR))
    return ALL_POPS if value is None else value


def parse_changes(text: str) -> dict[str, str]:
    """Parse "+key=value,-key" into signed names and values; a removal has the value "". Raises BrokerError."""
    changes: dict[str, str] = {}
    for part in text.split(",") if text else ():
        name, equals, value = part.partition("=")
        if not name.startswith("+" if equals else "-"):
            raise _refusal(f"{'add/alter' if equals else 'delete'} attribute format is wrong: {name}")
        if name in changes:
            raise _refusal(f"key duplication: {name}")
        changes[name] = value
    return changes


def altered(
    current: Mapping[str, str] | None, changes: Mapping[str, str], known: Mapping[str, Attribute] = ATTRIBUTES
) -> dict[str, str]:
    """Return the attributes of a topic or group after changes; `current` is None while it is created. Raises BrokerError."""
    result, seen = dict(current or {}), set[str]()
    for signed, value in changes.items():
        sign, name = signed[:1], signed[1:]
        if not name or "+" in name or "-" in name:
            raise _refusal("kv string format wrong.")
        if name in seen:
            raise _refusal(f"alter duplication key. key: {name}")
        seen.add(name)
        _check_change(sign, name, value, current, known)
        if sign == "+":
            result[name] = value
        else:
            del result[name]
    return result


def _check_change(
    sign: str, name: str, value: str, current: Mapping[str, str] | None, known: Mapping[str, Attribute]
) -> None:
    if sign != "+" and current is None:
        raise _refusal(f"only add attribute is supported while creating topic. key: {name}")
    if sign not in "+-":
        raise _refusal(f"wrong format key: {name}")
    if sign == "-" and current is not None and name not in current:
        raise _refusal(f"attempt to delete a nonexistent key: {name}")
    attribute = known.get(name)
    if attribute is None:
        raise _refusal(f"unsupported key: {name}")
    if current is not None and not attribute.changeable:
        raise _refusal(f"attempt to update an unchangeable attribute. key: {name}")
    fault = attribute.fault(value) if sign == "+" else None
    if fault is not None:
        raise _refusal(fault)


def _refusal(remark: str) -> BrokerError:
    return BrokerError(ResponseCode.SYSTEM_ERROR, remark)
