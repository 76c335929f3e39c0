"""Cuts a log by hand at an offset and drops the rest, so that a slave can follow its master again.

The dropped bytes are kept in the directory `damaged`; the queues follow at the next start.
"""

from __future__ import annotations

import os

from twisted_mq.storage.errors import NoStore, StoreError
from twisted_mq.storage.files.directory import StoreDirectory
from twisted_mq.storage.files.paths import StorePaths
from twisted_mq.storage.files.salvage import set_aside
from twisted_mq.storage.log.commit_log import CommitLog
from twisted_mq.storage.store_reader import StoreReader


class NoRecordThere(StoreError):
    """The offset to cut at is inside a record or outside the log."""

    def __init__(self, root: str, offset: int, nearest: int) -> None:
        super().__init__(root, f"no record begins at {offset}; the last one before it begins at {nearest}")


def cut_log(root: str, offset: int, commit_log: str | None = None) -> str:
    """Cut the log at a record's first byte; return where the dropped bytes are kept, "" if there were none.

    No broker may use the store. It counts as not closed afterwards: its next start checks everything.
    Raises StoreError if nothing was cut.
    """
    paths = StorePaths(root, commit_log)
    if not os.path.isdir(paths.commit_log):
        raise NoStore(root)
    directory = StoreDirectory(paths)
    directory.open()
    try:
        reader = StoreReader(root, commit_log)
        something_follows = _check_place(reader, root, offset)
        log = CommitLog(paths.commit_log, reader.files[0].size, 1 << 20)
        log.load()
        directory.mark_running()
        kept = set_aside(paths.damaged, log.files.files, offset) if something_follows else ""
        log.truncate(offset)
        for file in log.files.files[-1:]:
            file.sync()
        log.release()
        return kept
    finally:
        directory.close(clean=False)


def _check_place(reader: StoreReader, root: str, offset: int) -> bool:
    """Return whether a record begins at `offset`; False if the last one ends there. Raises NoRecordThere."""
    before = end = reader.min_offset
    for place, record in reader.records():
        if place == offset:
            return True
        if place > offset:
            break
        before, end = place, place + len(record)
    if end == offset:
        return False
    raise NoRecordThere(root, offset, before)
