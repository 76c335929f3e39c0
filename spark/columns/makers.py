"""Arrow columns from records: a table of one function for each column, all of which work on whole batches.

Two columns cannot avoid a step for each record, and only they are slow: `crcOk` (a CRC over the body) and `body`
where it is compressed. A query that does not need them leaves them out with the option `columns`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence

import attrs
import numpy as np
import pyarrow as pa

from twisted_mq.protocol.columns import Bytes, Mask
from twisted_mq.protocol.flags import MessageSysFlag
from twisted_mq.protocol.layouts.host import host_text
from twisted_mq.protocol.layouts.record_columns import hosts_at
from twisted_mq.protocol.messages.compression import CompressionError, plain_body
from twisted_mq.protocol.text.properties import PROPERTY_KEYS, PROPERTY_TAGS, PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX
from twisted_mq.spark.columns.arrow_texts import as_text, gather, replace_rows
from twisted_mq.spark.columns.inner_batches import holds_messages, with_messages_of_batches
from twisted_mq.spark.columns.properties import Properties, PropertyTexts, parse_properties
from twisted_mq.spark.columns.schema import COLUMNS, TIMESTAMP_TYPE, arrow_schema
from twisted_mq.spark.columns.selection import EVERYTHING, MessageConditions
from twisted_mq.storage.columns.record_columns import RecordColumns

MAX_BATCH_BODY_BYTES = 32 * 1024 * 1024
"""Limit of decompressed bodies: a larger batch is halved, down to single records, because a worker has little memory."""
_TAGS_COLUMN = "tags"
_PROPERTIES_COLUMN = "properties"
_CHEAPEST_COLUMN = "flag"
_FIRST_MS = -62_135_596_800_000
_LAST_MS = 253_402_300_799_999
"""End of the range of Python's datetime, the years 1 to 9999; values outside are not valid times."""


class BodiesTooLarge(Exception):
    """The decompressed bodies of a batch pass MAX_BATCH_BODY_BYTES."""


@attrs.frozen
class Origin:
    """Source of records: the values that all rows of a batch share."""

    store: str | None = None
    broker_name: str | None = None


UNKNOWN = Origin()


class Batch:
    """Records with the values that several columns share, computed at first use."""

    def __init__(self, records: RecordColumns, origin: Origin, *, takes_apart: bool) -> None:
        """`takes_apart`: parse all properties, instead of searching for single ones."""
        self.records = records
        self.origin = origin
        self.takes_apart = takes_apart

    def __len__(self) -> int:
        return len(self.records)

    def only(self, wanted: Mask) -> Batch:
        """Return the records of the selected rows."""
        if wanted.all():
            return self
        return Batch(self.records.rows(np.flatnonzero(wanted)), self.origin, takes_apart=self.takes_apart)

    @functools.cached_property
    def topics(self) -> pa.StringArray:
        return as_text(gather(self.records.log, self.records.topic, self.records.topic_end))

    @functools.cached_property
    def stored_bodies(self) -> pa.BinaryArray:
        return gather(self.records.log, self.records.body, self.records.body_end)

    @functools.cached_property
    def property_texts(self) -> PropertyTexts:
        return PropertyTexts(gather(self.records.log, self.records.properties, self.records.ends))

    @functools.cached_property
    def properties(self) -> Properties:
        return parse_properties(self.property_texts)


def _number(field: str, batch: Batch) -> pa.Array:
    return pa.array(batch.records.numbers(field))


def _timestamp(field: str, batch: Batch) -> pa.Array:
    """Convert milliseconds to Spark's microseconds."""
    ms = batch.records.numbers(field)
    unknown = (ms < _FIRST_MS) | (ms > _LAST_MS)
    return pa.array(np.where(unknown, 0, ms) * 1000, mask=unknown).view(TIMESTAMP_TYPE)


def _host(field: str, batch: Batch) -> pa.Array:
    """Convert each different address to text once; there are few."""
    records = batch.records
    kinds = hosts_at(records.log.data, records.starts, records.heads, field)
    texts = [_host_texts(packed) for _, packed in kinds]
    if len(texts) == 1:
        return texts[0]
    return pa.concat_arrays(texts).take(pa.array(np.argsort(np.concatenate([rows for rows, _ in kinds]))))


def _host_texts(packed: Bytes) -> pa.StringArray:
    """Return the text of each host; all hosts have the same length."""
    count, width = packed.shape
    first = packed[0].tobytes()
    if packed.tobytes() == first * count:
        return _repeated(host_text(first), count)
    different = pa.Array.from_buffers(pa.binary(width), count, [None, pa.py_buffer(packed)]).dictionary_encode()
    return pa.array([host_text(host) for host in different.dictionary.to_pylist()], pa.string()).take(different.indices)


def _topic(batch: Batch) -> pa.Array:
    return batch.topics


def _file(batch: Batch) -> pa.Array:
    return _repeated(batch.records.log.name or None, len(batch))


def _store(batch: Batch) -> pa.Array:
    return _repeated(batch.origin.store, len(batch))


def _broker_name(batch: Batch) -> pa.Array:
    return _repeated(batch.origin.broker_name, len(batch))


