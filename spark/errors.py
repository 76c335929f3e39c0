"""Errors of reading a store with Spark: each has the path and says what to do."""

from __future__ import annotations


class StoreReadError(Exception):
    """Base class of all errors that `spark` raises on purpose."""


class NoCommitLog(StoreReadError):
    """Raised when the path is missing or has no commit log."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            f"{path}: {reason}; use the directory that contains commitlog/ (storePathRootDir), or commitlog/ itself"
        )
        self.path = path


class NoFileSystem(StoreReadError):
    """Raised when what a URI needs is not installed, or a file system does not answer."""


class WrongOption(StoreReadError):
    """Raised for an unknown option, or a value that cannot be used."""

    def __init__(self, name: str, value: str, reason: str) -> None:
        super().__init__(f"option {name}={value!r}: {reason}")
        self.name = name


class LogFileGone(StoreReadError):
    """Raised when a commit log file was deleted between planning and reading, for example by retention."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path}: deleted since the read was planned")
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return StoreReadError, (str(self),)


class DataLost(StoreReadError):
    """Raised with failOnDataLoss=true when requested bytes of a log are no longer there."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what}; to continue without them, read with failOnDataLoss=false (mq spark: --no-fail-on-data-loss)"
        )


class DamagedLog(StoreReadError):
    """Raised with failOnDamage=true for bytes that are not a record."""

    def __init__(self, path: str, physical_offset: int, length: int, reason: str) -> None:
        super().__init__(
            f"{path}: {length} damaged bytes at physical offset {physical_offset}: {reason}; "
            "read with failOnDamage=false to get the intact records"
        )
        self.path = path
        self.physical_offset = physical_offset

    def __reduce__(self) -> tuple[object, ...]:
        return StoreReadError, (str(self),)
