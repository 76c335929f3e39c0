"""A stretch of a commit log file for one task: its intact records in batches, and the damage between them.

Zero bytes up to the end are no damage: they are the part of a file that no record has reached yet.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from twisted_mq.spark.source.log_file import LogFile
from twisted_mq.spark.source.records import Records, load_records
from twisted_mq.storage.columns.record_columns import RecordColumns
from twisted_mq.storage.columns.walk import walk_stretch


@attrs.frozen
class Damage:
    """Bytes of a log file that belong to no intact record.

    `length` reaches to the next record, or where none follows to the last byte that is not zero.
    """

    file: str
    physical_offset: int
    length: int
    reason: str


def read_stretch(log: LogFile, start: int, end: int) -> Iterator[Records | Damage]:
    """Everything that begins in [start, end) of the file, in order; the last record may reach beyond `end`.

    `start` is where a record begins, or damaged bytes do.
    """
    end = min(end, log.size)
    for part in walk_stretch(log, start, end):
        if isinstance(part, RecordColumns):
            yield load_records(part)
            continue
        fault_end = log.written_end(part.start, end) if part.following is None else part.following
        if fault_end > part.start:
            yield Damage(log.name, log.first_offset + part.start, fault_end - part.start, part.reason)
