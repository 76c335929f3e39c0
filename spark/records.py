"""Many records at once: their leading fields as numpy columns, and where their variable fields lie.

The dtypes come from the construct declaration (protocol.record_layout.MESSAGE), one for each combination of IPv4 and
IPv6 hosts. Fields of a record do not lie back to back with those of the next; Arrow's `take` over spans of the mapped
file copies them together at the speed of memcpy, which is ten times faster than numpy's fancy indexing.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from protocol.derive import derive_dtype
from protocol.record_layout import HEADS, MAGIC_V1, MAGIC_V2, MESSAGE, SMALLEST_RECORD, V6_FLAGS
from spark.log_file import LogFile

Positions = npt.NDArray[np.int64]
Column = npt.NDArray[Any]

HEAD_DTYPES = {flags: derive_dtype(MESSAGE, sys_flag=flags) for flags in HEADS}
"""The leading fields up to body_length, by the two IPv6 bits of sys_flag."""
HOST_FIELDS = ("born_host", "store_host")
NUMBER_FIELDS = tuple(name for name in HEAD_DTYPES[0].names or () if name not in HOST_FIELDS)


@attrs.frozen(eq=False)
class Hosts:
    """The host fields of those rows that share an address length; `packed` is (rows, 8 or 20) bytes."""

    rows: Positions
    packed: npt.NDArray[np.uint8]


@attrs.frozen(eq=False)
class Records:
    """Intact records of one file, in order. Spans are positions in the file, one entry a record."""

    log: LogFile
    starts: Positions
    fields: dict[str, Column]
    hosts: dict[str, list[Hosts]]
    body: Positions
    body_end: Positions
    topic: Positions
    topic_end: Positions
    properties: Positions
    end: Positions

    def __len__(self) -> int:
        return len(self.starts)

    def select(self, rows: npt.NDArray[Any]) -> Records:
        """The records of these rows, which must be in ascending order."""
        return load_records(self.log, self.starts[rows])


def gather(log: LogFile, begins: Positions, ends: Positions) -> pa.BinaryArray:
    """The bytes of each span, copied back to back. Spans must ascend and not overlap: Arrow checks nothing here."""
    count = len(begins)
    if not count:
        return pa.array([], pa.binary())
    base = int(begins[0])
    offsets = np.empty(2 * count, np.int32)
    offsets[0::2] = begins - base
    offsets[1::2] = ends - base
    span = int(ends[-1]) - base
    data = pa.py_buffer(log.data).slice(base, span)
    both = pa.Array.from_buffers(pa.binary(), 2 * count - 1, [None, pa.py_buffer(offsets), data])
    return both.take(pa.array(np.arange(0, 2 * count, 2, dtype=np.int32)))


def _heads(log: LogFile, starts: Positions, dtype: np.dtype[Any]) -> Column:
    packed = gather(log, starts, starts + dtype.itemsize)
    if not len(packed):
        return np.empty(0, dtype)
    return np.frombuffer(packed.buffers()[2], dtype, len(starts))


def _lengths(log: LogFile, positions: Positions, width: int) -> Positions:
    """The signed big-endian numbers of 1 or 2 bytes at these positions."""
    data = np.frombuffer(log.data, np.int8)
    high = data[positions].astype(np.int64)
    if width == 1:
        return high
    return (high << 8) | data[positions + 1].view(np.uint8)


def intact_starts(log: LogFile, starts: Positions) -> Positions:
    """The leading ones of `starts` at which a whole record begins that does not reach into the next of them.

    `starts` ascend; those behind one that no record fits before are not looked at. The rules are those of
    protocol.record_layout.read_head and read_spans, and the record's own offset must be right.
    """
    starts = starts[: np.searchsorted(starts, log.size - SMALLEST_RECORD, "right")]
    apart = np.diff(starts) < SMALLEST_RECORD
    if apart.any():
        starts = starts[: int(apart.argmax()) + 1]
    heads = _heads(log, starts, HEAD_DTYPES[0])
    limits = np.append(starts[1:], log.size)
    ends = starts + heads["size"]
    magic = heads["magic"]
    sound = (magic == MAGIC_V1) | (magic == MAGIC_V2)
    sound &= heads["physical_offset"] == starts + log.first_offset
    sound &= ends <= limits
    flags = heads["sys_flag"] & V6_FLAGS
    head_ends = starts + _head_sizes(flags)
    sound &= head_ends + 3 <= ends
    starts, ends, head_ends, magic = _leading(sound, starts, ends, head_ends, magic)
    return starts[: _sound_lengths(log, head_ends, ends, magic)]


def _head_sizes(flags: Column) -> Positions:
    sizes = np.zeros(V6_FLAGS + 1, np.int64)
    for variant, dtype in HEAD_DTYPES.items():
        sizes[variant] = dtype.itemsize
    return sizes[flags]


def _leading(sound: npt.NDArray[np.bool_], *columns: Column) -> list[Column]:
    """The columns up to the first row that is not sound."""
    count = len(sound) if sound.all() else int(sound.argmin())
    return [column[:count] for column in columns]


def _sound_lengths(log: LogFile, head_ends: Positions, ends: Positions, magic: Column) -> int:
    """How many leading records have lengths that add up to their size."""
    body = _big_endian_32(log, head_ends - 4)
    body_end = head_ends + body
    width = np.where(magic == MAGIC_V1, 1, 2)
    sound = (body >= 0) & (body_end + width + 2 <= ends)
    body_end, width, ends = _leading(sound, body_end, width, ends)
    topic = _topic_lengths(log, body_end, width)
    topic_end = body_end + width + topic
    sound = (topic >= 0) & (topic_end + 2 <= ends)
    topic_end, ends = _leading(sound, topic_end, ends)
    properties = _lengths(log, topic_end, 2)
    sound = (properties >= 0) & (topic_end + 2 + properties == ends)
    return len(_leading(sound, ends)[0])


def _big_endian_32(log: LogFile, positions: Positions) -> Positions:
    return (_lengths(log, positions, 2) << 16) | (_lengths(log, positions + 2, 2) & 0xFFFF)


def _topic_lengths(log: LogFile, positions: Positions, width: Positions) -> Positions:
    lengths = _lengths(log, positions, 1)
    wide = width == 2
    if wide.any():
        lengths[wide] = _lengths(log, positions[wide], 2)
    return lengths


def load_records(log: LogFile, starts: Positions) -> Records:
    """The records at these positions, which `intact_starts` has passed."""
    flags = _heads(log, starts, HEAD_DTYPES[0])["sys_flag"] & V6_FLAGS
    variants = np.unique(flags).tolist() or [0]
    groups = [(np.flatnonzero(flags == variant), HEAD_DTYPES[variant]) for variant in variants]
    heads = [(rows, _heads(log, starts[rows], dtype)) for rows, dtype in groups]
    fields = {name: _merged(heads, name, len(starts)) for name in NUMBER_FIELDS}
    hosts = {name: [Hosts(rows, np.ascontiguousarray(head[name])) for rows, head in heads] for name in HOST_FIELDS}
    body = starts + _head_sizes(flags)
    body_end = body + fields["body_length"]
    width = np.where(fields["magic"] == MAGIC_V1, 1, 2)
    topic = body_end + width
    topic_end = topic + _topic_lengths(log, body_end, width)
    end = starts + fields["size"]
    return Records(log, starts, fields, hosts, body, body_end, topic, topic_end, topic_end + 2, end)


def _merged(heads: list[tuple[Positions, Column]], name: str, count: int) -> Column:
    """One field of all rows in the machine's byte order."""
    dtype = heads[0][1].dtype[name].newbyteorder("=")
    merged = np.empty(count, dtype)
    for rows, head in heads:
        merged[rows] = head[name]
    return merged
