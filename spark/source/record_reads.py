"""Single records of a store, by their physical offsets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from twisted_mq.spark.source.open_log import OpenLog
from twisted_mq.spark.source.stores import Store, list_log_files
from twisted_mq.storage.columns.record_columns import RecordColumns, intact_records


def records_at(store: Store, offsets: Iterable[int]) -> Iterator[RecordColumns]:
    """Yield the records that begin at these places, in order; places without a valid record are skipped. Raises LogFileGone."""
    wanted = sorted(set(offsets))
    for file in list_log_files(store):
        inside = [offset - file.first_offset for offset in wanted if file.first_offset <= offset < file.end]
        if inside:
            log = OpenLog(store, file)
            for position in inside:
                size = log.record_size(position)
                if size:
                    yield intact_records(log.window(position, size), np.zeros(1, np.int64))
