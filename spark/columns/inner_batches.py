"""Messages of inner batches as rows: what a topic with batch queues keeps in one record, consumers take apart.

Each message is a row with its own body, properties, flag and queue offset; the rest is its record's. So that sums over
storeSize stay true, the first of them has the record's size and the others have 0. A batch that cannot be taken apart
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
    """The rows whose body is to be taken apart."""
    return np.flatnonzero(records.sys_flag & _TO_UNWRAP == _TO_UNWRAP)


def with_messages_of_batches(batch: pa.RecordBatch, records: RecordColumns) -> pa.RecordBatch:
    """The rows of `batch`, one a record, with as many for each inner batch as it has messages."""
    messages = {row: _messages(records, row, batch.schema.names) for row in holds_messages(records).tolist()}
    messages = {row: found for row, found in messages.items() if found}
    if not messages:
        return batch
    counts = np.ones(len(records), np.int64)
    counts[list(messages)] = [len(found) for found in messages.values()]
    places = np.repeat(np.arange(len(records)), counts)
    # what differs is taken from the messages, so that nothing of the batch is copied once a message
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
    """Those of the columns in which the messages of a batch differ; none where its body is none of a batch."""
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
