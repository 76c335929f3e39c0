"""Targets of an export: each stores its progress, and adds files to its table in one step."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from twisted_mq.extras import require
from twisted_mq.spark.commands.slices import Json, Marks, ProgressFile, Slice
from twisted_mq.spark.errors import StoreReadError, WrongOption
from twisted_mq.spark.file_systems import locate
from twisted_mq.spark.source.marks import Mark, parse_mark

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyiceberg.table import Table

DAY = "day"
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""Spark's directory name for null."""


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


class Target(Protocol):
    """A table that files are added to."""

    partitions: Mapping[str, str]
    """Directory names, first the topic's and then the day's -> the column of the value."""

    def done(self, tags: Iterable[str]) -> Marks:
        """Return the progress of each store. `tags` are the tags of the stores of this run."""

    def add(self, done: Slice, files: Sequence[Added]) -> None:
        """Add the files to the table and store that the slice is done, both in one step."""


class ParquetDirectory:
    """Files in topic=.../day=.../, and the progress of the export; readers skip names that begin with `_`.

    Files are moved in one by one before the slice is done, so a reader may see a part of it.
    """

    partitions: Mapping[str, str] = {"topic": "topic", DAY: DAY}

    def __init__(self, out: str, about: Json) -> None:
        self._progress = ProgressFile(f"{out.rstrip('/')}/_export.json", {"format": "parquet", **about})

    def done(self, tags: Iterable[str]) -> Marks:
        return self._progress.done

    def add(self, done: Slice, files: Sequence[Added]) -> None:
        self._progress.reached(done)


class DeltaDirectory:
    """A Delta table; a transaction of an application with the name of the store has the physical offset as its version.

    `_export.json` has the marks of each store's last two slices: it is written before the commit that makes one of them true.
    """

    partitions: Mapping[str, str] = {"topic": "topic", DAY: DAY}

    def __init__(self, out: str, about: Json) -> None:
        """Raises StoreReadError for a table of an export with other options."""
        require("mq spark export --format delta", "lake")
        from deltalake import DeltaTable

        self._out = out
        self._about = json.dumps(about)
        self._table: DeltaTable | None = None
        self._marks = _MarksFile(f"{out.rstrip('/')}/_export.json")
        if DeltaTable.is_deltatable(out):
            self._table = DeltaTable(out)
            _check_same(out, self._table.metadata().description, self._about)

    def done(self, tags: Iterable[str]) -> Marks:
        if self._table is None:
            return {}
        found = {}
        for key in dict.fromkeys((*self._marks.kept, *tags)):
            reached = self._table.transaction_version(key)
            if reached:
                known = (mark for mark in self._marks.kept.get(key, ()) if mark.reached == reached)
                found[key] = next(known, Mark(reached))
        return found

    def add(self, done: Slice, files: Sequence[Added]) -> None:
        from deltalake import CommitProperties, DeltaTable, Transaction
        from deltalake.transaction import AddAction

        if not files:
            return
        system, root = locate(self._out)
        added: list[AddAction] = []
        for one in files:
            written_ms = system.get_file_info(f"{root}/{one.path}").mtime_ns // 1_000_000
            values = {name: None if text == _NO_VALUE else text for name, text in one.partition.items()}
            added.append(
                AddAction(one.path, one.size_bytes, values, written_ms, True, json.dumps({"numRecords": one.rows}))
            )
        schema = (
            _schema_of(self._out, files[0]).append(pa.field("topic", pa.string())).append(pa.field(DAY, pa.date32()))
        )
        names = list(self.partitions)
        if self._table is None:
            self._table = DeltaTable.create(self._out, schema, partition_by=names, description=self._about)
        self._marks.add(done)
        version = CommitProperties(app_transactions=[Transaction(done.key, done.end)])
        self._table.create_write_transaction(list(added), "append", schema, names, commit_properties=version)
        self._table.update_incremental()


