"""What a read of stores is to cover: which of their files, from where on, and up to where it stays the same."""

from __future__ import annotations

import bisect
import functools
from collections.abc import Mapping, Sequence

from twisted_mq.protocol.layouts.record import HEAD_BYTES, MAGICS, read_store_timestamp, unpack_place
from twisted_mq.spark.columns.selection import Selection
from twisted_mq.spark.errors import LogFileGone, WrongOption
from twisted_mq.spark.source.log_end import complete_end, confirmed_end
from twisted_mq.spark.source.open_log import OpenLog
from twisted_mq.spark.source.options import ReadOptions
from twisted_mq.spark.source.splits import StoreRange
from twisted_mq.spark.source.stores import LogFile, Store, list_log_files, stores_named

Ends = Mapping[str, int]
"""The physical offset at which the log of each store ends for a read, by the store's URI."""
_NEVER_MS = 1 << 63


def stores_of(options: ReadOptions) -> tuple[Store, ...]:
    """The stores that a read names. Raises NoCommitLog, WrongOption."""
    return stores_named(options.paths, options.broker_names)


def log_end(store: Store, files: Sequence[LogFile], options: ReadOptions) -> int:
    """Where a store's log ends just now: behind its last whole record, or at what replicas have. Raises WrongOption."""
    end = complete_end(store, files)
    if not options.until_confirmed:
        return end
    confirmed = confirmed_end(store)
    if not confirmed:
        raise WrongOption("endOffset", "confirmed", f"the checkpoint of {store.name} does not say what replicas have")
    return min(end, confirmed)


def log_ends(options: ReadOptions) -> Ends:
    """Where the logs of all stores end just now. Raises NoCommitLog, WrongOption."""
    return {store.uri: log_end(store, list_log_files(store), options) for store in stores_of(options)}


def plan_ranges(options: ReadOptions, ends: Ends) -> list[StoreRange]:
    """What is read of each store up to these ends, files of other times left out. Raises NoCommitLog."""
    ranges, begin = [], max(options.start_offset, options.least_offset)
    for store in stores_of(options):
        files = files_of_time(store, list_log_files(store), options.selection)
        end = ends[store.uri]
        ranges.append(StoreRange(store, files, begin, min(options.end_offset, end), end))
    return ranges


def files_of_time(store: Store, files: Sequence[LogFile], selection: Selection) -> Sequence[LogFile]:
    """The files that may hold what was stored in the wanted time, and one more on each side: clocks are set back.

    Found by a binary search, which reads the first records' store times of a few files.
    """
    first, last, time = 0, len(files), functools.cache(functools.partial(_first_time, store, files))
    if selection.start_time_ms is not None:
        first = bisect.bisect_right(range(len(files)), selection.start_time_ms, key=time) - 2
    if selection.end_time_ms is not None:
        last = bisect.bisect_left(range(len(files)), selection.end_time_ms, key=time) + 1
    return files[max(0, first) : last]


def _first_time(store: Store, files: Sequence[LogFile], number: int) -> int:
    """The store time of a file's first record; of a later file's where it has none, and at last the end of time."""
    for file in files[number:]:
        time = _stored_first(store, file)
        if time is not None:
            return time
    return _NEVER_MS


def _stored_first(store: Store, file: LogFile) -> int | None:
    try:
        head = OpenLog(store, file).read_only(0, HEAD_BYTES)
    except LogFileGone:
        return None
    if len(head) < HEAD_BYTES:
        return None
    _, magic, physical_offset = unpack_place(head)
    return read_store_timestamp(head) if magic in MAGICS and physical_offset == file.first_offset else None
