"""What a read of stores is to cover: which of their files, from where on, and up to where it stays the same."""

from __future__ import annotations

import bisect
import functools
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from twisted_mq.protocol.layouts.record import HEAD_BYTES, MAGICS, read_store_timestamp, unpack_place
from twisted_mq.spark.errors import LogFileGone, WrongOption
from twisted_mq.spark.source.log_end import complete_end, confirmed_end
from twisted_mq.spark.source.open_log import OpenLog
from twisted_mq.spark.source.options import FileTimes, ReadOptions
from twisted_mq.spark.source.splits import StoreRange
from twisted_mq.spark.source.stores import LogFile, Store, list_log_files, stores_named
from twisted_mq.spark.source.witness import Witness

Ends = Mapping[str, int]
"""The physical offset at which the log of each store ends for a read, by the store's URI."""
READS_AT_ONCE = 8
"""Reads of first records: on S3 each takes tens of milliseconds."""


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
        files = files_of_time(store, list_log_files(store), options.file_times)
        end = ends[store.uri]
        cut_inside = Witness(store).has_queues
        ranges.append(StoreRange(store, files, begin, min(options.end_offset, end), end, cut_inside))
    return ranges


def files_of_time(store: Store, files: Sequence[LogFile], times: FileTimes) -> Sequence[LogFile]:
    """The files that may hold what was stored in the wanted time.

    Reads the first record's store time of each file. A file's records were stored between its own first time and the next file's;
    one more file on each side counts as well, as a clock may be set back inside a file. Clocks that are set back over many files
    lose nothing. Files between two wanted ones are wanted.
    """
    if not times.are_any or not files:
        return files
    with ThreadPoolExecutor(READS_AT_ONCE) as threads:
        firsts = list(threads.map(functools.partial(_stored_first, store), files))
    known = [number for number, first in enumerate(firsts) if first is not None]
    wanted = [number for number in range(len(files)) if _may_hold(_near(firsts, known, number), times)]
    return files[wanted[0] : wanted[-1] + 1] if wanted else []


def _near(firsts: Sequence[int | None], known: Sequence[int], number: int) -> tuple[list[int], bool]:
    """The known first times of a file, the one before it and the two behind it; whether fewer than two are behind it."""
    at = bisect.bisect_left(known, number)
    behind = at + 1 if at < len(known) and known[at] == number else at
    near = (firsts[one] for one in known[max(0, at - 1) : behind + 2])
    return [time for time in near if time is not None], behind + 2 > len(known)


def _may_hold(near: tuple[list[int], bool], times: FileTimes) -> bool:
    """Whether a file with these first times near it may hold records of the wanted time; behind the last one time is open."""
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
