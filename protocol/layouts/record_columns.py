"""Many records at once: their leading fields as numpy columns, and where their variable fields lie.

All comes from MESSAGE: a dtype for the heads of each combination of IPv4 and IPv6 hosts, the tail's lengths by version.
A window is an array over a mapped file with an element at every byte; indexing it with positions copies each head in
50 ns, whatever its alignment. The readable twins are `record.read_head` and `read_spans`. Positions count from the
buffer's start.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from twisted_mq.protocol.columns import Buffer, Bytes, Mask, Positions, window
from twisted_mq.protocol.layouts import compiled
from twisted_mq.protocol.layouts.derive import derive_dtype, derive_runs
from twisted_mq.protocol.layouts.record import HEAD_BYTES, HEADS, MAGIC_V1, MAGIC_V2, MESSAGE, SMALLEST_RECORD, V6_FLAGS
from twisted_mq.protocol.layouts.value_order import require_names

Heads = npt.NDArray[np.void]
"""An array of the dtype of heads with IPv4 hosts."""

_DTYPES = {flags: derive_dtype(MESSAGE, sys_flag=flags) for flags in HEADS}
"""By the two IPv6 bits of sys_flag."""
SIZE_DTYPE = _DTYPES[0]["size"]
"""The dtype of a record's first number, its length."""
HOST_FIELDS = ("born_host", "store_host")
NUMBER_FIELDS = tuple(name for name in _DTYPES[0].names or () if name not in HOST_FIELDS)
_MOVED_FIELDS = tuple(
    name for name in NUMBER_FIELDS if len({dtype.fields[name][1] for dtype in _DTYPES.values() if dtype.fields}) > 1
)
"""The fields after a host: their place is not the same in all heads."""
_HEAD_SIZES = np.zeros(V6_FLAGS + 1, np.int64)
for _flags, _dtype in _DTYPES.items():
    _HEAD_SIZES[_flags] = _dtype.itemsize
_LONG_SPAN = 384
"""Bytes of a span from which ISA-L's CRC-32 is quicker, with a copy and a call for each span, than compiled code."""
_TAILS = {
    magic: [(run.size, run.as_dtype()[-1]) for run in list(derive_runs(MESSAGE, sys_flag=0, magic=magic))[1:]]
    for magic in (MAGIC_V1, MAGIC_V2)
}
"""By version: the size of each run behind the head, and the kind of number that it is."""


class SpanColumns(NamedTuple):
    """RecordSpans of many records."""

    body: Positions
    body_end: Positions
    topic: Positions
    topic_end: Positions
    properties: Positions
    end: Positions


def heads_at(data: Buffer, starts: Positions) -> Heads:
    """Return copies of the heads there, each followed by at least HEAD_BYTES; they do not contain IPv6 hosts."""
    return _moved(window(data, f"V{HEAD_BYTES}")[starts].view(_DTYPES[0]), data, starts)


def _moved(heads: Heads, data: Buffer, starts: Positions) -> Heads:
    """Return copies of the first HEAD_BYTES of records as heads: fields behind an IPv6 host come from their own places."""
    kinds = heads["sys_flag"] & V6_FLAGS
    for flags in np.unique(kinds[kinds != 0]).tolist() if kinds.any() else ():
        rows = np.flatnonzero((kinds == flags) & (starts + _HEAD_SIZES[flags] <= len(data)))
        moved = _of_kind(data, starts[rows], flags)
        for name in _MOVED_FIELDS:
            heads[name][rows] = moved[name]
    return heads


def hosts_at(data: Buffer, starts: Positions, heads: Heads, name: str) -> list[tuple[Positions, Bytes]]:
    """Return (rows, their addresses of 8 or 20 bytes) for each kind of hosts among whole records."""
    kinds = heads["sys_flag"] & V6_FLAGS
    found = []
    for flags in np.unique(kinds).tolist():
        rows = np.flatnonzero(kinds == flags)
        packed = np.ascontiguousarray(_of_kind(data, starts[rows], flags)[name] if flags else heads[name][rows])
        found.append((rows, packed.view(np.uint8).reshape(len(rows), -1)))
    return found


