"""Errors of reading a store with Spark: each names the path and says what a person can do about it."""

from __future__ import annotations


class StoreReadError(Exception):
    """Root of all errors that `spark` raises on purpose."""


class NoCommitLog(StoreReadError):
    """The path is no store directory: there is nothing, or no commit log in it."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            f"{path}: {reason}; give the directory that holds commitlog/ (storePathRootDir), or commitlog/ itself"
        )
        self.path = path


class WrongOption(StoreReadError):
    """An option that the source does not know, or a value that it cannot use."""

    def __init__(self, name: str, value: str, reason: str) -> None:
        super().__init__(f"option {name}={value!r}: {reason}")
        self.name = name


class LogFileGone(StoreReadError):
    """A commit log file was deleted between planning and reading, as retention does."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path}: gone since the read was planned")
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return StoreReadError, (str(self),)


class DataLost(StoreReadError):
    """Bytes of a log that were to be read are there no more, met with failOnDataLoss=true."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what}; read with failOnDataLoss=false to go on without them, mq spark with --no-fail-on-data-loss"
        )


class DamagedLog(StoreReadError):
    """Bytes that are no record, met with failOnDamage=true."""

    def __init__(self, path: str, physical_offset: int, length: int, reason: str) -> None:
        super().__init__(
            f"{path}: {length} damaged bytes at physical offset {physical_offset}: {reason}; "
            "read without failOnDamage to get the intact records"
        )
        self.path = path
        self.physical_offset = physical_offset

    def __reduce__(self) -> tuple[object, ...]:
        return StoreReadError, (str(self),)
