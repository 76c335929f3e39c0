"""The columns of the source: names, Spark types, where each comes from.

Plain numbers take their type from the construct declaration of the record; the others are derived values. All are
nullable in Spark; the meaning of a column says when it is null.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import pyarrow as pa

from twisted_mq.protocol.layouts.derive import field_table
from twisted_mq.protocol.layouts.record import MESSAGE
from twisted_mq.spark.columns.properties import MAP_TYPE
from twisted_mq.spark.errors import WrongOption

TIMESTAMP_TYPE = pa.timestamp("us", tz="UTC")
ARROW_TYPES = {
    "int": pa.int32(),
    "bigint": pa.int64(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "timestamp": TIMESTAMP_TYPE,
    "map<string,string>": MAP_TYPE,
}
"""Spark type -> the Arrow type that Spark expects for it."""

_NUMBER_TYPES = {4: "int", 8: "bigint"}
_FIELD_SIZES = {field.name: field.size for field in field_table(MESSAGE, sys_flag=0)}


@attrs.frozen
class Column:
    """A column; `field` is the record's field that it copies, empty for derived ones."""

    name: str
    type: str
    field: str
    meaning: str


def _number(name: str, field: str, meaning: str) -> Column:
    return Column(name, _NUMBER_TYPES[_FIELD_SIZES[field]], field, meaning)


COLUMNS: tuple[Column, ...] = (
    Column("topic", "string", "", "damaged UTF-8 reads as U+FFFD"),
    _number("queueId", "queue_id", ""),
    _number("queueOffset", "queue_offset", "place in the queue, counted in messages"),
    _number("physicalOffset", "physical_offset", "place in the commit log, in bytes"),
    Column("file", "string", "", "name of the commit log file"),
    Column("store", "string", "", "path or URI of the store"),
    Column("brokerName", "string", "", "value of the option brokerName; null without it"),
    Column("tags", "string", "", "property TAGS; null without it"),
    Column("keys", "string", "", "property KEYS, several keys separated by spaces; null without it"),
    Column("uniqKey", "string", "", "property UNIQ_KEY, the id given by the producer; null without it"),
    Column("properties", "map<string,string>", "", "all properties; the last one of equal names"),
    _number("flag", "flag", "the user's own number"),
    _number("sysFlag", "sys_flag", "bits of twisted_mq.protocol.flags.MessageSysFlag, as stored"),
    Column("bornTimestamp", "timestamp", "born_timestamp", "producer's clock; null outside the years 1 to 9999"),
    Column("storeTimestamp", "timestamp", "store_timestamp", "broker's clock; null outside the years 1 to 9999"),
    Column("bornHost", "string", "born_host", "address:port, IPv6 in brackets"),
    Column("storeHost", "string", "store_host", "address:port, IPv6 in brackets"),
    _number("reconsumeTimes", "reconsume_times", ""),
    _number("preparedTransactionOffset", "prepared_transaction_offset", ""),
    _number(
        "storeSize",
        "size",
        "size of the whole record in bytes; in a batch of one record only the first message has it, others have 0",
    ),
    _number("bodyCRC", "body_crc", "as stored"),
    Column("crcOk", "boolean", "", "whether the stored body has bodyCRC; true for an empty body, as in Apache"),
    Column("body", "binary", "", "decompressed; null where it cannot be decompressed, or only to over 64 MiB"),
)

COLUMN_NAMES = tuple(column.name for column in COLUMNS)
DEFAULT_COLUMNS = tuple(name for name in COLUMN_NAMES if name not in ("properties", "crcOk"))
"""Columns without an option; expensive and rarely used columns must be requested."""
_BY_NAME = {column.name: column for column in COLUMNS}


def columns_named(names: Sequence[str]) -> list[Column]:
    """Return these columns in this order. Raises WrongOption for an unknown or repeated name."""
    for name in names:
        if name not in _BY_NAME:
            raise WrongOption("columns", name, "unknown column; the columns are " + ", ".join(COLUMN_NAMES))
    if len(set(names)) != len(names) or not names:
        raise WrongOption("columns", ",".join(names), "select at least one column, and each once")
    return [_BY_NAME[name] for name in names]


def spark_ddl(names: Sequence[str]) -> str:
    """Return the schema as Spark's DDL text: `topic string, queueId int, ...`."""
    return ", ".join(f"`{column.name}` {column.type}" for column in columns_named(names))


def arrow_schema(names: Sequence[str]) -> pa.Schema:
    """Return the schema of the record batches."""
    return pa.schema([pa.field(column.name, ARROW_TYPES[column.type]) for column in columns_named(names)])
