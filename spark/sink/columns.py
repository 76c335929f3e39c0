"""The columns of the sink, and their conversion to messages.

    body         binary or string               needed
    topic        string                         needed, unless the option `topic` sets it for all
    tags         string
    keys         string or array<string>        in a string, keys are separated by spaces
    properties   map<string,string>             the user's own
    delayLevel   int                            one of the broker's delay levels, from 1
    deliverAt    timestamp                      time of delivery
    queue        int                            position in the topic's queues, sorted by broker name and queue id
    shardingKey  string                         rows of one key go to one queue, in order
    uniqKey      string                         id of the message; the sink creates a missing one

Null means no value; null in `topic` means the option.

Rows of the source, which have the column `queueOffset`, can be written unchanged. Columns that a message does not have are
skipped, and so are properties of the original message's storage. The option `topic` replaces the topic of the rows.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import attrs
import pyarrow as pa
from pyspark.sql.types import StructType

from twisted_mq.protocol.flags import MessageSysFlag
from twisted_mq.protocol.messages.compression import CompressionType, compress
from twisted_mq.protocol.names.system_topics import NOT_ALLOWED_SEND_TOPICS
from twisted_mq.protocol.names.validation import topic_fault
from twisted_mq.protocol.text.java import utf8
from twisted_mq.protocol.text.properties import (
    BROKERS_PROPERTIES,
    KEY_SEPARATOR,
    MAX_PROPERTIES_BYTES,
    PROPERTY_DELAY_TIME_LEVEL,
    PROPERTY_INNER_BASE,
    PROPERTY_INNER_NUM,
    PROPERTY_KEYS,
    PROPERTY_ORDERED,
    PROPERTY_SHARDING_KEY,
    PROPERTY_TAGS,
    PROPERTY_TIMER_DELIVER_MS,
    PROPERTY_TRANSACTION_ID,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
    PROPERTY_WAIT_STORE_MSG_OK,
    RESERVED_PROPERTIES,
    encode_properties,
)
from twisted_mq.spark.columns.schema import COLUMNS
from twisted_mq.spark.sink.errors import WrongColumn, WrongRow

COLUMN_TYPES: dict[str, tuple[str, ...]] = {
    "body": ("binary", "string"),
    "topic": ("string",),
    "tags": ("string",),
    "keys": ("string", "array<string>"),
    "properties": ("map<string,string>",),
    "delayLevel": ("int",),
    "deliverAt": ("timestamp",),
    "queue": ("int",),
    "shardingKey": ("string",),
    "uniqKey": ("string",),
}
"""Column -> the Spark types that it may have."""
OF_SOURCE = "queueOffset"
"""Column that identifies rows of the source."""
_SOURCE_TYPES = {column.name: column.type for column in COLUMNS if column.name not in COLUMN_TYPES}
"""Columns of the source that a message does not have -> their Spark type."""
NOT_SENT = RESERVED_PROPERTIES | BROKERS_PROPERTIES | {
    PROPERTY_INNER_BASE,
    PROPERTY_INNER_NUM,
    PROPERTY_ORDERED,
    PROPERTY_TRANSACTION_ID,
}  # fmt: skip
"""Properties of the original message that are not sent again."""

MAX_BODY_BYTES = 4 * 1024 * 1024
"""maxMessageSize of brokers and clients."""
_SEPARATORS = ("\x01", "\x02")


def check_columns(schema: StructType, topic: str | None) -> None:
    """Check the columns of rows. Raises WrongColumn if rows cannot be messages."""
    found = {field.name: field.dataType.simpleString() for field in schema.fields}
    of_source = _SOURCE_TYPES if OF_SOURCE in found else {}
    for name, kind in found.items():
        if of_source.get(name) == kind:
            continue
        if name not in COLUMN_TYPES:
            near = difflib.get_close_matches(name, COLUMN_TYPES, 1)
            hint = f", did you mean {near[0]!r}?" if near else ""
            raise WrongColumn(
                name, f"the sink does not have this column{hint}; the columns are {', '.join(COLUMN_TYPES)}"
            )
        if kind not in COLUMN_TYPES[name]:
            raise WrongColumn(name, f"is of type {kind}, {' or '.join(COLUMN_TYPES[name])} is needed")
    if "body" not in found:
        raise WrongColumn("body", "is needed")
    if "topic" not in found and topic is None:
        raise WrongColumn("topic", "is needed, or the option topic")


@attrs.frozen
class Compression:
    """Compression of bodies of more than `over_bytes`; `kind` None: no compression."""

    kind: CompressionType | None = None
    over_bytes: int = 4096

    def applied(self, body: bytes) -> tuple[bytes, int]:
        """Return the body to send, and its bits of sysFlag."""
        if self.kind is None or len(body) <= self.over_bytes:
            return body, 0
        return compress(body, self.kind), MessageSysFlag.COMPRESSED_FLAG | self.kind.sys_flag


class Outgoing(NamedTuple):
    """A row as a message. `place` is the required queue, None for any; `alone` keeps it out of batches."""

    row: int
    topic: str
    body: bytes
    properties: bytes
    place: int | str | None
    alone: bool
    sys_flag: int = 0


@attrs.define
class RowReader:
    """Reader of one partition's rows as messages, in order; `source` identifies query, batch and partition in each message's
    id."""

    topic: str | None
    source: str
    partition: int
    compression: Compression = attrs.field(factory=Compression)
    _next_row: int = 0

    def messages(self, batch: pa.RecordBatch) -> Iterator[Outgoing]:
        """Yield the messages of rows. Raises WrongRow."""
        for message in self.read(batch):
            if isinstance(message, WrongRow):
                raise message
            yield message

    def read(self, batch: pa.RecordBatch) -> Iterator[Outgoing | WrongRow]:
        """Return a message for each row, or the reason why it is not one."""
        columns = {name: column.to_pylist() for name, column in zip(batch.schema.names, batch.columns, strict=True)}
        absent = [None] * batch.num_rows
        of_source = OF_SOURCE in columns
        for values in zip(*(columns.get(name, absent) for name in COLUMN_TYPES), strict=True):
            row, self._next_row = self._next_row, self._next_row + 1
            named = dict(zip(COLUMN_TYPES, values, strict=True))
            try:
                yield self._message(row, self._sent_again(named) if of_source else named)
            except WrongRow as error:
                yield error

    def _sent_again(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return a row of the source without properties of the original message."""
        kept = [(name, value) for name, value in values["properties"] or () if name not in NOT_SENT]
        return {**values, "properties": kept, "topic": self.topic or values["topic"]}

    def _message(self, row: int, values: Mapping[str, Any]) -> Outgoing:
        properties = self._properties(row, values)
        text = utf8(encode_properties(properties))
        if len(text) > MAX_PROPERTIES_BYTES:
            raise self._wrong(row, f"properties of {len(text)} bytes, at most {MAX_PROPERTIES_BYTES} are stored")
        key, place = values["shardingKey"], values["queue"]
        if key is not None and place is not None:
            raise self._wrong(row, "has both queue and shardingKey")
        body, sys_flag = self.compression.applied(self._body(row, values))
        # a batch has one sysFlag for all of its messages
        alone = bool(sys_flag) or PROPERTY_DELAY_TIME_LEVEL in properties or PROPERTY_TIMER_DELIVER_MS in properties
        place = place if key is None else key
        return Outgoing(row, self._topic(row, values), body, text, place, alone, sys_flag)

    def _topic(self, row: int, values: Mapping[str, Any]) -> str:
        topic = values["topic"] or self.topic
        fault = topic_fault(topic)
        if fault is not None or topic in NOT_ALLOWED_SEND_TOPICS:
            raise self._wrong(row, f"topic {topic!r}: {fault or 'is a system topic'}")
        return str(topic)

    def _body(self, row: int, values: Mapping[str, Any]) -> bytes:
        body = values["body"]
        if not body:
            raise self._wrong(row, "body is null" if body is None else "body is empty")
        data: bytes = body.encode() if isinstance(body, str) else body
        if len(data) > MAX_BODY_BYTES:
            raise self._wrong(row, f"body of {len(data)} bytes, at most {MAX_BODY_BYTES} are sent")
        return data

    def _properties(self, row: int, values: Mapping[str, Any]) -> dict[str, str]:
        properties: dict[str, str] = dict(values["properties"] or ())
        for name in properties.keys() & RESERVED_PROPERTIES - {PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX}:
            raise self._wrong(row, f"property {name} is RocketMQ's own; use the columns for tags, keys and delay")
        named = {
            PROPERTY_TAGS: values["tags"],
            PROPERTY_KEYS: self._keys(row, values["keys"]),
            PROPERTY_SHARDING_KEY: values["shardingKey"],
            PROPERTY_DELAY_TIME_LEVEL: self._delay_level(row, values["delayLevel"]),
            PROPERTY_TIMER_DELIVER_MS: _milliseconds(values["deliverAt"]),
            PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX: values["uniqKey"],
        }
        properties.update((name, value) for name, value in named.items() if value)
        properties.setdefault(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX, f"{self.source}-{row}")
        properties[PROPERTY_WAIT_STORE_MSG_OK] = "true"
        for name, value in properties.items():
            if value is None or any(mark in name or mark in value for mark in _SEPARATORS):
                raise self._wrong(
                    row, f"property {name!r}={value!r}: must be text without the characters U+0001 and U+0002"
                )
        return properties

    def _keys(self, row: int, keys: str | list[str | None] | None) -> str | None:
        """Return the keys as one text. Spaces separate keys, so keys in an array must not have any."""
        if not isinstance(keys, list):
            return keys
        for place, key in enumerate(keys):
            if not key:
                raise self._wrong(row, f"keys[{place}] is {'null' if key is None else 'empty'}")
            if KEY_SEPARATOR in key:
                raise self._wrong(row, f"keys[{place}]={key!r} has a space, which separates keys")
        return KEY_SEPARATOR.join(filter(None, keys)) or None

    def _delay_level(self, row: int, level: int | None) -> str | None:
        if level is not None and level < 0:
            raise self._wrong(row, f"delayLevel {level}")
        return str(level) if level else None

    def _wrong(self, row: int, reason: str) -> WrongRow:
        return WrongRow(row, self.partition, reason)


def _milliseconds(time: Any) -> str | None:
    """Return a timestamp as ms since 1970."""
    return None if time is None else str(round(time.timestamp() * 1000))