class IcebergDirectory:
    """Table `rocketmq.messages` of a catalog in `catalog.db`; a table property has the offset of each store."""

    partitions: Mapping[str, str] = {"topic_": "topic", "day_": DAY}
    _NAME = ("rocketmq", "messages")
    _ABOUT, _DONE = "rocketmq.export", "rocketmq.end."

    def __init__(self, out: str, about: Json) -> None:
        """Raises WrongOption, StoreReadError for a table of an export with other options."""
        require("mq spark export --format iceberg", "lake")
        from pyiceberg.catalog.sql import SqlCatalog

        if "://" in out:
            raise WrongOption("out", out, "the catalog of an Iceberg table is a file: use a local directory")
        system, self._root = locate(out)
        system.create_dir(self._root)
        self._about = json.dumps(about)
        self._catalog = SqlCatalog("rocketmq", uri=f"sqlite:///{self._root}/catalog.db", warehouse=self._root)
        self._catalog.create_namespace_if_not_exists(self._NAME[0])
        self._table: Table | None = None
        if self._catalog.table_exists(self._NAME):
            self._table = self._catalog.load_table(self._NAME)
            _check_same(out, self._table.properties.get(self._ABOUT), self._about)

    def done(self, tags: Iterable[str]) -> Marks:
        if self._table is None:
            return {}
        kept = self._table.properties
        return {
            name.removeprefix(self._DONE): parse_mark(json.loads(kept[name]))
            for name in kept
            if name.startswith(self._DONE)
        }

    def add(self, done: Slice, files: Sequence[Added]) -> None:
        if not files:
            return
        if self._table is None:
            self._table = self._created(_schema_of(self._root, files[0]))
        with self._table.transaction() as change:
            change.add_files([f"{self._root}/{one.path}" for one in files])
            change.set_properties({f"{self._DONE}{done.key}": json.dumps(done.mark.as_json())})

    def _created(self, schema: pa.Schema) -> Table:
        from pyiceberg.transforms import DayTransform

        table = self._catalog.create_table(
            self._NAME, schema, location=self._root, properties={self._ABOUT: self._about}
        )
        with table.update_spec() as spec:
            spec.add_identity("topic")
            spec.add_field("storeTimestamp", DayTransform(), DAY)
        return table


class _MarksFile:
    """The last two marks of each store, in a file beside a table whose commits have only the physical offset."""

    def __init__(self, uri: str) -> None:
        """Raises StoreReadError for a file of another kind."""
        self._system, self._path = locate(uri)
        self.kept: dict[str, tuple[Mark, ...]] = {}
        if self._system.get_file_info(self._path).type == fs.FileType.NotFound:
            return
        try:
            with self._system.open_input_file(self._path) as file:
                marks = json.loads(file.read())
            self.kept = {key: tuple(map(parse_mark, both)) for key, both in marks.items()}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StoreReadError(f"{uri}: does not contain the progress of an export: {error}") from error

    def add(self, done: Slice) -> None:
        """Store the mark of a slice and the one before it. Raises LogFileGone."""
        self.kept[done.key] = (*self.kept.get(done.key, ())[-1:], done.mark)
        text = json.dumps({key: [mark.as_json() for mark in both] for key, both in self.kept.items()})
        with self._system.open_output_stream(f"{self._path}.new") as file:
            file.write(text.encode())
        self._system.move(f"{self._path}.new", self._path)


def _check_same(out: str, before: str | None, about: str) -> None:
    if before != about:
        raise StoreReadError(f"{out}: was started with {before}, and cannot be continued with {about}")


def _schema_of(out: str, file: Added) -> pa.Schema:
    system, root = locate(out)
    with system.open_input_file(f"{root}/{file.path}") as one:
        return pq.read_schema(one).remove_metadata()


TARGETS: dict[str, Callable[[str, Json], Target]] = {
    "parquet": ParquetDirectory,
    "iceberg": IcebergDirectory,
    "delta": DeltaDirectory,
}
