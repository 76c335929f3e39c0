"""Read of a task: the intact records of its part of a store in batches, and the damage between them.

A file is read in windows, so a task needs memory for one window, independent of the size of its part.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import attrs
import numpy as np

from twisted_mq.spark.errors import LogFileGone
from twisted_mq.spark.source.open_log import SEARCH_BYTES, OpenLog
from twisted_mq.spark.source.splits import StoreRange
from twisted_mq.spark.source.stores import Store, list_log_files
from twisted_mq.storage.columns.record_columns import RecordColumns, following_records, intact_records
from twisted_mq.storage.files.mapped_log import LogBytes

WINDOW_BYTES = 4 << 20
"""Bytes read at a time; a larger record is read as a whole. The system would take back and clear buffers of 8 MiB each time."""
FEW_WINDOWS = 16
"""Number of searches that use small windows: most cuts have a record in a queue just before them."""


@attrs.frozen
class Damage:
    """Bytes of a log file that do not belong to an intact record.

    `length` extends to the next record, or without one to the last byte that is not zero.
    """

    file: str
    physical_offset: int
    length: int
    reason: str


@attrs.frozen
class Missing:
    """Requested bytes of a missing file; `found` is the next offset of the log, None if nothing is left of it."""

    store: Store
    file: str
    begin: int
    end: int
    found: int | None
    reason: str = "was deleted since the read was planned"

    def __str__(self) -> str:
        found = "nothing of the log" if self.found is None else f"the log from {self.found} on"
        return (
            f"broker {self.store.broker_name or 'unnamed'}, store {self.store.name}: file {self.file} {self.reason}: "
            f"physical offsets {self.begin} to {self.end} wanted, {found} found"
        )


def gone(store: Store, path: str, begin: int, end: int) -> Missing:
    """Return the requested bytes of a deleted file, with the rest of its log."""
    left = list_log_files(store)
    return Missing(store, path, begin, end, left[0].first_offset if left else None)


def read_part(part: StoreRange) -> Iterator[RecordColumns | Damage | Missing]:
    """Yield records and damage of a part in physical order; its last record may extend past its end."""
    for file, begin, end in part.pieces():
        try:
            log = OpenLog(part.store, file, part.log_end)
        except LogFileGone:
            yield gone(part.store, file.path, begin, end)
            continue
        yield from read_stretch(log, *(first_record(log, cut - log.first_offset) for cut in (begin, end)))


def first_record(log: OpenLog, cut: int) -> int:
    """Return the position of the first record at or after a cut, the same for all tasks; the ends of a file are not cuts.

    The search begins at a proven record, so that bytes inside a body are never taken for a record.
    """
    if not 0 < cut < log.limit:
        return cut
    position = log.proven_before(cut)
    window = SEARCH_BYTES if cut - position <= FEW_WINDOWS * SEARCH_BYTES else None
    for piece in read_stretch(log, position, log.limit, window):
        if isinstance(piece, Damage):
            position = piece.physical_offset + piece.length - log.first_offset
        else:
            places = piece.physical_offsets - log.first_offset
            if places[-1] >= cut:
                return int(places[np.searchsorted(places, cut)])
            position = int(places[-1] + piece.ends[-1] - piece.starts[-1])
        if position >= cut:
            return position
    return log.limit


def read_stretch(
    log: OpenLog, position: int, end: int, window_bytes: int | None = None
) -> Iterator[RecordColumns | Damage]:
    """Yield records and damage that begin in [position, end) of a file, read in windows of WINDOW_BYTES or the given size."""
    with contextlib.nullcontext() if window_bytes else log.reading_ahead(position, end, WINDOW_BYTES):
        yield from _read_windows(log, position, end, window_bytes or WINDOW_BYTES)


def _read_windows(log: OpenLog, position: int, end: int, window_bytes: int) -> Iterator[RecordColumns | Damage]:
    while position < end:
        window = log.window(position, min(window_bytes, end - position + SEARCH_BYTES))
        following = position
        for batch in _batches(window, end - position):
            yield batch
            following = position + int(batch.ends[-1])
        if following > position:
            position = following
        elif window.is_blank(0):
            return
        elif window.size < (size := log.record_size(position)):
            window = log.window(position, size)
            yield intact_records(window, np.zeros(1, np.int64))
            position += size
        else:
            found = log.next_proven(position + 1, end)
            following = end if found is None else found
            log.look_again()
            if not log.record_size(position):  # its broker may have completed it in between
                yield from _damage(log, window, position, following)
                position = following


def _batches(window: LogBytes, end: int) -> Iterator[RecordColumns]:
    """Return the records that begin before `end` and are complete in the window, up to the first damage."""
    position = 0
    while True:
        batch = following_records(window, position, end)
        if not len(batch):
            return
        yield batch
        position = int(batch.ends[-1])


def _damage(log: OpenLog, window: LogBytes, position: int, following: int) -> Iterator[Damage]:
    """Return the bytes from `position` to the next record as damage; zeros at the end of the read are not damage."""
    end = following
    if following >= log.limit:
        end = _written_end(log, position, following)
    if end > position:
        yield Damage(window.name, log.first_offset + position, end - position, window.fault_at(0))


def _written_end(log: OpenLog, position: int, end: int) -> int:
    """Return the position after the last byte that is not zero; `position` without one."""
    while end > position:
        begin = max(position, end - WINDOW_BYTES)
        found = log.read(begin, end - begin).rstrip(b"\0")
        if found:
            return begin + len(found)
        end = begin
    return position
