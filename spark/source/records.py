"""Many records at once: their leading fields as numpy columns, and where their variable fields lie.

Which records are intact is storage.columns.record_columns' to say. Variable fields of a record do not lie back to back with those
 of the next; Arrow's `take` over spans of the mapped file copies them together at the speed of memcpy.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from twisted_mq.protocol.layouts.record import V6_FLAGS
from twisted_mq.protocol.text.java_hash_columns import Positions
from twisted_mq.storage.columns.record_columns import HEAD_DTYPES, Column, RecordColumns, bytes_at
from twisted_mq.storage.files.mapped_log import MappedLog

HOST_FIELDS = ("born_host", "store_host")
NUMBER_FIELDS = tuple(name for name in HEAD_DTYPES[0].names or () if name not in HOST_FIELDS)


@attrs.frozen(eq=False)
class Hosts:
    """The host fields of those rows that share an address length; `packed` is (rows, 8 or 20) bytes."""

    rows: Positions
    packed: npt.NDArray[np.uint8]


@attrs.frozen(eq=False)
class Records:
    """Intact records of one file, in order: where they and their parts lie, and their leading fields, a row each."""

    spans: RecordColumns
    fields: dict[str, Column]
    hosts: dict[str, list[Hosts]]

    def __len__(self) -> int:
        return len(self.spans)

    def select(self, rows: Positions) -> Records:
        """The records of these rows, which must be in ascending order."""
        return load_records(self.spans.rows(rows))


def gather(log: MappedLog, begins: Positions, ends: Positions) -> pa.BinaryArray:
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


def load_records(spans: RecordColumns) -> Records:
    """These records, with all their leading fields."""
    flags = spans.sys_flag & V6_FLAGS
    variants = np.unique(flags).tolist() or [0]
    groups = [(np.flatnonzero(flags == variant), HEAD_DTYPES[variant]) for variant in variants]
    heads = [(rows, _heads(spans.log, spans.starts[rows], dtype)) for rows, dtype in groups]
    fields = {name: _merged(heads, name, len(spans)) for name in NUMBER_FIELDS}
    hosts = {name: [Hosts(rows, np.ascontiguousarray(head[name])) for rows, head in heads] for name in HOST_FIELDS}
    return Records(spans, fields, hosts)


def _heads(log: MappedLog, starts: Positions, dtype: np.dtype[Any]) -> Column:
    return bytes_at(log, starts, dtype.itemsize).view(dtype)[:, 0]


def _merged(heads: list[tuple[Positions, Column]], name: str, count: int) -> Column:
    """One field of all rows in the machine's byte order."""
    dtype = heads[0][1].dtype[name].newbyteorder("=")
    merged = np.empty(count, dtype)
    for rows, head in heads:
        merged[rows] = head[name]
    return merged
