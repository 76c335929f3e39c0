"""Formats values as toString of Apache's classes does, for the admin tool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import attrs

from twisted_mq.cli.admin.java_format import map_text, text_or_null
from twisted_mq.protocol.bodies import ConsumeMessageDirectlyResult, MessageQueue
from twisted_mq.protocol.bodies.types import wire_name
from twisted_mq.protocol.messages.message import MessageExt
from twisted_mq.protocol.text.properties import PROPERTY_TRANSACTION_PREPARED


def fields_text(title: str, form: str, **values: object) -> str:
    """Return named values after a title; `form` holds the marks around them, like `[]`."""
    members = ", ".join(f"{name}={value_text(value)}" for name, value in values.items())
    return f"{title}{form[0]}{members}{form[1]}"


def members_of(body: attrs.AttrsInstance) -> dict[str, object]:
    """Return the members of a body under the names of Apache's fields, in their order there."""
    return {wire_name(one.name, one.metadata): getattr(body, one.name) for one in attrs.fields(type(body))}


def value_text(value: object) -> str:
    """Return a value inside another's text: numbers, maps, lists, and attrs objects as Guava's toStringHelper writes them."""
    if attrs.has(type(value)):
        return fields_text(type(value).__name__, "{}", **members_of(cast(attrs.AttrsInstance, value)))
    if isinstance(value, dict):
        return map_text(value)
    if isinstance(value, list | tuple | set | frozenset):
        return list_text([value_text(one) for one in value])
    return text_or_null(value)


def list_text(values: Sequence[object]) -> str:
    """Return a List's toString: [a, b]."""
    return "[" + ", ".join(map(str, values)) + "]"


def queue_text(queue: MessageQueue) -> str:
    return fields_text("MessageQueue ", "[]", topic=queue.topic, brokerName=queue.broker_name, queueId=queue.queue_id)


def message_text(message: MessageExt, broker_name: str | None) -> str:
    """Return a pulled message's text. Bytes are signed, as in Java."""
    prepared = message.properties.get(PROPERTY_TRANSACTION_PREPARED, "").lower() == "true"
    body = list_text([byte - 256 if byte > 127 else byte for byte in message.body])
    plain = fields_text(
        "Message",
        "{}",
        topic=f"'{message.topic}'",
        flag=message.flag,
        properties=map_text(message.properties),
        body=body,
        transactionId=f"'{text_or_null(message.unique_key if prepared else None)}'",
    )
    return fields_text(
        "MessageExt ",
        "[]",
        brokerName=broker_name,
        queueId=message.queue_id,
        storeSize=message.store_size,
        queueOffset=message.queue_offset,
        sysFlag=message.sys_flag,
        bornTimestamp=message.born_timestamp,
        bornHost=f"/{message.born_host}",
        storeTimestamp=message.store_timestamp,
        storeHost=f"/{message.store_host}",
        msgId=message.msg_id,
        commitLogOffset=message.physical_offset,
        bodyCRC=message.body_crc,
        reconsumeTimes=message.reconsume_times,
        preparedTransactionOffset=message.prepared_transaction_offset,
        **{"toString()": plain},
    )


def direct_result_text(result: ConsumeMessageDirectlyResult) -> str:
    return fields_text("ConsumeMessageDirectlyResult ", "[]", **members_of(result))
