"""Writes recorded traffic: segments of bounded size in a directory, each with a file of marks beside it."""

from __future__ import annotations

import os
from typing import BinaryIO

import attrs

from twisted_mq.protocol.layouts.recording import MAGIC, MARK_STRUCT, encode_recorded

SEGMENT_SUFFIX, MARKS_SUFFIX = ".mqrec", ".mqmarks"
SEGMENT_BYTES = 256 * 1024 * 1024
MARK_BYTES = 1024 * 1024
"""So much lies between two marks at least."""


@attrs.define
class SegmentWriter:
    """Appends frames to the newest segment of a directory, which is made if missing; each run begins one of its own.

    A segment that has more than `segment_bytes` is followed by another. `flush` hands what was written to the system.
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
        """Raises OSError."""
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
        """Others see what was appended; the segment first, so that no mark leads behind it."""
        for file in (self._segment, self._marks):
            if file is not None:
                file.flush()

    def close(self) -> None:
        """A second call does nothing."""
        self.flush()
        for file in (self._segment, self._marks):
            if file is not None:
                file.close()
        self._segment = self._marks = None
