"""config/timercheck: the timer's progress on disk (Apache: TimerCheckpoint)."""

from __future__ import annotations

import os

import attrs

from twisted_mq.protocol.errors import BodyError
from twisted_mq.protocol.layouts.checkpoint import TIMER_CHECKPOINT
from twisted_mq.protocol.layouts.derive import derive_struct
from twisted_mq.storage.files.checkpoint import read_beginning, write_values
from twisted_mq.storage.files.system_calls import Sync, fdatasync


@attrs.frozen
class TimerCheckpoint:
    """Values in the layout's order; all 0 if nothing is known.

    Ticks before `last_read_time_ms` are delivered. Messages before `last_timer_queue_offset` of the timer's topic are
    in the timer's log, and both are on disk.
    """

    last_read_time_ms: int = 0
    last_timer_log_flush_position: int = 0
    last_timer_queue_offset: int = 0
    master_timer_queue_offset: int = 0
    state_version: int = 0
    timestamp: int = 0
    counter: int = 0

    @classmethod
    def load(cls, path: str) -> TimerCheckpoint:
        """Read the file. If it is missing, too short or holds negative numbers, all values are unknown."""
        data = read_beginning(path, _STRUCT.size)
        values = _STRUCT.unpack(data) if data else ()
        return cls(*values) if values and min(values) >= 0 else cls()

    @classmethod
    def decode(cls, data: bytes) -> TimerCheckpoint:
        """Return what a broker answers to GET_TIMER_CHECK_POINT. Raises BodyError."""
        if len(data) != _STRUCT.size:
            raise BodyError("TimerCheckpoint", f"{len(data)} bytes instead of {_STRUCT.size}")
        return cls(*_STRUCT.unpack(data))

    def encode(self) -> bytes:
        """Return the 56 bytes in use."""
        return _STRUCT.pack(*attrs.astuple(self))

    def save(self, path: str, sync: Sync = fdatasync) -> None:
        """Write and flush the file; its content fits into one disk sector. Raises OSError."""
        os.makedirs(os.path.dirname(path), exist_ok=True)
        write_values(path, self.encode(), sync)


_STRUCT = derive_struct(TIMER_CHECKPOINT, *[field.name for field in attrs.fields(TimerCheckpoint)])
