"""Recorded traffic: segments of frames as a recording proxy saw them, and marks at which a segment can be cut. Not Apache's.

A segment is its magic and recorded frames one behind the other. A last one that is not whole was being written.

    segment
    0      8    magic               "MQFRAMES"

    recorded frame
    0      8    time_us             when its last byte was there, since 1970
    8      1    from_client         1: from who connected, 0: to it
    9      1    connection_length
    10     ..   connection          "client:port>server:port"
    ..     4    frame_length
    ..     ..   frame               with its own length in front, as on the wire

A mark is in a file beside the segment and leads to the begin of a recorded frame.

    mark
    0      8    position            in the segment
    8      8    time_us             of that frame
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import construct

from twisted_mq.protocol.errors import FrameError
from twisted_mq.protocol.layouts.derive import derive_runs, derive_struct, require_variable

SEGMENT = construct.Struct("magic" / construct.Bytes(8))
RECORDED_FRAME = construct.Struct(
    "time_us" / construct.Int64sb,
    "from_client" / construct.Int8ub,
    "connection_length" / construct.Int8ub,
    "connection" / construct.Bytes(construct.this.connection_length),
    "frame_length" / construct.Int32ub,
    "frame" / construct.Bytes(construct.this.frame_length),
)
MARK = construct.Struct("position" / construct.Int64sb, "time_us" / construct.Int64sb)

MAGIC = b"MQFRAMES"
MARK_STRUCT = derive_struct(MARK, "position", "time_us")
_BEFORE_CONNECTION, _BEFORE_FRAME = derive_runs(RECORDED_FRAME)
_HEAD = _BEFORE_CONNECTION.of_all("time_us", "from_client", "connection_length")
_LENGTH = _BEFORE_FRAME.of_all("frame_length")
require_variable(RECORDED_FRAME, "connection", "frame")
MAX_FRAME_BYTES = 64 * 1024 * 1024
"""Longer ones are damage, not frames."""


class RecordedFrame(NamedTuple):
    """A frame, under RECORDED_FRAME's names; `position` is where it begins in what was read."""

    position: int
    time_us: int
    from_client: bool
    connection: str
    frame: bytes


def encode_recorded(time_us: int, from_client: bool, connection: bytes, frame: bytes) -> bytes:
    """Return the bytes that RECORDED_FRAME.build returns."""
    head = _HEAD.pack(time_us, from_client, len(connection))
    return b"".join((head, connection, _LENGTH.pack(len(frame)), frame))


def recorded_frames(data: bytes, offset: int = 0) -> Iterator[RecordedFrame]:
    """Yield the frames that are whole in these bytes, which begin at `offset` of a segment. Raises FrameError."""
    position, end = 0, len(data)
    while end - position >= _HEAD.size:
        time_us, from_client, size = _HEAD.unpack_from(data, position)
        named = position + _HEAD.size
        begin = named + size + _LENGTH.size
        if begin > end:
            return
        (length,) = _LENGTH.unpack_from(data, named + size)
        if length > MAX_FRAME_BYTES or from_client > 1:
            raise FrameError("no recorded frame begins here", offset + position)
        if begin + length > end:
            return
        connection = data[named : named + size].decode("ascii", "replace")
        yield RecordedFrame(offset + position, time_us, bool(from_client), connection, data[begin : begin + length])
        position = begin + length
