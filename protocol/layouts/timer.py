"""Files of the timer for messages due at any time: its log's units and its wheel's slots (Apache: TimerLog, Slot).

Log unit, 52 bytes:

    offset size name
    0      4    size
    4      8    previous_position      of the unit before in the same slot, -1 for none
    12     4    magic                  bits: 1 default, 2 rolled, 4 deletes
    16     8    write_time             ms, rounded to the wheel's precision
    24     4    delay_time             ms from write_time to the delivery
    28     8    physical_offset        of the message
    36     4    record_size
    40     4    topic_hash             of the real topic
    44     8    reserved

A unit never lies in two files: what is left behind a file's last one is a blank, whose size is all of that, 16 bytes
and anything:

    0      4    size
    4      8    previous_position      0
    12     4    magic                  0xCBD43194, the commit log's

Wheel slot, 32 bytes:

    0      8    time                   delivery time in units of the wheel's precision
    8      8    first_position         in the timer log
    16     8    last_position
    24     4    count
    28     4    magic
"""

from __future__ import annotations

from typing import NamedTuple

import construct

from twisted_mq.protocol.layouts.derive import derive_struct
from twisted_mq.protocol.layouts.record import MAGIC_BLANK

TIMER_LOG_UNIT = construct.Struct(
    "size" / construct.Int32sb,
    "previous_position" / construct.Int64sb,
    "magic" / construct.Int32sb,
    "write_time" / construct.Int64sb,
    "delay_time" / construct.Int32sb,
    "physical_offset" / construct.Int64sb,
    "record_size" / construct.Int32sb,
    "topic_hash" / construct.Int32sb,
    "reserved" / construct.Int64sb,
)

TIMER_LOG_BLANK = construct.Struct(
    "size" / construct.Int32sb,
    "previous_position" / construct.Const(0, construct.Int64sb),
    "magic" / construct.Const(MAGIC_BLANK, construct.Int32sb),
)

TIMER_WHEEL_SLOT = construct.Struct(
    "time" / construct.Int64sb,
    "first_position" / construct.Int64sb,
    "last_position" / construct.Int64sb,
    "count" / construct.Int32sb,
    "magic" / construct.Int32sb,
)

_LOG_BLANK = derive_struct(TIMER_LOG_BLANK, "size", "previous_position", "magic")
LOG_BLANK_BYTES = _LOG_BLANK.size
WHEEL_SLOT = derive_struct(TIMER_WHEEL_SLOT, "time", "first_position", "last_position", "count", "magic")
WHEEL_SLOT_BYTES = WHEEL_SLOT.size

MAGIC_DEFAULT, MAGIC_ROLL, MAGIC_DELETE = 1, 2, 4
_KNOWN_MAGIC_BITS = 0xF


class LogUnit(NamedTuple):
    """A waiting message, as TIMER_LOG_UNIT declares it; times in ms."""

    size: int
    previous_position: int
    magic: int
    write_time: int
    delay_time: int
    physical_offset: int
    record_size: int
    topic_hash: int
    reserved: int = 0

    @property
    def slot_ms(self) -> int:
        """Return the time when the timer reads the slot."""
        return self.write_time + self.delay_time

    @property
    def is_whole(self) -> bool:
        """Return whether it can have been written by a broker (Apache: isMagicOK)."""
        return self.size == LOG_UNIT_BYTES and 0 < self.magic <= _KNOWN_MAGIC_BITS


LOG_UNIT = derive_struct(TIMER_LOG_UNIT, *LogUnit._fields)
LOG_UNIT_BYTES = LOG_UNIT.size


def encode_log_blank(size: int) -> bytes:
    """Return the first 16 bytes of a blank that fills `size` bytes of its file."""
    return _LOG_BLANK.pack(size, 0, MAGIC_BLANK)
