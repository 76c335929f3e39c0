"""Writes recorded traffic: segments of bounded size in a directory, each with a file of marks."""

from __future__ import annotations

import os
from typing import BinaryIO

import attrs

from twisted_mq.protocol.layouts.recording import MAGIC, MARK_STRUCT, encode_recorded

SEGMENT_SUFFIX, MARKS_SUFFIX = ".mqrec", ".mqmarks"
SEGMENT_BYTES = 256 * 1024 * 1024
MARK_BYTES = 1024 * 1024
"""The least number of bytes between two marks."""


@attrs.define
class SegmentWriter:
    """Appends frames to the newest segment of a directory, which is created if missing. Each run begins a new segment.

    A segment of more than `segment_bytes` is followed by another. `flush` hands the written data to the system.
    """

    directory: str
    segment_bytes: int = SEGMENT_BYTES
    mark_bytes: int = MARK_BYTES
    frames: int = 0
    _segment: BinaryIO | None = None
    _marks: BinaryIO | None = None
    _position: int = 0
    _next_mark: int = 0

    def append(self, time_us: int, from_client: bool, connection: bytes, frame: bytes) -> None:
        """Append a frame. Raises OSError."""
        segment = self._segment
        if segment is None or self._position >= self.segment_bytes:
            segment = self._begin()
        if self._position >= self._next_mark:
            assert self._marks is not None
            self._marks.write(MARK_STRUCT.pack(self._position, time_us))
            self._next_mark = self._position + self.mark_bytes
        self._position += segment.write(encode_recorded(time_us, from_client, connection, frame))
        self.frames += 1

    def _begin(self) -> BinaryIO:
        self.close()
        os.makedirs(self.directory, exist_ok=True)
        numbers = [int(name[:-6]) for name in os.listdir(self.directory) if name.endswith(SEGMENT_SUFFIX)]
        path = os.path.join(self.directory, f"{max(numbers, default=-1) + 1:010d}")
        self._segment = open(path + SEGMENT_SUFFIX, "xb")  # noqa: SIM115  # closed by close
        self._marks = open(path + MARKS_SUFFIX, "xb")  # noqa: SIM115
        self._position = self._next_mark = self._segment.write(MAGIC)
        return self._segment

    def flush(self) -> None:
        """Make the appended data visible to others: the segment first, so that no mark leads past its end."""
        for file in (self._segment, self._marks):
            if file is not None:
                file.flush()

    def close(self) -> None:
        """Close the files. A second call does nothing."""
        self.flush()
        for file in (self._segment, self._marks):
            if file is not None:
                file.close()
        self._segment = self._marks = None
