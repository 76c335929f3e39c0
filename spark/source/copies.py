"""Copies of one log: stores with the same brokerName in one read, such as a master's and its slave's.

They have the same records at the same physical offsets, so each record is read from one of them: from the copy whose log is the
longest, and what retention deleted there from the others.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

import attrs

from twisted_mq.spark.errors import DataLost
from twisted_mq.spark.source.log_stretch import Missing
from twisted_mq.spark.source.losses import report_all
from twisted_mq.spark.source.marks import is_kept, mark_at
from twisted_mq.spark.source.options import ReadOptions
from twisted_mq.spark.source.splits import StoreRange

log = logging.getLogger(__name__)


def as_one_log(ranges: Iterable[StoreRange], options: ReadOptions) -> list[StoreRange]:
    """Return the ranges without bytes that another copy of the same log has; stores without a broker name have no copies.

    Raises DataLost if copies differ, or all of them lack a part between two of them. With failOnDataLoss=false that is logged,
    and the longest log is read, with the parts of others that continue it.
    """
    groups: dict[str | None, list[StoreRange]] = {}
    for one in ranges:
        groups.setdefault(one.store.broker_name, []).append(one)
    found = list(groups.pop(None, []))
    for copies in groups.values():
        longest, *others = sorted(copies, key=lambda one: one.log_end, reverse=True)
        found += [longest, *_older_parts(longest, others, options)]
    return found


def _older_parts(longest: StoreRange, others: Iterable[StoreRange], options: ReadOptions) -> Iterator[StoreRange]:
    """Return the parts of copies before the first byte that the longest has."""
    reached = _first(longest)
    for copy in sorted(others, key=_first, reverse=True):
        if not copy.files or not _is_copy(copy, longest, options.fail_on_data_loss):
            continue
        end = min(reached, copy.log_end)
        if _first(copy) < end:
            if end < reached:
                report_all([Missing(copy.store, "that held them", end, reached, reached, "is in no copy")], options)
            yield attrs.evolve(copy, end=min(copy.end, end), has_rest_in_copies=True)
            reached = _first(copy)


def _first(one: StoreRange) -> int:
    return max(one.begin, one.files[0].first_offset) if one.files else one.begin


def _is_copy(copy: StoreRange, longest: StoreRange, fail: bool) -> bool:
    """Return True if the last record of the copy is in the longest log too, or retention deleted it there."""
    last = mark_at(copy.store, copy.files, copy.log_end).last
    if last is None or is_kept(longest.store, longest.files, last) is not False:
        return True
    what = f"store {copy.store.name} is not a copy of {longest.store.name}: they differ in the record at {last.offset}"
    if fail:
        raise DataLost(what)
    log.warning("%s; it is left out", what)
    return False
