"""Files of recorded frames: segments of `mq record`, packets, and plain frames one after the other.

.mqrec             segments; with their marks a large one is read by several tasks
.pcap .pcapng      packets, see `packets`
any other          frames; NAME.json beside NAME.frames has the time and connection of each
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Iterator

import attrs
import numpy as np

from twisted_mq.protocol.errors import FrameError
from twisted_mq.protocol.layouts.derive import derive_dtype
from twisted_mq.protocol.layouts.recording import MAGIC, MARK, recorded_frames
from twisted_mq.protocol.wire.framing import LENGTH_BYTES, frame_bytes
from twisted_mq.spark.errors import StoreReadError
from twisted_mq.spark.tables.frames import FROM_CLIENT, TO_CLIENT, Seen
from twisted_mq.spark.tables.packets import packet_frames

SEGMENT_SUFFIX, MARKS_SUFFIX, FRAMES_SUFFIX = ".mqrec", ".mqmarks", ".frames"
PACKETS_SUFFIXES = (".pcap", ".pcapng")
SUFFIXES = (SEGMENT_SUFFIX, FRAMES_SUFFIX, *PACKETS_SUFFIXES)
PART_BYTES = 64 << 20
"""Approximate number of bytes of a segment that a task reads."""


@attrs.frozen
class FramePart:
    """A range of bytes of a file."""

    path: str
    begin: int
    end: int


def parts_of(path: str, part_bytes: int = PART_BYTES) -> list[FramePart]:
    """Return the parts of a file, or of the files of a directory with one of SUFFIXES."""
    if not os.path.exists(path):
        raise StoreReadError(f"{path}: no such file or directory")
    files = [path]
    if os.path.isdir(path):
        files = sorted(entry.path for entry in os.scandir(path) if entry.name.endswith(SUFFIXES))
    return [part for file in files for part in _parts(file, part_bytes)]


def _parts(path: str, part_bytes: int) -> Iterator[FramePart]:
    """Return the parts of a file: a segment is cut at marks, other files have one part."""
    size = os.path.getsize(path)
    marks = path.removesuffix(SEGMENT_SUFFIX) + MARKS_SUFFIX
    cuts = [0]
    if path.endswith(SEGMENT_SUFFIX) and os.path.exists(marks):
        entry = derive_dtype(MARK)
        found = np.fromfile(marks, entry, os.path.getsize(marks) // entry.itemsize)["position"]
        for position in found.tolist():
            if position - cuts[-1] >= part_bytes and position < size:
                cuts.append(position)
    yield from (FramePart(path, *between) for between in itertools.pairwise([*cuts, size]))


def seen_in(part: FramePart) -> Iterator[Seen]:
    """Yield the frames of a part. Raises StoreReadError."""
    readers: dict[str, Callable[[FramePart], Iterator[Seen]]] = {
        SEGMENT_SUFFIX: _in_segment, **dict.fromkeys(PACKETS_SUFFIXES, _in_packets),
    }  # fmt: skip
    return readers.get(os.path.splitext(part.path)[1], _in_frames)(part)


def _in_segment(part: FramePart) -> Iterator[Seen]:
    with open(part.path, "rb") as file:
        file.seek(part.begin)
        data = file.read(part.end - part.begin)
    begin = 0
    if not part.begin:
        begin = len(MAGIC)
        if data[:begin] != MAGIC[: len(data)]:
            raise StoreReadError(f"{part.path}: is not a segment of recorded frames")
    try:
        for one in recorded_frames(data[begin:], part.begin + begin):
            direction = FROM_CLIENT if one.from_client else TO_CLIENT
            yield Seen(one.position, one.frame, one.time_us, one.connection, direction)
    except FrameError as error:
        raise StoreReadError(f"{part.path} at offset {error.offset}: {error.reason}") from error


def _in_packets(part: FramePart) -> Iterator[Seen]:
    with open(part.path, "rb") as file:
        for number, (time_us, from_client, connection, frame) in enumerate(packet_frames(file, part.path)):
            yield Seen(number, frame, time_us, connection, FROM_CLIENT if from_client else TO_CLIENT)


def _in_frames(part: FramePart) -> Iterator[Seen]:
    said = _said(part.path)
    with open(part.path, "rb") as file:
        offset = 0
        while start := file.read(LENGTH_BYTES):
            try:
                size = frame_bytes(start.ljust(LENGTH_BYTES, b"\xff"), offset)
            except FrameError as error:
                raise StoreReadError(f"{part.path}: no frame at offset {offset}: {error.reason}") from error
            data = start + file.read(size - len(start))
            if len(data) < size:
                raise StoreReadError(f"{part.path}: no frame at offset {offset}: {len(data)} of {size} bytes")
            yield Seen(offset, data, *said.get(offset, ()))
            offset += size


def _said(path: str) -> dict[int, tuple[int, str, str]]:
    """Read the JSON file beside it: time since its begin, connection and direction by offset."""
    beside = path.removesuffix(FRAMES_SUFFIX) + ".json"
    if beside == path or not os.path.exists(beside):
        return {}
    with open(beside, encoding="utf-8") as file:
        lines = json.load(file)
    return {one["offset"]: (one["t_ms"] * 1000, str(one["connection"]), one["direction"]) for one in lines}
