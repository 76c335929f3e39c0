"""The walk over a stretch of a commit log file: batches of intact records, and damage between them.

Record sizes chain the records of a file, so finding them is sequential: `struct` reads the size of each (0.15 us), and
numpy then proves whole batches at once (storage.columns.record_columns). Where the chain breaks, the walk searches for the
next record that proves itself, and reports the bytes between as damage. Zero bytes up to the end are no damage: they
are the part of a file that no record has reached yet. A blank record ends its file.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import numpy as np

from twisted_mq.spark.source.log_file import LogFile
from twisted_mq.spark.source.records import Records, load_records
from twisted_mq.storage.columns.record_columns import intact_records

BATCH_ROWS = 16384
BATCH_BYTES = 16 * 1024 * 1024
"""A batch ends with the record that reaches either; so one holds at most this and one record more."""


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
        chained = log.chained(position, min(end, position + BATCH_BYTES), BATCH_ROWS)
        intact = intact_records(log, np.array(chained, np.int64))
        if len(intact):
            yield load_records(intact)
            position = int(intact.ends[-1])
            continue
        if log.is_blank(position):
            return
        next_position = log.next_record(position + 1, end)
        fault_end = log.written_end(position, end) if next_position is None else next_position
        if fault_end > position:
            yield Damage(log.name, log.first_offset + position, fault_end - position, log.fault_at(position))
        position = next_position
