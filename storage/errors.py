"""Errors of the store. Each names the path and, if a person has to act, what to do.

Faults of a message are not errors: `PutStatus` reports them.
"""

from __future__ import annotations

import errno

SHORTAGES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""Errors that pass: other processes use too many descriptors or too much memory at the moment. The disk is sound."""


class StoreError(Exception):
    """The root of all errors that `storage` raises; `path` is the file or directory concerned."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


# When opening a directory


class StoreLocked(StoreError):
    """Another store, of this project or Apache's, uses the directory."""

    def __init__(self, path: str) -> None:
        super().__init__(
            path, "locked by a running broker; stop that broker or use another storePathRootDir for this one"
        )


class StoreUnwritable(StoreError):
    """The directory cannot be created or written."""

    def __init__(self, path: str, cause: OSError) -> None:
        reason = f"not writable ({cause.strerror}); check owner and permissions, or set another storePathRootDir"
        super().__init__(path, reason)


class DiskFailed(StoreError):
    """The disk failed to read or write files of the store."""

    def __init__(self, path: str, cause: OSError) -> None:
        super().__init__(
            cause.filename or path, f"the disk failed ({cause.strerror}); check the system's log, then start again"
        )


class WrongFileSize(StoreError):
    """A commit log file does not have the configured length."""

    def __init__(self, path: str, actual_bytes: int, expected_bytes: int) -> None:
        reason = (
            f"is {actual_bytes} bytes long, mappedFileSizeCommitLog says {expected_bytes}; "
            f"set mappedFileSizeCommitLog to the size the log was written with, or move the file away"
        )
        super().__init__(path, reason)
        self.actual_bytes = actual_bytes
        self.expected_bytes = expected_bytes


class MissingLogFile(StoreError):
    """A file of the commit log is missing between two others."""

    def __init__(self, path: str) -> None:
        super().__init__(path, "is missing between two commit log files; restore it, or move the older files away")


class NoStore(StoreError):
    """The directory has no commit log."""

    def __init__(self, path: str) -> None:
        super().__init__(path, "has no store: the directory commitlog is missing; use the storePathRootDir of a broker")


# When reading or writing


class StoreFull(StoreError):
    """The disk has no space for more records or queue entries; nothing was written."""

    def __init__(self, path: str, cause: OSError) -> None:
        advice = "raise the limit of open files (ulimit -n)" if cause.errno in SHORTAGES else "free space on this disk"
        super().__init__(path, f"no space for more data ({cause.strerror}); {advice}")


class PoolExhausted(StoreError):
    """All buffers of the transient store pool are in use; nothing was written."""

    def __init__(self, path: str) -> None:
        super().__init__(path, "all buffers wait for their commit; send more slowly or raise transientStorePoolSize")


class IllegalTopicName(StoreError):
    """The topic is not allowed as a directory name."""

    def __init__(self, topic: str) -> None:
        super().__init__(repr(topic), "is not a valid topic name; use up to 255 letters, digits, %, |, - and _")
        self.topic = topic


class StoreClosed(StoreError):
    """A call that needs an open store came before the start or after the close."""

    def __init__(self, path: str) -> None:
        super().__init__(path, "the store is not open")


# When replicating


class LogMismatch(StoreError):
    """A master's bytes do not continue this log; nothing was written."""

    def __init__(self, path: str, end_offset: int, offset: int) -> None:
        super().__init__(path, f"ends at {end_offset}, but the master sends bytes from {offset} on")
        self.end_offset = end_offset
        self.offset = offset


class LogsDiffer(LogMismatch):
    """The master has other bytes at the end of this log; nothing was written."""

    def __init__(self, path: str, end_offset: int, offset: int) -> None:
        super().__init__(path, end_offset, offset)
        self.reason = f"ends at {end_offset}, and differs from the master's log from {offset} on"
        self.args = (f"{path}: {self.reason}",)


class ReplicaDamaged(StoreError):
    """A master's bytes are not records, so the logs differ. The log was cut after its last whole record."""

    def __init__(self, path: str, offset: int, problem: str) -> None:
        super().__init__(path, f"the master's bytes at {offset} do not continue this log ({problem})")
        self.offset = offset