def _repeated(text: str | None, count: int) -> pa.StringArray:
    return pa.repeat(pa.scalar(text, pa.string()), count)


def _property(name: str, batch: Batch) -> pa.Array:
    return (batch.properties if batch.takes_apart else batch.property_texts).value_of(name)


def _properties(batch: Batch) -> pa.Array:
    return batch.properties.as_map()


def _crc_ok(batch: Batch) -> pa.Array:
    right = np.ones(len(batch), np.bool_)
    right[batch.records.wrong_bodies(lambda: batch.stored_bodies.to_pylist())] = False
    return pa.array(right)


def _body(batch: Batch) -> pa.Array:
    compressed = np.flatnonzero(batch.records.sys_flag & MessageSysFlag.COMPRESSED_FLAG)
    return replace_rows(batch.stored_bodies, compressed, _decompressed(batch.records, compressed.tolist()))


def _decompressed(records: RecordColumns, rows: list[int]) -> list[bytes | None]:
    """Return the decompressed bodies of these rows. Raises BodiesTooLarge unless there is one row only."""
    view = memoryview(records.log.data)
    bodies: list[bytes | None] = []
    total = 0
    for row in rows:
        try:
            body = plain_body(view[records.body[row] : records.body_end[row]], int(records.sys_flag[row]))
        except CompressionError:
            bodies.append(None)
            continue
        bodies.append(body)
        total += len(body)
        if total > MAX_BATCH_BODY_BYTES and len(records) > 1:
            raise BodiesTooLarge
    return bodies


ColumnMaker = Callable[[Batch], pa.Array]

_DERIVED: dict[str, ColumnMaker] = {
    "topic": _topic,
    "file": _file,
    "store": _store,
    "brokerName": _broker_name,
    "tags": functools.partial(_property, PROPERTY_TAGS),
    "keys": functools.partial(_property, PROPERTY_KEYS),
    "uniqKey": functools.partial(_property, PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX),
    "properties": _properties,
    "crcOk": _crc_ok,
    "body": _body,
}
_COPIED: dict[str, Callable[[str, Batch], pa.Array]] = {
    "int": _number,
    "bigint": _number,
    "timestamp": _timestamp,
    "string": _host,
}
"""Functions that convert a record's field to a column, by the column's type."""

COLUMN_MAKERS: dict[str, ColumnMaker] = {
    column.name: functools.partial(_COPIED[column.type], column.field) if column.field else _DERIVED[column.name]
    for column in COLUMNS
}


def record_batches(
    records: RecordColumns, names: Sequence[str], selection: MessageConditions = EVERYTHING, origin: Origin = UNKNOWN
) -> Iterator[pa.RecordBatch]:
    """Return these columns of the selected messages: usually one batch, none without rows.

    A row is a message: an inner batch has as many as it has messages.
    """
    batch = _selected(Batch(records, origin, takes_apart=_PROPERTIES_COLUMN in names), selection)
    if len(batch):
        yield from _arrow_batches(batch, names, selection)


def count_messages(records: RecordColumns, selection: MessageConditions = EVERYTHING) -> int:
    """Return the number of rows of `record_batches`. Columns are made only for records with inner batches."""
    batch = _selected(Batch(records, UNKNOWN, takes_apart=False), selection)
    batches = holds_messages(batch.records)
    if not len(batches):
        return len(batch)
    inside = batch.records.rows(batches)
    counted: int = sum(found.num_rows for found in record_batches(inside, (_CHEAPEST_COLUMN,), selection))
    return len(batch) - len(batches) + counted


def _selected(batch: Batch, selection: MessageConditions) -> Batch:
    batch = batch.only(selection.by_numbers(batch.records))
    if selection.names_topics:
        batch = batch.only(selection.by_topics(batch.topics))
    if selection.tags:
        batch = batch.only(_may_have_tags(batch, selection))
    return batch


def _may_have_tags(batch: Batch, selection: MessageConditions) -> Mask:
    """Return the records with selected tags, and those whose messages have their own tags."""
    found = selection.by_tags(batch.property_texts.value_of(PROPERTY_TAGS))
    found[holds_messages(batch.records)] = True
    return found


def _arrow_batches(batch: Batch, names: Sequence[str], selection: MessageConditions) -> Iterator[pa.RecordBatch]:
    """Return all columns of a batch, or of its halves if its bodies are too large."""
    inner = len(holds_messages(batch.records))
    made = (*names, _TAGS_COLUMN) if inner and selection.tags and _TAGS_COLUMN not in names else names
    try:
        arrays = [COLUMN_MAKERS[name](batch) for name in made]
    except BodiesTooLarge:
        first = np.arange(len(batch)) < len(batch) // 2
        yield from _arrow_batches(batch.only(first), names, selection)
        yield from _arrow_batches(batch.only(~first), names, selection)
        return
    found = pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(made))
    if inner:
        found = with_messages_of_batches(found, batch.records)
        if selection.tags:
            found = found.filter(pa.array(selection.by_tags(found[_TAGS_COLUMN]))).select(list(names))
    if found.num_rows:
        yield found
