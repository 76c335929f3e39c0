"""Records of what became of messages, which clients send to the topic RMQ_SYS_TRACE_TOPIC (Apache: TraceDataEncoder).

A body holds records one behind the other, each `name 0x01 field 0x01 ... 0x02`, the fields in the order of the classes
here. Text that is missing travels as "null".

    Pub|1795218105284|DefaultRegion|GroupA|TopicA|C000...0000|TagA|key1|127.0.0.2:20911|7|9|0|7F00...36D1|true
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

TRACE_TOPIC = "RMQ_SYS_TRACE_TOPIC"

FIELD_SEPARATOR = "\x01"
RECORD_SEPARATOR = "\x02"
NULL = "null"

DEFAULT_REGION = "DefaultRegion"
"""MixAll.DEFAULT_TRACE_REGION_ID"""


@attrs.frozen
class PublishTrace:
    """A message was sent. `cost_ms` is how long that took; `message_type` the index in Apache's MessageType."""

    timestamp: int = 0
    region_id: str = ""
    group: str = ""
    topic: str = ""
    msg_id: str = ""
    tags: str | None = None
    keys: str | None = None
    store_host: str = ""
    body_length: int = 0
    cost_ms: int = 0
    message_type: int = 0
    offset_msg_id: str = ""
    success: bool = True


@attrs.frozen
class ConsumeStartTrace:
    """A listener gets a message. `request_id` is the same in the record of the call's end."""

    timestamp: int = 0
    region_id: str = ""
    group: str = ""
    request_id: str = ""
    msg_id: str = ""
    retry_times: int = 0
    keys: str | None = None


@attrs.frozen
class ConsumeEndTrace:
    """A listener answered. `context_code` is the index in Apache's ConsumeReturnType, 0 for success."""

    request_id: str = ""
    msg_id: str = ""
    cost_ms: int = 0
    success: bool = True
    keys: str | None = None
    context_code: int = 0
    timestamp: int = 0
    group: str = ""


@attrs.frozen
class EndTransactionTrace:
    """A transaction was decided, with the name of Apache's LocalTransactionState."""

    timestamp: int = 0
    region_id: str = ""
    group: str = ""
    topic: str = ""
    msg_id: str = ""
    tags: str | None = None
    keys: str | None = None
    store_host: str = ""
    message_type: int = 2
    transaction_id: str | None = None
    state: str = ""
    from_check: bool = False


@attrs.frozen
class RecallTrace:
    """A delayed message was called back."""

    timestamp: int = 0
    region_id: str = ""
    group: str = ""
    topic: str = ""
    msg_id: str = ""
    success: bool = True


Trace = PublishTrace | ConsumeStartTrace | ConsumeEndTrace | EndTransactionTrace | RecallTrace

_CLASSES: dict[str, type[Trace]] = {
    "Pub": PublishTrace,
    "SubBefore": ConsumeStartTrace,
    "SubAfter": ConsumeEndTrace,
    "EndTransaction": EndTransactionTrace,
    "Recall": RecallTrace,
}
_NAMES = {cls: name for name, cls in _CLASSES.items()}


def encode_trace(trace: Trace) -> str:
    """Encode a record."""
    values = (_text(getattr(trace, field.name)) for field in attrs.fields(type(trace)))
    return FIELD_SEPARATOR.join([_NAMES[type(trace)], *values]) + RECORD_SEPARATOR


def _text(value: object) -> str:
    if value is None:
        return NULL
    return str(value).lower() if isinstance(value, bool) else str(value)


def decode_traces(body: bytes) -> Iterator[Trace]:
    """Yield the records of a body; older clients' lack the last fields. Raises ValueError for a malformed number.

    Records of unknown names are left out.
    """
    for record in body.decode("utf-8", "replace").split(RECORD_SEPARATOR):
        name, *values = record.split(FIELD_SEPARATOR)
        cls = _CLASSES.get(name)
        if cls is not None:
            types = (str(field.type) for field in attrs.fields(cls))
            yield cls(*map(_value, types, values))


def _value(declared: str, text: str) -> Any:
    """Return a value of the declared type: the maker of the record takes it as it is."""
    if declared == "int":
        return int(text)
    if declared == "bool":
        return text == "true"
    return None if text == NULL and "None" in declared else text
