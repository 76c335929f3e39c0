"""The checkpoint file: up to which store time log, queues and index are on disk (Apache: StoreCheckpoint)."""

from __future__ import annotations

import os

import attrs

from protocol.checkpoint_layout import CHECKPOINT_FILE_BYTES, CHECKPOINT_STRUCT
from storage.mapped_file import Sync

SAFETY_MS = 3000
"""Apache: StoreCheckpoint.getMinTimestamp goes back three seconds."""


@attrs.define
class Checkpoint:
    """Store times in ms and offsets, as CHECKPOINT declares them; 0 where nothing is known."""

    path: str
    physic_msg_timestamp: int = 0
    logics_msg_timestamp: int = 0
    index_msg_timestamp: int = 0
    master_flushed_offset: int = 0
    confirm_physical_offset: int = 0

    @classmethod
    def load(cls, path: str) -> Checkpoint:
        """Read the file; one that is missing, too short, or holds times before 1970 counts as unknown."""
        try:
            with open(path, "rb") as file:
                data = file.read(CHECKPOINT_STRUCT.size)
        except FileNotFoundError:
            return cls(path)
        values = CHECKPOINT_STRUCT.unpack(data) if len(data) == CHECKPOINT_STRUCT.size else ()
        return cls(path, *values) if values and min(values[:3]) >= 0 else cls(path)

    @property
    def min_timestamp(self) -> int:
        """Everything stored up to this time is on disk, in the log and in the queues."""
        return max(0, min(self.physic_msg_timestamp, self.logics_msg_timestamp) - SAFETY_MS)

    def save(self, sync: Sync = os.fdatasync) -> None:
        """Write and flush the file; its 40 bytes lie in one disk sector. Raises OSError."""
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            if os.fstat(descriptor).st_size != CHECKPOINT_FILE_BYTES:
                os.ftruncate(descriptor, CHECKPOINT_FILE_BYTES)
            os.pwrite(descriptor, CHECKPOINT_STRUCT.pack(*self._values()), 0)
            sync(descriptor)
        finally:
            os.close(descriptor)

    def _values(self) -> tuple[int, int, int, int, int]:
        return (
            self.physic_msg_timestamp,
            self.logics_msg_timestamp,
            self.index_msg_timestamp,
            self.master_flushed_offset,
            self.confirm_physical_offset,
        )
