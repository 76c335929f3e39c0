"""Missing bytes of a log, known from names and sizes of files before anything is read."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence

from twisted_mq.spark.errors import DataLost, WrongOption
from twisted_mq.spark.source.log_stretch import Missing
from twisted_mq.spark.source.options import ReadOptions
from twisted_mq.spark.source.quarantine import put_loss_aside
from twisted_mq.spark.source.splits import StoreRange
from twisted_mq.spark.source.stores import LogFile, Store

log = logging.getLogger(__name__)
_HELD = "that held them"
_NOT_THERE = "is not there"


def missing_bytes(store: Store, files: Sequence[LogFile], begin: int, end: int) -> Iterator[Missing]:
    """Return the parts of [begin, end) before the first file, between two files, or after a truncated one."""
    reached = begin
    for file in files:
        following = min(file.first_offset, end)
        if reached < following:
            yield Missing(store, _HELD, reached, following, file.first_offset, _NOT_THERE)
        reached = max(reached, file.end)
    if not files and begin < end:
        yield Missing(store, _HELD, begin, end, None, _NOT_THERE)


def check_range(part: StoreRange, options: ReadOptions) -> None:
    """Check that the log has the requested bytes. Raises DataLost, and WrongOption for a begin past the log's end."""
    asked = options.start_offset if options.file_times.start_ms is None else 0
    if options.fail_on_data_loss and asked > part.log_end and not part.has_rest_in_copies:
        raise WrongOption("startOffset", str(asked), f"the log of {part.store.name} ends at {part.log_end}")
    if options.asked_end is not None and options.asked_end > part.log_end and not part.has_rest_in_copies:
        reason = f"is not there: the log ends at {part.log_end}"
        report_missing(
            Missing(part.store, _HELD, part.log_end, options.asked_end, None, reason),
            options.fail_on_data_loss,
            options.quarantine,
        )
    if part.files:
        begin = part.begin if asked else max(part.begin, part.files[0].first_offset)
        report_all(missing_bytes(part.store, part.files, begin, part.end), options)


def report_all(losses: Iterable[Missing], options: ReadOptions) -> None:
    """Report each loss. Raises DataLost for the first one if the options require it."""
    for missing in losses:
        report_missing(missing, options.fail_on_data_loss, options.quarantine)


def report_missing(missing: Missing, fail: bool, quarantine: str | None = None) -> None:
    """Raise DataLost, or log the loss and write it to the quarantine, if there is one."""
    what = f"{missing}: {missing.end - missing.begin} bytes are not there"
    if fail:
        raise DataLost(what)
    if quarantine is not None:
        put_loss_aside(missing, quarantine)
    log.warning("%s", what)
