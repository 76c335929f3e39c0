"""Messages of inner batches as rows: a topic with batch queues stores several messages in one record.

Each message is a row with its own body, properties, flag and queue offset; other columns have the values of the record. The first
of them has the
record's size and the others have 0, so sums over storeSize are correct. A batch that cannot be taken apart
stays one row.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from twisted_mq.protocol.columns import Positions
from twisted_mq.protocol.errors import RecordError
from twisted_mq.protocol.flags import MessageSysFlag
from twisted_mq.protocol.layouts.batch_entry import read_batch
from twisted_mq.protocol.messages.compression import CompressionError, plain_body
from twisted_mq.protocol.text.properties import (
    PROPERTY_KEYS,
    PROPERTY_TAGS,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
    decode_property_bytes,
)
from twisted_mq.storage.columns.record_columns import RecordColumns

_TO_UNWRAP = MessageSysFlag.INNER_BATCH_FLAG | MessageSysFlag.NEED_UNWRAP_FLAG
Row = dict[str, object]


def holds_messages(records: RecordColumns) -> Positions:
    """Return the rows whose body is an inner batch."""
    return np.flatnonzero(records.sys_flag & _TO_UNWRAP == _TO_UNWRAP)


def with_messages_of_batches(batch: pa.RecordBatch, records: RecordColumns) -> pa.RecordBatch:
    """Return the rows of `batch` (one per record) with one row per message of each inner batch."""
    messages = {row: _messages(records, row, batch.schema.names) for row in holds_messages(records).tolist()}
    messages = {row: found for row, found in messages.items() if found}
    if not messages:
        return batch
    counts = np.ones(len(records), np.int64)
    counts[list(messages)] = [len(found) for found in messages.values()]
    places = np.repeat(np.arange(len(records)), counts)
    # only columns that differ come from the messages, so the batch is not copied for each message
    own = places.copy()
    replaced = np.flatnonzero(np.isin(places, list(messages)))
    own[replaced] = len(records) + np.arange(len(replaced))
    rows = [message for found in messages.values() for message in found]
    columns = [
        pa.concat_arrays([column, pa.array([row[name] for row in rows], column.type)]).take(pa.array(own))
        if name in rows[0]
        else column.take(pa.array(places))
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _messages(records: RecordColumns, row: int, names: Sequence[str]) -> list[Row]:
    """Return the columns in which the messages of a batch differ; none if the body is not an inner batch."""
    stored = records.log.data[int(records.body[row]) : int(records.body_end[row])]
    try:
        entries = read_batch(plain_body(bytes(stored), int(records.sys_flag[row])))
    except (RecordError, CompressionError):
        return []
    base, size = int(records.queue_offset[row]), int(records.sizes[row])
    found = (_columns(*entry, base + index, 0 if index else size) for index, entry in enumerate(entries))
    return [{name: one[name] for name in names if name in one} for one in found]


def _columns(flag: int, body: bytes, text: bytes, queue_offset: int, store_size: int) -> Row:
    properties = decode_property_bytes(text)
    return {
        "flag": flag,
        "body": body,
        "queueOffset": queue_offset,
        "storeSize": store_size,
        "tags": properties.get(PROPERTY_TAGS),
        "keys": properties.get(PROPERTY_KEYS),
        "uniqKey": properties.get(PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX),
        "properties": list(properties.items()),
    }
