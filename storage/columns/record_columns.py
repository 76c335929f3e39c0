"""The intact records of a mapped file, with the fields that most readers need as numpy columns."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable

import attrs
import numpy as np

from twisted_mq.protocol.columns import Bytes, Mask, Numbers, Positions, window
from twisted_mq.protocol.layouts.checksum import crc32
from twisted_mq.protocol.layouts.record import CRC_MASK, MAGIC_V1, MAGIC_V2, SMALLEST_RECORD
from twisted_mq.protocol.layouts.record_columns import Heads, crc32s, heads_at, spans_at, walk_records
from twisted_mq.storage.columns.chain import chained
from twisted_mq.storage.files.mapped_log import LogBytes


@attrs.frozen(eq=False)
class RecordColumns:
    """Intact records of one file, in order, one row each. Positions count from the file's start.

    Each column of numbers from the records' heads is made at its first use.
    """

    log: LogBytes
    heads: Heads
    starts: Positions
    ends: Positions
    body: Positions
    body_end: Positions
    topic: Positions
    topic_end: Positions
    properties: Positions

    def __len__(self) -> int:
        return len(self.starts)

    def numbers(self, name: str) -> Numbers:
        """Return a field of the heads, in the machine's byte order."""
        column = self.heads[name]
        return column.astype(column.dtype.newbyteorder("="))

    @functools.cached_property
    def body_crc(self) -> Numbers:
        return self.numbers("body_crc")

    @functools.cached_property
    def queue_id(self) -> Numbers:
        return self.numbers("queue_id")

    @functools.cached_property
    def queue_offset(self) -> Numbers:
        return self.numbers("queue_offset")

    @functools.cached_property
    def sys_flag(self) -> Numbers:
        return self.numbers("sys_flag")

    @functools.cached_property
    def store_timestamp(self) -> Numbers:
        return self.numbers("store_timestamp")

    @property
    def physical_offsets(self) -> Positions:
        """Return the physical offsets of the records."""
        return self.starts + self.log.first_offset

    @property
    def sizes(self) -> Positions:
        """Return the length of each record in bytes."""
        return self.ends - self.starts

    def rows(self, chosen: slice | Numbers | Mask) -> RecordColumns:
        """Return the records of these rows."""
        columns = {field.name: getattr(self, field.name) for field in attrs.fields(RecordColumns)}
        return RecordColumns(**{name: one if name == "log" else one[chosen] for name, one in columns.items()})

    def texts(self, begins: Positions, ends: Positions) -> list[bytes]:
        """Return the bytes of each span."""
        return list(map(self.log.data.__getitem__, map(slice, begins.tolist(), ends.tolist())))

    def property_texts(self, rows: Positions) -> list[bytes]:
        """Return the properties of these records as they are stored."""
        return self.texts(self.properties[rows], self.ends[rows])

    def wrong_bodies(self, copied: Callable[[], Iterable[bytes]] | None = None) -> Positions:
        """Return the rows whose body does not match the record's CRC; empty bodies are not checked, as in Apache.

        `copied` returns the records' bodies, if they were copied already.
        """
        found = crc32s(self.log.data, self.body, self.body_end)
        if found is None:
            copies = self.texts(self.body, self.body_end) if copied is None else copied()
            found = np.fromiter(map(crc32, copies), np.uint32, len(self))
        wrong = (found & CRC_MASK) != self.body_crc
        return np.flatnonzero(wrong & (self.body_end > self.body))


def bytes_at(log: LogBytes, begins: Positions, length: int) -> Bytes:
    """Return a copy of the `length` bytes at each place, one row each."""
    if not length:
        return np.zeros((len(begins), 0), np.uint8)
    found: Bytes = window(log.data, f"V{length}")[begins].view(np.uint8).reshape(-1, length)
    return found


def intact_records(log: LogBytes, starts: Positions, *, in_place: bool = True) -> RecordColumns:
    """Return the longest leading part of `starts` at which whole records begin that do not overlap.

    `starts` ascend by at least SMALLEST_RECORD. The rules are those of twisted_mq.protocol.layouts.record.read_head and
    read_spans, and with `in_place` the record's own offset must be right. Bodies are not checked.
    """
    starts = starts[: np.searchsorted(starts, log.size - SMALLEST_RECORD, "right")]
    heads = heads_at(log.data, starts)
    spans, sound = spans_at(log.data, starts, heads)
    sound &= (heads["magic"] == MAGIC_V1) | (heads["magic"] == MAGIC_V2)
    sound &= spans.end <= np.append(starts[1:], log.size)
    if in_place:
        sound &= heads["physical_offset"] == starts + log.first_offset
    count = len(sound) if sound.all() else int(sound.argmin())
    body, body_end, topic, topic_end, properties, ends = (column[:count] for column in spans)
    return RecordColumns(log, heads[:count], starts[:count], ends, body, body_end, topic, topic_end, properties)


def following_records(log: LogBytes, position: int, end: int) -> RecordColumns:
    """Return the intact records that follow each other from `position` on and begin before `end`, up to the first damage.

    Without compiled code they are found by their sizes first.
    """
    found = walk_records(log.data, position, end, log.first_offset)
    if found is None:
        return intact_records(log, chained(log, position, end))
    starts, heads, spans = found
    return RecordColumns(
        log, heads, starts, spans.end, spans.body, spans.body_end, spans.topic, spans.topic_end, spans.properties
    )
