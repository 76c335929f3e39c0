"""Many records at once: their leading fields as numpy columns, and where their variable fields lie.

The dtypes come from the construct declaration (twisted_mq.protocol.layouts.record.MESSAGE), one for each combination of IPv4 and
IPv6 hosts. A window is an array over a mapped file with an element at every byte; indexing it with positions copies
each head in 50 ns, whatever its alignment.
"""

from __future__ import annotations

import zlib
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from twisted_mq.protocol.layouts.derive import derive_dtype, field_offset
from twisted_mq.protocol.layouts.record import HEAD_BYTES, HEADS, MAGIC_V1, MAGIC_V2, MESSAGE, SMALLEST_RECORD, V6_FLAGS
from twisted_mq.protocol.text.java_hash_columns import Positions, window
from twisted_mq.storage.files.mapped_log import MappedLog

Column = npt.NDArray[Any]

HEAD_DTYPES = {flags: derive_dtype(MESSAGE, sys_flag=flags) for flags in HEADS}
"""The leading fields up to body_length, by the two IPv6 bits of sys_flag."""
CRC_MASK = 0x7FFFFFFF
_EARLY_FIELDS = ("body_crc", "queue_id", "queue_offset", "sys_flag", "born_timestamp")
"""Those that lie at one place whatever kind the hosts are."""
_HEAD_SIZES = np.zeros(V6_FLAGS + 1, np.int64)
for _flags, _dtype in HEAD_DTYPES.items():
    _HEAD_SIZES[_flags] = _dtype.itemsize
_STORE_TIMESTAMP = {flags: field_offset(MESSAGE, "store_timestamp", sys_flag=flags) for flags in HEADS}


@attrs.frozen(eq=False)
class RecordColumns:
    """Intact records of one file, in order, a row each. Positions count from the file's start."""

    log: MappedLog
    starts: Positions
    ends: Positions
    body_crc: Column
    queue_id: Column
    queue_offset: Column
    sys_flag: Column
    born_timestamp: Column
    store_timestamp: Column
    body: Positions
    body_end: Positions
    topic: Positions
    topic_end: Positions
    properties: Positions

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def physical_offsets(self) -> Positions:
        """Where the records lie in the log."""
        return self.starts + self.log.first_offset

    @property
    def sizes(self) -> Positions:
        """Bytes of each record."""
        return self.ends - self.starts

    def rows(self, chosen: slice | Column) -> RecordColumns:
        """The records of these rows."""
        columns = {field.name: getattr(self, field.name) for field in attrs.fields(RecordColumns)}
        return RecordColumns(**{name: one if name == "log" else one[chosen] for name, one in columns.items()})

    def texts(self, begins: Positions, ends: Positions) -> list[bytes]:
        """The bytes of each span."""
        return list(map(self.log.data.__getitem__, map(slice, begins.tolist(), ends.tolist())))

    def property_texts(self, rows: Positions) -> list[bytes]:
        """The properties of these records as they are stored."""
        return self.texts(self.properties[rows], self.ends[rows])

    def wrong_bodies(self) -> Positions:
        """The rows whose body has another CRC than the record says; empty bodies are not checked, as in Apache."""
        with memoryview(self.log.data) as view:
            spans = zip(self.body.tolist(), self.body_end.tolist(), strict=True)
            found = np.array([zlib.crc32(view[begin:end]) for begin, end in spans], np.uint32)
        wrong = (found & CRC_MASK) != self.body_crc
        return np.flatnonzero(wrong & (self.body_end > self.body))


def bytes_at(log: MappedLog, begins: Positions, length: int) -> npt.NDArray[np.uint8]:
    """A copy of the `length` bytes at each place, a row each."""
    if not length:
        return np.zeros((len(begins), 0), np.uint8)
    found: Column = window(log.data, f"V{length}")[begins].view(np.uint8).reshape(-1, length)
    return found


def heads_at(log: MappedLog, starts: Positions) -> Column:
    """Copies of the heads there, with the fields as an IPv4 head has them."""
    return window(log.data, f"V{HEAD_BYTES}")[starts].view(HEAD_DTYPES[0])


def intact_records(log: MappedLog, starts: Positions) -> RecordColumns:
    """The leading ones of `starts` at which a whole record begins that does not reach into the next of them.

    `starts` ascend by at least SMALLEST_RECORD. The rules are those of twisted_mq.protocol.layouts.record.read_head and
    read_spans, and the record's own offset must be right; bodies are not looked at.
    """
    starts = starts[: np.searchsorted(starts, log.size - SMALLEST_RECORD, "right")]
    heads = heads_at(log, starts)
    magic, ends = heads["magic"], starts + heads["size"]
    flags = heads["sys_flag"] & V6_FLAGS
    body = starts + _HEAD_SIZES[flags]
    sound = (magic == MAGIC_V1) | (magic == MAGIC_V2)
    sound &= heads["physical_offset"] == starts + log.first_offset
    sound &= (ends <= np.append(starts[1:], log.size)) & (body + 3 <= ends)
    starts, ends, body, heads = _leading(sound, starts, ends, body, heads)
    body_end = body + window(log.data, ">i4")[body - 4]
    width = np.where(heads["magic"] == MAGIC_V1, 1, 2)
    topic = body_end + width
    sound = (body_end >= body) & (topic + 2 <= ends)
    starts, ends, body, heads, body_end, width, topic = _leading(
        sound, starts, ends, body, heads, body_end, width, topic
    )
    topic_end = topic + _topic_lengths(log, body_end, width)
    sound = (topic_end >= topic) & (topic_end + 2 <= ends)
    starts, ends, body, heads, body_end, topic, topic_end = _leading(
        sound, starts, ends, body, heads, body_end, topic, topic_end
    )
    properties = topic_end + 2
    length = window(log.data, ">i2")[topic_end].astype(np.int64)
    sound = (length >= 0) & (properties + length == ends)
    columns = _leading(sound, starts, ends, heads, body, body_end, topic, topic_end, properties)
    return _batch(log, *columns)


def _batch(
    log: MappedLog,
    starts: Positions,
    ends: Positions,
    heads: Column,
    body: Positions,
    body_end: Positions,
    topic: Positions,
    topic_end: Positions,
    properties: Positions,
) -> RecordColumns:
    early = {name: heads[name].astype(heads[name].dtype.newbyteorder("=")) for name in _EARLY_FIELDS}
    return RecordColumns(
        log,
        starts,
        ends,
        **early,
        store_timestamp=_store_timestamps(log, starts, heads),
        body=body,
        body_end=body_end,
        topic=topic,
        topic_end=topic_end,
        properties=properties,
    )


def _store_timestamps(log: MappedLog, starts: Positions, heads: Column) -> Column:
    """A host of 20 bytes before the field moves it."""
    flags = heads["sys_flag"] & V6_FLAGS
    places = np.zeros(V6_FLAGS + 1, np.int64)
    for variant, place in _STORE_TIMESTAMP.items():
        places[variant] = place
    stored: Column = window(log.data, ">i8")[starts + places[flags]].astype(np.int64)
    return stored


def _topic_lengths(log: MappedLog, positions: Positions, width: Positions) -> Positions:
    lengths = window(log.data, "i1")[positions].astype(np.int64)
    wide = width == 2
    if wide.any():
        lengths[wide] = window(log.data, ">i2")[positions[wide]]
    return lengths


def _leading(sound: npt.NDArray[np.bool_], *columns: Column) -> list[Column]:
    """The columns up to the first row that is not sound."""
    count = len(sound) if sound.all() else int(sound.argmin())
    return [column[:count] for column in columns]
