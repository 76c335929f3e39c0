"""Plan of a read of stores: their files, and the ranges to read."""

from __future__ import annotations

import bisect
import functools
import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from twisted_mq.protocol.layouts.record import HEAD_BYTES, MAGICS, read_store_timestamp, unpack_place
from twisted_mq.spark.errors import DataLost, LogFileGone
from twisted_mq.spark.source.log_end import complete_end
from twisted_mq.spark.source.open_log import OpenLog
from twisted_mq.spark.source.options import FileTimes, ReadOptions
from twisted_mq.spark.source.splits import StoreRange
from twisted_mq.spark.source.stores import LogFile, Store, list_log_files, stores_named
from twisted_mq.spark.source.witness import Witness

log = logging.getLogger(__name__)
Ends = Mapping[str, int]
"""Physical offset at which the log of each store ends for a read, by the store's URI."""
READS_AT_ONCE = 8
"""Number of first records that are read at once: on S3 each read takes tens of milliseconds."""


def stores_of(options: ReadOptions) -> tuple[Store, ...]:
    """Return the stores of a read. Raises NoCommitLog, WrongOption."""
    return stores_named(options.paths, options.broker_names)


def log_ends(options: ReadOptions) -> Ends:
    """Return the present end of each store's log, after its last complete record. Raises NoCommitLog, WrongOption."""
    return {store.uri: complete_end(store, list_log_files(store)) for store in stores_of(options)}


def plan_ranges(options: ReadOptions, ends: Ends) -> list[StoreRange]:
    """Plan the range of each store up to these ends, without files of other times. Raises NoCommitLog, DataLost.

    A store that matches a pattern only after the ends were taken is not part of the read.
    """
    ranges, begin = [], max(options.start_offset, options.least_offset)
    stores = {store.uri: store for store in stores_of(options)}
    for uri in sorted(ends.keys() - stores.keys()):
        _report_gone(Store(uri), options)
    for store in (store for uri, store in stores.items() if uri in ends):
        files = files_of_time(store, list_log_files(store), options.file_times)
        end = ends[store.uri]
        cut_inside = Witness(store).has_queues
        ranges.append(StoreRange(store, files, begin, min(options.end_offset, end), end, cut_inside))
    return ranges


def _report_gone(store: Store, options: ReadOptions) -> None:
    """Raise DataLost, or log, that a pattern no longer matches a store."""
    what = f"store {store.name} was deleted since the read was planned"
    if options.fail_on_data_loss:
        raise DataLost(what)
    log.warning("%s", what)


def files_of_time(store: Store, files: Sequence[LogFile], times: FileTimes) -> Sequence[LogFile]:
    """Return the files that may have messages stored in the given time.

    Reads the store time of the first record of each file. The records of a file were stored between its own first time and the
    next file's. One more file on each side is included, because a clock may be set back inside a file. Clocks that are set back
    over many files lose nothing. Files between two selected ones are included.
    """
    if not times.are_any or not files:
        return files
    with ThreadPoolExecutor(READS_AT_ONCE) as threads:
        firsts = list(threads.map(functools.partial(_stored_first, store), files))
    known = [number for number, first in enumerate(firsts) if first is not None]
    wanted = [number for number in range(len(files)) if _may_hold(_near(firsts, known, number), times)]
    return files[wanted[0] : wanted[-1] + 1] if wanted else []


def _near(firsts: Sequence[int | None], known: Sequence[int], number: int) -> tuple[list[int], bool]:
    """Return the known first times of a file, the one before it and the two after it, and True if fewer than two are after it."""
    at = bisect.bisect_left(known, number)
    behind = at + 1 if at < len(known) and known[at] == number else at
    near = (firsts[one] for one in known[max(0, at - 1) : behind + 2])
    return [time for time in near if time is not None], behind + 2 > len(known)


def _may_hold(near: tuple[list[int], bool], times: FileTimes) -> bool:
    """Return True if a file with these first times near it may have records of the given time; the last file has no end time."""
    known, is_open = near
    too_early = times.start_ms is not None and not is_open and max(known) < times.start_ms
    too_late = times.end_ms is not None and known != [] and min(known) >= times.end_ms
    return not too_early and not too_late


def _stored_first(store: Store, file: LogFile) -> int | None:
    try:
        head = OpenLog(store, file).read_only(0, HEAD_BYTES)
    except LogFileGone:
        return None
    if len(head) < HEAD_BYTES:
        return None
    _, magic, physical_offset = unpack_place(head)
    return read_store_timestamp(head) if magic in MAGICS and physical_offset == file.first_offset else None
