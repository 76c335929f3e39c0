"""Parts that all targets of an export share. A target stores its progress, adds files in one step, and merges small ones."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from twisted_mq.spark.commands.compaction import Compacted
from twisted_mq.spark.commands.slices import Json, Marks, Slice
from twisted_mq.spark.errors import StoreReadError
from twisted_mq.spark.file_systems import locate

DAY = "day"
MESSAGES = "rocketmq.messages"
"""Default name of a table in a catalog."""


@attrs.frozen
class Added:
    """A file below the table's directory: its path there, size, rows, and the values in its directory names."""

    path: str
    size_bytes: int
    rows: int
    partition: Mapping[str, str]

    @property
    def place(self) -> tuple[str, str]:
        """Return topic and day."""
        topic, day = self.partition.values()
        return topic, day


@attrs.frozen
class ExportPlace:
    """Place of an export: directory or URI `out`, the columns and topics in `about`, and for Iceberg a catalog."""

    out: str
    about: Json
    catalog: Mapping[str, str] = attrs.field(factory=dict)
    """Name and properties of pyiceberg's catalog; empty for `catalog.db` in `out`."""
    table: str = MESSAGES

    @property
    def said(self) -> str:
        """Return `about` as JSON, as tables store it."""
        return json.dumps(self.about)

    def check_same(self, before: str | None) -> None:
        """Check that a table, started with these columns and topics as JSON, can be continued. Raises StoreReadError."""
        try:
            known = json.loads(before or "")
        except ValueError:  # a table that no export made
            known = None
        if not may_continue(known, self.about):
            raise StoreReadError(f"{self.out}: was started with {before}, and cannot be continued with {self.said}")


def may_continue(before: object, about: Json) -> bool:
    """Return True if an export may be continued with `about`: columns may be added, everything else must be the same."""
    if not isinstance(before, dict) or {**before, "columns": None} != {**about, "columns": None}:
        return False
    known, wanted = before.get("columns"), about.get("columns")
    return isinstance(known, list) and isinstance(wanted, list) and set(known) <= set(wanted)


class Target(Protocol):
    """A table that files are added to."""

    partitions: Mapping[str, str]
    """Directory names, first the topic's and then the day's -> the column of the value."""

    def done(self, tags: Iterable[str]) -> Marks:
        """Return the progress of each store. `tags` are the tags of the stores of this run."""

    def add(self, done: Slice, files: Sequence[Added]) -> None:
        """Add the files to the table and store that the slice is done, both in one step."""

    def compact(self, file_bytes: int) -> Compacted:
        """Merge small files of a topic's day into files of at most about `file_bytes`, each in one step."""


def replace_file(system: fs.FileSystem, path: str, text: str) -> None:
    """Write a file, replacing it atomically."""
    with system.open_output_stream(f"{path}.new") as file:
        file.write(text.encode())
    system.move(f"{path}.new", path)


def schema_of(out: str, file: Added) -> pa.Schema:
    """Return the schema of a data file."""
    system, root = locate(out)
    with system.open_input_file(f"{root}/{file.path}") as one:
        return pq.read_schema(one).remove_metadata()