def _of_kind(data: Buffer, starts: Positions, flags: int) -> Heads:
    """Return copies of heads with hosts of one kind."""
    dtype = _DTYPES[flags]
    return window(data, f"V{dtype.itemsize}")[starts].view(dtype)


def spans_at(data: Buffer, starts: Positions, heads: Heads) -> tuple[SpanColumns, Mask]:
    """Return where body, topic and properties are, of records of either version, whose heads these are; and whose are right.

    Others' lengths do not add up to their sizes, and their places mean nothing.
    """
    ends, kinds = starts + heads["size"], heads["sys_flag"] & V6_FLAGS
    begins = starts + (_HEAD_SIZES[kinds] if kinds.any() else HEAD_BYTES)
    lengths = heads["body_length"].astype(np.int64)
    version_2 = np.flatnonzero(heads["magic"] != MAGIC_V1)
    sound: Mask = ends <= len(data)
    spans: list[Positions] = []
    for (size, kind), (size_2, kind_2) in zip(_TAILS[MAGIC_V1], _TAILS[MAGIC_V2], strict=True):
        stops = begins + lengths
        spans += begins, stops
        begins = stops + size
        if len(version_2):
            begins[version_2] += size_2 - size
        sound &= (lengths >= 0) & (begins <= ends)
        places = stops if sound.all() else np.where(sound, stops, starts)
        lengths = window(data, kind)[places].astype(np.int64)
        if len(version_2):
            lengths[version_2] = window(data, kind_2)[places[version_2]]
    sound &= (lengths >= 0) & (begins + lengths == ends)
    return SpanColumns._make((*spans, begins, ends)), sound


def walk_records(
    data: Buffer, position: int, end: int, first_offset: int
) -> tuple[Positions, Heads, SpanColumns] | None:
    """Return where records begin in [position, end), up to the first place without a whole record of its own offset.

    `first_offset` is the physical offset of the buffer's start. None without compiled code, or for bytes that it does not take.
    """
    walk = compiled.forms.walk_records
    found = None if walk is None else walk(data, position, end, first_offset, _walked_layout())
    if found is None:
        return None
    heads, columns = np.frombuffer(found[0], _DTYPES[0]), np.frombuffer(found[1], np.int64)
    starts, *spans = columns.reshape(len(SpanColumns._fields) + 1, -1)
    return starts, _moved(heads, data, starts), SpanColumns._make(spans)


@functools.cache
def _walked_layout() -> bytes:
    """Return the numbers that compiled code needs: places in the head, sizes of a topic's length by version, kinds of heads."""
    versions: list[int] = []
    for magic, length in ((MAGIC_V1, "b"), (MAGIC_V2, "h")):
        _, topic, properties = derive_runs(MESSAGE, sys_flag=0, magic=magic)
        require_names(topic.names + properties.names, ("topic_length", "properties_length"), "compiled code")
        compiled.places(properties, properties_length="h")
        versions += magic, compiled.places(topic, topic_length=length)[1]
    kinds: list[int] = []
    for flags in HEADS:
        head = next(derive_runs(MESSAGE, sys_flag=flags))
        place, size = compiled.places(head, body_length="l")
        kinds += flags, size, place
    *places, head_bytes = compiled.places(
        next(derive_runs(MESSAGE, sys_flag=0)), size="l", magic="l", physical_offset="q", sys_flag="l"
    )
    return np.array((*places, V6_FLAGS, head_bytes, SMALLEST_RECORD, *versions, *kinds), np.int32).tobytes()


def crc32s(data: Buffer, begins: Positions, ends: Positions) -> npt.NDArray[np.uint32] | None:
    """Return the CRC-32 of each span. None without compiled code, or where Python is quicker: for long spans."""
    compute = compiled.forms.crc32s
    if compute is None or (ends - begins).sum() > _LONG_SPAN * len(begins):
        return None
    found = compute(data, np.ascontiguousarray(begins), np.ascontiguousarray(ends))
    return None if found is None else np.frombuffer(found, np.uint32)
