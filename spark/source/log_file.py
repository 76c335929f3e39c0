"""Commit log files for Spark: which there are. How one is read stands in twisted_mq.storage.files.mapped_log."""

from __future__ import annotations

import os

from twisted_mq.spark.errors import LogFileGone, NoCommitLog
from twisted_mq.storage.files.files_at_rest import FileAtRest, files_in
from twisted_mq.storage.files.mapped_log import MappedLog
from twisted_mq.storage.files.paths import StorePaths, file_offset


class LogFile(MappedLog):
    """One commit log file. Positions count from the file's start. Views of `data` keep the mapping alive."""

    def __init__(self, path: str, first_offset: int) -> None:
        """Raises LogFileGone."""
        try:
            super().__init__(path, first_offset)
        except FileNotFoundError as error:
            raise LogFileGone(path) from error


def log_directory(store: str) -> str:
    """The directory of the commit log files of a store, or of the commit log directory itself. Raises NoCommitLog."""
    if not os.path.isdir(store):
        raise NoCommitLog(store, "no such directory")
    commit_log = StorePaths(store).commit_log
    if os.path.isdir(commit_log):
        return commit_log
    if any(file_offset(name) is not None for name in os.listdir(store)):
        return store
    raise NoCommitLog(store, "holds no commitlog directory")


def list_log_files(store: str) -> list[FileAtRest]:
    """The store's commit log files in order, empty ones left out. Raises NoCommitLog."""
    return files_in(log_directory(store))
