"""End of a log after its last complete record, found with a few reads of its last file.

A record that the broker is writing, or that a crash cut off, is not part of the log. The log up to this end does not change while
the broker appends.
"""

from __future__ import annotations

from collections.abc import Sequence

from twisted_mq.protocol.columns import Buffer
from twisted_mq.spark.source.log_stretch import WINDOW_BYTES
from twisted_mq.spark.source.open_log import SEARCH_BYTES, OpenLog
from twisted_mq.spark.source.stores import LogFile, Store
from twisted_mq.spark.source.witness import Witness
from twisted_mq.storage.columns.chain import chained
from twisted_mq.storage.columns.record_columns import intact_records

PROBE_BYTES = 8 * 1024
"""Number of bytes to check for written data; longer runs of zeros inside bodies need more reads."""


def complete_end(store: Store, files: Sequence[LogFile]) -> int:
    """Return the physical offset after the last complete record of these files; 0 without files.

    A broker creates files in advance, so a file that begins with zeros is not written yet, unless the file before it is full.
    Then the whole file is searched, because its first bytes may be damaged.
    """
    for number in reversed(range(len(files))):
        file = files[number]
        log = OpenLog(store, file)
        if log.is_written(0, PROBE_BYTES) or (_may_be_damaged(store, files[:number]) and _is_written_anywhere(log)):
            return file.first_offset + _end_in(log)
    return files[0].first_offset if files else 0


def _may_be_damaged(store: Store, before: Sequence[LogFile]) -> bool:
    """Return True if the log reached the file after these: the last of them is full. For a first file, the queues are checked."""
    if not before:
        return Witness(store).has_queues
    log = OpenLog(store, before[-1])
    return log.is_written(0, PROBE_BYTES) and _end_in(log) == log.size


def _is_written_anywhere(log: OpenLog) -> bool:
    return any(log.is_written(begin, WINDOW_BYTES) for begin in range(0, log.limit, WINDOW_BYTES))


def _end_in(log: OpenLog) -> int:
    """Return the position after the last complete record of a file with written data."""
    written = _written_end(log)
    position = log.proven_before(written)
    while True:
        position = _chain_end(log, position)
        following = log.next_proven(position + 1, written)
        if following is None:
            return position
        position = following


def _written_end(log: OpenLog) -> int:
    """Return a position after the last byte that is not zero; it can be lower if a body has a long run of zeros."""
    low, high = 0, log.limit
    while high - low > PROBE_BYTES:
        middle = (low + high) // 2
        if log.is_written(middle, PROBE_BYTES):
            low = middle
        else:
            high = middle
    return high


def _chain_end(log: OpenLog, position: int) -> int:
    """Return the end of the run of complete records that begins there; a blank record ends its file."""
    while True:
        window = log.window(position, SEARCH_BYTES)
        records = intact_records(window, chained(window, 0, window.size))
        if len(records) and _has_end(window.data, int(records.properties[-1]), int(records.ends[-1])):
            position += int(records.ends[-1])
        elif len(records) > 1:
            position += int(records.ends[-2])
        elif window.is_blank(0):
            return log.size
        elif size := (log.record_size(position) if not len(records) else 0):
            position += size
        else:
            return position


def _has_end(data: Buffer, properties: int, end: int) -> bool:
    """Return True if the properties of a record, which are written last, have their last byte: it is never 0."""
    return properties == end or data[end - 1] != 0
