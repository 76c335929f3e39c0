"""The walk over a stretch of a commit log file: batches of intact records, and damage between them.

Record sizes chain the records of a file, so finding them is sequential: `struct` reads the size of each (0.15 us), and
numpy then proves whole batches at once (records.intact_starts). Where the chain breaks, the walk searches for the
next record that proves itself, and reports the bytes between as damage. Zero bytes up to the end are no damage: they
are the part of a file that no record has reached yet. A blank record ends its file.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import construct
import numpy as np

from protocol.derive import derive_struct
from protocol.record_layout import MESSAGE
from spark.log_file import LogFile
from spark.records import SMALLEST_RECORD, Positions, Records, intact_starts, load_records

BATCH_ROWS = 16384
BATCH_BYTES = 16 * 1024 * 1024
"""A batch ends with the record that reaches either; so one holds at most this and one record more."""

_unpack_size = derive_struct(construct.Struct(MESSAGE.size)).unpack_from


@attrs.frozen
class Damage:
    """Bytes of a log file that belong to no intact record.

    `length` reaches to the next record, or where none follows to the last byte that is not zero.
    """

    file: str
    physical_offset: int
    length: int
    reason: str


def walk(log: LogFile, start: int, end: int) -> Iterator[Records | Damage]:
    """Everything that begins in [start, end) of the file, in order; the last record may reach beyond `end`.

    `start` is where a record begins, or damaged bytes do.
    """
    position: int | None = start
    end = min(end, log.size)
    while position is not None and position < end:
        starts = intact_starts(log, _chained_starts(log, position, end))
        if len(starts):
            records = load_records(log, starts)
            yield records
            position = int(records.end[-1])
            continue
        if log.is_blank(position):
            return
        next_position = log.next_record(position + 1, end)
        fault_end = log.written_end(position, end) if next_position is None else next_position
        if fault_end > position:
            yield Damage(log.name, log.first_offset + position, fault_end - position, log.fault_at(position))
        position = next_position


def _chained_starts(log: LogFile, position: int, end: int) -> Positions:
    """Where records should begin by their sizes alone, up to the limits of a batch; nothing is proved yet."""
    starts: list[int] = []
    append, data, unpack = starts.append, log.data, _unpack_size
    end = min(end, position + BATCH_BYTES, log.size - SMALLEST_RECORD + 1)
    while position < end and len(starts) < BATCH_ROWS:
        (size,) = unpack(data, position)
        if size < SMALLEST_RECORD:
            break
        append(position)
        position += size
    return np.array(starts, np.int64)
