"""Many records at once: their leading fields as numpy columns, and where their variable fields lie.

Which records are intact is storage.columns.record_columns' to say. Variable fields of a record do not lie back to back with those
 of the next; Arrow's `take` over spans of the mapped file copies them together at the speed of memcpy.
"""

from __future__ import annotations

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from twisted_mq.protocol.columns import Numbers, Positions
from twisted_mq.protocol.layouts.record_columns import hosts_at
from twisted_mq.storage.columns.record_columns import RecordColumns
from twisted_mq.storage.files.mapped_log import LogBytes


@attrs.frozen(eq=False)
class Hosts:
    """The host fields of those rows that share an address length; `packed` is (rows, 8 or 20) bytes."""

    rows: Positions
    packed: npt.NDArray[np.uint8]


class Records:
    """Intact records of one file, in order, a row each: where they and their parts lie, and their leading fields."""

    def __init__(self, spans: RecordColumns) -> None:
        self.spans = spans

    def __len__(self) -> int:
        return len(self.spans)

    def numbers(self, name: str) -> Numbers:
        """A field in the machine's byte order."""
        column = self.spans.heads[name]
        return column.astype(column.dtype.newbyteorder("="))

    def hosts(self, name: str) -> list[Hosts]:
        """A host field, by the length of its addresses."""
        return [Hosts(*found) for found in hosts_at(self.spans.log.data, self.spans.starts, self.spans.heads, name)]

    def select(self, rows: Positions) -> Records:
        """The records of these rows, which must be in ascending order."""
        return Records(self.spans.rows(rows))


def gather(log: LogBytes, begins: Positions, ends: Positions) -> pa.BinaryArray:
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
