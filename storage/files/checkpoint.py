"""The checkpoint file: the store times up to which log, queues and index are on disk (Apache: StoreCheckpoint)."""

from __future__ import annotations

import os

import attrs

from twisted_mq.protocol.layouts.checkpoint import CHECKPOINT, CHECKPOINT_FILE_BYTES
from twisted_mq.protocol.layouts.derive import derive_struct
from twisted_mq.storage.files.system_calls import Sync, fdatasync

SAFETY_MS = 3000
"""Apache: StoreCheckpoint.getMinTimestamp goes back three seconds."""


@attrs.define
class Checkpoint:
    """Store times in ms and offsets, as CHECKPOINT declares them; 0 for unknown values."""

    path: str
    physic_msg_timestamp: int = 0
    logics_msg_timestamp: int = 0
    index_msg_timestamp: int = 0
    master_flushed_offset: int = 0
    confirm_physical_offset: int = 0

    @classmethod
    def load(cls, path: str) -> Checkpoint:
        """Read the file. If it is missing, too short, or holds times before 1970, all values are unknown."""
        data = read_beginning(path, _STRUCT.size)
        values = _STRUCT.unpack(data) if data else ()
        return cls(path, *values) if values and min(values[:3]) >= 0 else cls(path)

    @property
    def min_timestamp(self) -> int:
        """Return the time up to which everything stored is on disk, in the log and in the queues."""
        return max(0, min(self.physic_msg_timestamp, self.logics_msg_timestamp) - SAFETY_MS)

    def save(self, sync: Sync = fdatasync) -> None:
        """Write and flush the file; its 40 bytes lie in one disk sector. Raises OSError."""
        write_values(self.path, _STRUCT.pack(*attrs.astuple(self)[1:]), sync)


_STRUCT = derive_struct(CHECKPOINT, *[field.name for field in attrs.fields(Checkpoint)][1:])


def read_beginning(path: str, size: int) -> bytes:
    """Return the first `size` bytes of a checkpoint file; empty if it is missing or too short."""
    try:
        with open(path, "rb") as file:
            data = file.read(size)
    except FileNotFoundError:
        return b""
    return data if len(data) == size else b""


def write_values(path: str, data: bytes, sync: Sync) -> None:
    """Write and flush a checkpoint file, extended to its full size. Raises OSError."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        if os.fstat(descriptor).st_size != CHECKPOINT_FILE_BYTES:
            os.ftruncate(descriptor, CHECKPOINT_FILE_BYTES)
        os.pwrite(descriptor, data, 0)
        sync(descriptor)
    finally:
        os.close(descriptor)
