"""Arrow arrays of bytes and text: cutting spans out of a buffer, replacing single rows, repairing damaged UTF-8."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from twisted_mq.protocol.columns import Positions
from twisted_mq.protocol.text.java import from_utf8, utf8
from twisted_mq.storage.files.mapped_log import LogBytes

_FIRST_NON_ASCII = 0x80


def split_buffers(array: pa.Array) -> tuple[Positions, npt.NDArray[np.uint8]]:
    """Return offsets (one more than rows, the first is 0) and bytes of a binary or text array without nulls."""
    if not len(array):
        return np.zeros(1, np.int64), np.empty(0, np.uint8)
    offsets = np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + len(array) + 1]
    first, last = int(offsets[0]), int(offsets[-1])
    buffer = array.buffers()[2]
    data = np.frombuffer(buffer, np.uint8)[first:last] if buffer is not None else np.empty(0, np.uint8)
    return offsets.astype(np.int64) - first, data


def spans(data: npt.NDArray[np.uint8] | pa.Buffer, begins: Positions, ends: Positions, kind: pa.DataType) -> pa.Array:
    """Return the bytes of each span. Spans must ascend, not overlap and lie in `data`: Arrow checks nothing here."""
    count = len(begins)
    if not count:
        return pa.array([], kind)
    offsets = np.empty(2 * count, np.int32)
    offsets[0::2] = begins
    offsets[1::2] = ends
    both = pa.Array.from_buffers(kind, 2 * count - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    return both.take(pa.array(np.arange(0, 2 * count, 2, dtype=np.int32)))


def gather(log: LogBytes, begins: Positions, ends: Positions) -> pa.BinaryArray:
    """Copy the bytes of each span of a log, one after the other. Spans must ascend and not overlap: Arrow checks nothing here."""
    if not len(begins):
        return pa.array([], pa.binary())
    base = int(begins[0])
    return spans(pa.py_buffer(log.data).slice(base, int(ends[-1]) - base), begins - base, ends - base, pa.binary())


def replace_rows(array: pa.Array, rows: Positions, values: Sequence[object]) -> pa.Array:
    """Return the array with the values of these rows replaced."""
    if not len(rows):
        return array
    where = np.arange(len(array))
    where[rows] = len(array) + np.arange(len(rows))
    return pa.concat_arrays([array, pa.array(values, array.type)]).take(pa.array(where))


def invalid_utf8_rows(array: pa.BinaryArray) -> Positions:
    """Return the rows that are not UTF-8."""
    offsets, data = split_buffers(array)
    if not len(data) or data.max() < _FIRST_NON_ASCII:
        return np.empty(0, np.int64)
    suspects = np.unique(np.searchsorted(offsets, np.flatnonzero(data >= _FIRST_NON_ASCII), "right") - 1)
    return np.array([row for row in suspects.tolist() if not _is_utf8(array[row].as_py())], np.int64)


def _is_utf8(data: bytes) -> bool:
    return utf8(from_utf8(data)) == data


def as_text(array: pa.BinaryArray) -> pa.StringArray:
    """Return the bytes as text; damaged UTF-8 becomes U+FFFD, as in twisted_mq.protocol.text.java.from_utf8."""
    rows = invalid_utf8_rows(array)
    array = replace_rows(array, rows, [utf8(from_utf8(array[row].as_py())) for row in rows.tolist()])
    return array.cast(pa.string())
