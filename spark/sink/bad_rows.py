"""Rows that are not valid messages: logged, or written to Parquet files.

    session.read.parquet(DIRECTORY)  # the row's columns, and query, batch, partition, row, reason

A task's file is named after query, batch and partition: a task that runs again replaces it.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Sequence

import pyarrow as pa
from pyarrow import fs
from pyarrow import parquet as pq

from twisted_mq.spark.file_systems import local_path, locate
from twisted_mq.spark.sink.errors import WrongRow

log = logging.getLogger(__name__)
_MOST_LOGGED = 20
"""Maximum number of rows of a task in its log; the others are counted."""


class OnBadRow(enum.StrEnum):
    """Handling of a row that is not a valid message."""

    FAIL = "fail"
    SKIP = "skip"
    QUARANTINE = "quarantine"


class BadRows:
    """The bad rows of one task; with a directory they are written there."""

    def __init__(self, query: str, batch: int, partition: int, directory: str | None = None) -> None:
        self.count = 0
        self._about = {"query": query, "batch": batch, "partition": partition}
        self._name = f"{query}-{batch}-{partition}.parquet"
        self._directory = directory
        self._writer: pq.ParquetWriter | None = None

    def add(self, batch: pa.RecordBatch, found: Sequence[tuple[int, WrongRow]]) -> None:
        """Add rows of a batch: the position of each in the batch, and why it is not a message."""
        for _, error in found[: max(0, _MOST_LOGGED - self.count)]:
            log.warning("row skipped: %s", error)
        self.count += len(found)
        if self._directory is not None and found:
            self._write(batch.take(pa.array([place for place, _ in found])), [error for _, error in found])

    def _write(self, rows: pa.RecordBatch, errors: Sequence[WrongRow]) -> None:
        table = pa.Table.from_batches([rows])
        for name, value in self._about.items():
            table = table.append_column(name, pa.array([value] * len(errors)))
        table = table.append_column("row", pa.array([error.row for error in errors]))
        table = table.append_column("reason", pa.array([error.reason for error in errors]))
        if self._writer is None:
            system, root = self._place()
            system.create_dir(root, recursive=True)
            self._writer = pq.ParquetWriter(f"{root}/.{self._name}", table.schema, filesystem=system)
        self._writer.write_table(table)

    def close(self) -> None:
        """Make the task's file visible."""
        if self.count > _MOST_LOGGED:
            log.warning("rows skipped: %d in all", self.count)
        if self._writer is not None:
            self._writer.close()
            system, root = self._place()
            system.move(f"{root}/.{self._name}", f"{root}/{self._name}")

    def _place(self) -> tuple[fs.FileSystem, str]:
        assert self._directory is not None
        return locate(local_path(self._directory))
